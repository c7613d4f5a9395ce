package loo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Point is the leave-one-out prediction of one observation.
type Point struct {
	// ELPD is the log predictive density of the observation given the others.
	ELPD float64
	// MCSE is the Monte-Carlo standard error of ELPD. It can be trusted where K is below [KThreshold]. NaN for WAIC.
	MCSE float64
	// P is the excess of the log predictive density with the observation over ELPD.
	P float64
	// K is the Pareto shape, and ESS the effective sample size, of the importance weights; see [Weights]. NaN for WAIC.
	K, ESS float64
}

// Result is an estimate of the predictive accuracy of a model.
type Result struct {
	// ELPD is the expected log pointwise predictive density, SE its standard error.
	ELPD, SE float64
	// P is the effective number of parameters, SEP its standard error.
	P, SEP float64
	// IC is -2 ELPD, on the scale of the deviance, and SEIC its standard error.
	IC, SEIC float64
	// Pointwise has one entry per observation.
	Pointwise []Point
	// Draws is the number of draws.
	Draws int
	// Unreliable counts the observations whose ELPD cannot be trusted: K above [KThreshold] for LOO, or all of them for
	// fewer than 21 draws; P above 0.4 for WAIC.
	Unreliable int
}

// LOO is leave-one-out cross-validation by Pareto-smoothed importance sampling, from the log likelihood of each
// observation in each draw, [draw][observation]. With w the smoothed weights of the ratios 1/p(y(i)|θ(s)), see [PSIS],
//
//	elpd(i) = log Σ w(s) p(y(i)|θ(s))
//	p(i)    = log (1/S) Σ p(y(i)|θ(s)) - elpd(i)
//	ELPD = Σ elpd(i),  SE = sqrt(n Var elpd(i))
//
// Vehtari, Gelman and Gabry (2017), Statistics and Computing 27, 1413-1432; as in the R package loo. ArviZ divides by n
// in Var, which makes SE smaller by sqrt((n-1)/n). MCSE is that of the log of a log-normal average,
// sqrt(log(1 + v/p²)/r), with p = exp(elpd(i)), v = Σ w² (p(y(i)|θ(s)) - p)² and r the relative efficiency.
//
// relativeEfficiency has one number per observation, see [RelativeEfficiency], or a single one for all; nil is
// 1, for independent draws. [draws.ErrSize], [diag.ErrNotFinite] and [draws.ErrRange] are the errors. SE is NaN
// for a single observation.
func LOO(loglik [][]float64, relativeEfficiency []float64) (*Result, error) {
	n, err := checkLogLik("loo", loglik)
	if err != nil {
		return nil, err
	}
	if k := len(relativeEfficiency); k > 1 && k != n {
		return nil, failf(draws.ErrSize, "loo: %d relative efficiencies, want %d, one per observation, or 1, or none",
			k, n)
	}
	for i, v := range relativeEfficiency {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, failf(draws.ErrRange, "loo: relative efficiency %d is %v, want a positive number", i, v)
		}
	}
	r := &Result{Pointwise: make([]Point, n), Draws: len(loglik)}
	sample.Each(n, func(i int) {
		reff := 1.0
		switch len(relativeEfficiency) {
		case 0:
		case 1:
			reff = relativeEfficiency[0]
		default:
			reff = relativeEfficiency[i]
		}
		r.Pointwise[i] = leaveOut(observation(loglik, i), reff)
	})
	for _, p := range r.Pointwise {
		if p.K > KThreshold(r.Draws) || r.Draws < fewest {
			r.Unreliable++
		}
	}
	r.Sum()
	return r, nil
}

// leaveOut is the prediction of an observation with the log likelihoods ll.
func leaveOut(ll []float64, reff float64) Point {
	ratios := make([]float64, len(ll))
	for s, v := range ll {
		ratios[s] = -v
	}
	w := psis(ratios, reff)
	both := make([]float64, len(ll))
	for s, v := range ll {
		both[s] = w.LogWeights[s] + v
	}
	p := Point{ELPD: sample.LogSumExp(both), K: w.K, ESS: w.ESS}
	p.P = sample.LogSumExp(ll) - math.Log(float64(len(ll))) - p.ELPD
	relative := 0.0 // v/p²
	for s, v := range ll {
		d := math.Exp(w.LogWeights[s]) * (math.Exp(v-p.ELPD) - 1)
		relative += d * d
	}
	p.MCSE = math.Sqrt(math.Log1p(relative) / reff)
	return p
}

