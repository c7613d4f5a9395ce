package regression

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Cumulative is one of K ordered categories: the number of thresholds that a variable at η exceeds, which is logistic,
// or normal with the link probit. The outcome is a factor, with its levels in their order, or whole numbers. Links:
// logit, probit, cloglog.
type Cumulative struct {
	Link string // one of its links; empty is the first
}

// Sequential is one of K ordered categories that are reached one after the other: with τ_k the thresholds, which may be
// in any order, the probability to stop at category k, once reached, is that of a variable at η below τ_k. Links:
// logit, probit, cloglog.
type Sequential struct {
	Link string // one of its links; empty is the first
}

// Adjacent is one of K ordered categories, of which log(p_(k+1)/p_k) = η - τ_k, with thresholds in any order. Link:
// logit.
type Adjacent struct{}

// Categorical is one of K categories without an order. Each but the first has a linear predictor of the formula's
// terms, with sites named after it: b_level, sd_g_level; the first has the predictor 0. Link: logit.
type Categorical struct{}

// Multinomial is Categorical for counts of several trials: cbind(a, b, c) | trials(n) ~ x, where a, b and c are columns
// of counts of sum n, the categories.
type Multinomial struct{}

// Dirichlet is shares of a whole, above 0 and of sum 1: cbind(a, b, c) ~ x, where a, b and c are columns of shares.
// Their means have the predictors of Categorical, and phi is the precision: Dirichlet(μ phi). Link: logit.
type Dirichlet struct{}

func (f Cumulative) spec() *spec {
	s := ordinal("cumulative", f.Link, func(a args) []any {
		lower, upper := thresholdTails(a, f.Link)
		out := []any{lower[0]}
		for k := 1; k < len(lower); k++ {
			out = append(out, between(lower[k-1], upper[k-1], lower[k], upper[k]))
		}
		return append(out, upper[len(upper)-1])
	})
	if s.canonical() {
		s.dist = func(a args) dist.Distribution { return dist.OrderedLogistic(a.eta, a.of["thresholds"]) }
	}
	return s
}

func (f Sequential) spec() *spec {
	s := ordinal("sratio", f.Link, func(a args) (out []any) {
		lower, upper := thresholdTails(a, f.Link)
		reached := torch.Of(0)
		for k := range lower {
			out = append(out, lower[k].Add(reached))
			reached = reached.Add(upper[k])
		}
		return append(out, reached)
	})
	s.free = true
	return s
}

func (Adjacent) spec() *spec {
	s := ordinal("acat", "", func(a args) (out []any) {
		sum := a.eta.Sub(a.threshold(0)).Mul(0)
		out = append(out, sum)
		for k := range a.thresholds() {
			sum = sum.Add(a.eta.Sub(a.threshold(k)))
			out = append(out, sum)
		}
		return out
	})
	s.free, s.links = true, s.links[:1]
	return s
}

func (Categorical) spec() *spec {
	return &spec{name: "categorical", links: []string{"logit"}, nominal: true, allowed: number, logits: args.stacked,
		dist: func(a args) dist.Distribution { return dist.CategoricalLogits(a.stacked()) }}
}

func (Multinomial) spec() *spec {
	return &spec{name: "multinomial", links: []string{"logit"}, nominal: true, several: true, trials: true,
		allowed: ofTrials, logits: args.stacked,
		dist: func(a args) dist.Distribution { return dist.MultinomialLogits(a.trials, a.stacked()) },
		mean: func(a args) torch.Tensor { return a.stacked().Softmax(-1).Mul(a.trials.Unsqueeze(-1)) }}
}

func (Dirichlet) spec() *spec {
	return &spec{name: "dirichlet", links: []string{"logit"}, params: []string{"phi"}, nominal: true, several: true,
		allowed: unit, logits: args.stacked,
		dist: func(a args) dist.Distribution {
			return dist.Dirichlet(a.stacked().Softmax(-1).Mul(a.of["phi"].Unsqueeze(-1)))
		}}
}

// ordinal is a family of ordered categories by the logits of each.
func ordinal(name, link string, logits func(a args) []any) *spec {
	s := &spec{name: name, link: link, links: probabilities, ordinal: true, allowed: number,
		logits: func(a args) torch.Tensor { return torch.Stack(-1, logits(a)...) }}
	s.dist = func(a args) dist.Distribution { return dist.CategoricalLogits(s.logits(a)) }
	return s
}

func (a args) stacked() torch.Tensor { return torch.Stack(-1, a.logits...) }

// thresholds is their number.
func (a args) thresholds() int {
	shape := a.of["thresholds"].Shape()
	return shape[len(shape)-1]
}

// threshold is one of them, of shape [1].
func (a args) threshold(k int) torch.Tensor { return a.of["thresholds"].Slice(-1, k, k+1) }

// thresholdTails are log P(u ≤ τ_k) and log P(u > τ_k) for each threshold, of a variable u at η that the link names.
func thresholdTails(a args, link string) (lower, upper []torch.Tensor) {
	for k := range a.thresholds() {
		at := a.threshold(k).Sub(a.eta)
		var below, above torch.Tensor
		switch link {
		case "probit":
			d := dist.Normal(0, 1)
			below, above = dist.LogCDF(d, at), dist.LogSurvival(d, at)
		case "cloglog":
			above = at.Exp().Neg()
			below = above.Expm1().Neg().Log()
		default:
			below, above = at.LogSigmoid(), at.Neg().LogSigmoid()
		}
		lower, upper = append(lower, below), append(upper, above)
	}
	return lower, upper
}

// between is log(F(b) - F(a)), a < b, of the logarithms of F and 1 - F there, by the tail that has less: log(e^x - e^y)
// is x + log(1 - e^(y-x)).
func between(lowerA, upperA, lowerB, upperB torch.Tensor) torch.Tensor {
	less := func(x, y torch.Tensor) torch.Tensor { return x.Add(y.Sub(x).Exp().Neg().Log1p()) }
	return torch.Where(lowerA.Lt(-math.Ln2), less(lowerB, lowerA), less(upperA, upperB))
}
