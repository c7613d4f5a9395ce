package sgmcmc

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// What every equation uses.
var (
	combine = method.Combine
	term    = method.Term
)

// must is the value of a tensor operation inside a step, see [torch.Must].
func must[T any](v T, err error) T { return torch.Must(v, err) }

// Estimate says when a method looks at the gradients of several minibatches at one point. [infer.Run] does so by itself;
// if you make updates yourself, call Prepare of [infer.Preparer] when Due says so.
type Estimate struct {
	Batches int64 // K, minibatches that are looked at; 0 means 32
	// Every is the number of updates from one estimate to the next; 0 means at the beginning of each pass over the data.
	// With all the data in one batch every update begins a pass: give Every then.
	Every int64
}

// check checks the fields of an estimate and fills in the defaults.
func (e *Estimate) check(c *method.Checks, field string, least int64) *Estimate {
	if e == nil {
		return nil
	}
	checked := *e
	if checked.Batches == 0 {
		checked.Batches = 32
	}
	c.Require(checked.Batches >= least, field+".Batches", checked.Batches, fmt.Sprintf("it must be at least %d", least))
	c.Require(checked.Every >= 0, field+".Every", checked.Every, "it must be at least 0")
	return &checked
}

// due says whether an estimate comes before update step, for nil never; the first one, where there is none, always.
func (e *Estimate) due(step int64, epoch, none bool) bool {
	switch {
	case e == nil:
		return false
	case e.Every > 0:
		return none || step%e.Every == 0
	}
	return none || epoch
}

// checkBeta checks Beta and EstimateBeta, which takes its place.
func checkBeta(c *method.Checks, beta float64, e **Estimate) {
	c.Value("Beta", &beta, 0, false)
	c.Require(*e == nil || beta == 0, "Beta", beta, "it must be 0 when EstimateBeta is given, which finds it")
	*e = (*e).check(c, "EstimateBeta", 2)
}

// noiseScale is the standard deviation of the injected noise, √(τε(2a − τεβ)), where a is 1 for SGLD and α for SGHMC. A
// negative variance means that β says there is more gradient noise than the friction can make up for.
func noiseScale(m *method.Move, a, beta float64) float64 {
	variance := m.Tau * m.LR * (2*a - m.Tau*m.LR*beta)
	if !(variance >= 0) {
		must(0, fmt.Errorf("the noise variance τε(2a − τεβ) is %g at update %d, with τ = T/N = %g, ε (LR) = %g, a = %g, "+
			"β (Beta) = %g: Beta must be at most 2a/(τε) = %g, or LR smaller: %w", variance, m.Index, m.Tau, m.LR, a, beta,
			2*a/(m.Tau*m.LR), infer.ErrConfig))
	}
	return math.Sqrt(variance)
}

// injected appends the noise of an update with friction a: for β, or for the estimate V where there is to be one.
func injected(m *method.Move, beta float64, e *Estimate, a float64, v, like *ts.Tensor, terms ...torch.Term) []torch.Term {
	if e == nil {
		return noisy(m, noiseScale(m, a, beta), like, terms...)
	}
	return estimatedNoise(m, 2*m.Tau*m.LR*a, nil, m.LR*m.LR, v, like, terms...)
}

// noisy appends scale·z to the terms of an update. At scale 0 nothing is drawn.
func noisy(m *method.Move, scale float64, like *ts.Tensor, terms ...torch.Term) []torch.Term {
	if scale == 0 {
		return terms
	}
	return append(terms, term(scale, m.Normal(like)))
}

// estimatedNoise appends noise that makes up for what the gradient lacks of the noise that is wanted: injected noise has
// variance wanted, times the masses unless they are nil, less the gradient's own, lost·V. If the gradient noise already
// exceeds the wanted noise, nothing is injected; the statistic "clipped" is the share of such elements in each chain.
func estimatedNoise(m *method.Move, wanted float64, masses *ts.Tensor, lost float64, v, like *ts.Tensor, terms ...torch.Term) []torch.Term {
	if v == nil {
		must(0, fmt.Errorf("EstimateBeta is given and nothing was estimated yet: call Prepare before Update, as infer.Run does: %w",
			infer.ErrConfig))
	}
	if wanted == 0 {
		m.Info.Stats = map[string][]float64{"clipped": make([]float64, len(m.Info.LogPosterior))}
		return terms
	}
	variance := combine(term(-lost, v))
	if masses == nil {
		variance.MustAddScalar_(ts.FloatScalar(wanted))
	} else {
		variance = combine(term(1, variance), term(wanted, masses))
	}
	clipped := shareBelowZero(variance)
	m.Info.Stats = map[string][]float64{"clipped": clipped}
	if slices.Max(clipped) > 0 {
		variance.MustClampMin_(ts.FloatScalar(0))
	}
	variance.MustSqrt_()
	z := m.Normal(like)
	z.MustMul_(variance)
	return append(terms, term(1, z))
}

// shareBelowZero is the share of negative elements in each row.
func shareBelowZero(x *ts.Tensor) []float64 {
	low := must(torch.ToSlice[float64](x.MustAmin([]int64{-1}, false, false)))
	if slices.Min(low) >= 0 {
		return make([]float64, len(low))
	}
	below := x.MustLt(ts.FloatScalar(0), false)
	return must(torch.ToSlice[float64](below.MustMeanDim([]int64{-1}, false, torch.DTypeOf[float64](), false)))
}

// variance estimates V, the variance of the gradient of one minibatch, for each element: the variance of the gradients of
// several minibatches at p. It is unbiased for independent minibatches; for B of N data without replacement it is
// N/(N − B) times V on average. A chain that meets something not finite keeps its old estimate, or 0. It belongs to no
// scope. Where nothing is to be estimated it is the old one.
func (e *Estimate) variance(g infer.Gradient, p infer.Params, old *ts.Tensor, next func() (infer.Batch, error)) *ts.Tensor {
	if e == nil {
		return old
	}
	_, square, diverged, err := method.GradientMoments(g, p, next, e.Batches)
	if err != nil {
		must(0, fmt.Errorf("estimating β: %w", err))
	}
	variance := combine(term(1/float64(e.Batches-1), square))
	if old == nil {
		old = variance.MustZerosLike(false)
	}
	variance = must(method.Hold(old, variance, diverged))
	torch.Detach(variance)
	return variance
}

const varianceName = "gradient_variance" // of V in a checkpoint

// meanOf is the mean of each row of x, a statistic with one number for each chain, in the type of x.
func meanOf(x *ts.Tensor) []float64 {
	return must(torch.ToSlice[float64](x.MustMeanDim([]int64{-1}, false, must(torch.DTypeOfTensor(x)), false)))
}