// CodeParetoK is the kind of the findings of [Result.Diagnose].
const CodeParetoK diag.Code = "pareto_k"

// fewest is how many draws a Pareto distribution is fitted to the tail of: a fifth of them, 5 and more.
const fewest = 21

// Diagnose reports each observation whose Pareto k is above the threshold of [KThreshold] as a serious finding, the
// largest first. Of fewer than 21 draws, which have no tail, it is one finding that there are too few.
func (r *Result) Diagnose() *diag.Report {
	limit := KThreshold(r.Draws)
	report := &diag.Report{Checked: []diag.Code{CodeParetoK}, Draws: r.Draws}
	report.Subject = fmt.Sprintf("leave-one-out prediction of %d observations from %d draws", len(r.Pointwise), r.Draws)
	if r.few() {
		report.Findings = append(report.Findings, diag.Finding{Code: CodeParetoK, Severity: diag.Serious, Chain: -1,
			Observation: -1, Figure: float64(r.Draws), Threshold: fewest,
			Message: fmt.Sprintf("there are %d draws, fewer than the %d that importance sampling takes at least",
				r.Draws, fewest),
			Advice: "Leave one out by draws of the posterior, some hundreds of them: those of a sampler, such as hmc.NUTS, " +
				"or of a fit. The points of an optimiser are no such draws."})
		return report
	}
	for i, p := range r.Pointwise {
		if p.K > limit {
			report.Findings = append(report.Findings, diag.Finding{
				Code: CodeParetoK, Severity: diag.Serious, Chain: -1, Observation: i, Figure: p.K, Threshold: limit,
				Message: fmt.Sprintf("observation %d: Pareto k is %s, above %.2f", i, sample.Above(p.K, limit, 2),
					limit),
				Advice: "The posterior without this observation is too different for importance sampling. Refit " +
					"without it (exact leave-one-out), use K-fold cross-validation, or ask whether the model " +
					"explains such observations.",
			})
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b diag.Finding) int { return cmp.Compare(b.Figure, a.Figure) })
	return report
}

// few says whether there are too few draws for a Pareto k.
func (r *Result) few() bool {
	psis := slices.ContainsFunc(r.Pointwise, func(p Point) bool { return !math.IsNaN(p.K) }) // and not WAIC
	return r.Draws < fewest && psis
}

// Model is what [Compare] needs of the result.
func (r *Result) Model(name string) Model {
	m := Model{Name: name, Pointwise: make([]float64, len(r.Pointwise)), P: r.P}
	for i, p := range r.Pointwise {
		m.Pointwise[i] = p.ELPD
	}
	return m
}

// String is a table of the estimates with their standard errors, and how many observations are unreliable: all of them
// where LOO has fewer than 21 draws, which cannot tell. It ends with a line break.
func (r *Result) String() string {
	columns := [][]string{{"", "elpd", "p", "ic"}, {"estimate"}, {"se"}}
	for _, v := range [][2]float64{{r.ELPD, r.SE}, {r.P, r.SEP}, {r.IC, r.SEIC}} {
		for k := range v {
			columns[1+k] = append(columns[1+k], strconv.FormatFloat(v[k], 'f', 2, 64))
		}
	}
	unreliable := fmt.Sprintf("%d of %d observations", r.Unreliable, len(r.Pointwise))
	if r.few() {
		unreliable = fmt.Sprintf("all %d observations: %d draws are fewer than the %d that importance sampling takes at "+
			"least", len(r.Pointwise), r.Draws, fewest)
	}
	return sample.Align(columns) + "unreliable: " + unreliable + "\n"
}

// WAIC is the widely applicable information criterion (Watanabe 2010, Journal of Machine Learning Research 11,
// 3571-3594) from the log likelihood of each observation in each draw, [draw][observation]:
//
//	elpd(i) = log (1/S) Σ p(y(i)|θ(s)) - Var log p(y(i)|θ(s))
//
// in the form of Vehtari, Gelman and Gabry (2017), with divisors S-1 and n-1 in variances as in the R package loo;
// ArviZ has S and n. Prefer [LOO], which says when it fails. [draws.ErrSize] and [diag.ErrNotFinite] are the errors. SE
// is NaN for a single observation.
func WAIC(loglik [][]float64) (*Result, error) {
	n, err := checkLogLik("waic", loglik)
	if err != nil {
		return nil, err
	}
	r := &Result{Pointwise: make([]Point, n), Draws: len(loglik)}
	for i := range n {
		ll := observation(loglik, i)
		_, variance := sample.MeanVar(ll)
		r.Pointwise[i] = Point{MCSE: math.NaN(), K: math.NaN(), ESS: math.NaN(),
			ELPD: sample.LogSumExp(ll) - math.Log(float64(len(ll))) - variance, P: variance}
		if variance > 0.4 {
			r.Unreliable++
		}
	}
	r.Sum()
	return r, nil
}

// checkLogLik checks a pointwise log likelihood, [draw][observation], and returns the number of observations.
func checkLogLik(doing string, loglik [][]float64) (observations int, err error) {
	if len(loglik) < 2 || len(loglik[0]) == 0 {
		return 0, failf(draws.ErrSize, "%s: the log likelihood needs at least 2 draws of at least 1 observation", doing)
	}
	n := len(loglik[0])
	for s, row := range loglik {
		if len(row) != n {
			return 0, failf(draws.ErrSize, "%s: draw %d has %d observations, want %d as draw 0", doing, s, len(row), n)
		}
		for i, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, failf(diag.ErrNotFinite, "%s: the log likelihood of observation %d in draw %d is %v", doing,
					i, s, v)
			}
		}
	}
	return n, nil
}

// observation is column i of a log likelihood.
func observation(loglik [][]float64, i int) []float64 {
	column := make([]float64, len(loglik))
	for s, row := range loglik {
		column[s] = row[i]
	}
	return column
}

// total is the sum of n numbers and its standard error sqrt(n v), v their variance (divisor n-1).
func total(n int, of func(i int) float64) (sum, se float64) {
	x := make([]float64, n)
	for i := range x {
		x[i] = of(i)
	}
	mean, variance := sample.MeanVar(x)
	return mean * float64(n), math.Sqrt(float64(n) * variance)
}

// RelativeEfficiency is, for each observation, the effective sample size of the likelihood over the number of draws:
// the relative efficiencies of [LOO] and [PSIS] for draws of Markov chains. loglik is [draw][observation], the draws of
// the chains one chain after the other, all of one length. The effective sample size is [diag.ESSBasic] of exp(loglik),
// as relative_eff of the R package loo; ArviZ uses one number, the average over the parameters. Where it is not
// defined, for a likelihood that never varies, it is 1.
//
// [draws.ErrSize], [diag.ErrNotFinite], and [draws.ErrRange] for chains that do not divide the draws are the errors.
func RelativeEfficiency(loglik [][]float64, chains int) ([]float64, error) {
	n, err := checkLogLik("relative efficiency", loglik)
	if err != nil {
		return nil, err
	}
	if chains < 1 || len(loglik)%chains != 0 {
		return nil, failf(draws.ErrRange, "relative efficiency: %d chains do not divide %d draws", chains, len(loglik))
	}
	length := len(loglik) / chains
	reff := make([]float64, n)
	sample.Each(n, func(i int) {
		column := observation(loglik, i)
		highest := math.Inf(-1)
		for _, v := range column {
			highest = max(highest, v)
		}
		x := make([][]float64, chains)
		for c := range x {
			x[c] = column[c*length : (c+1)*length]
		}
		size := diag.ESSBasic(sample.Mapped(x, func(v float64) float64 { return math.Exp(v - highest) }))
		if reff[i] = size / float64(len(loglik)); math.IsNaN(reff[i]) {
			reff[i] = 1
		}
	})
	return reff, nil
}
