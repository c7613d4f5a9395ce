package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// What every equation uses.
var (
	combine = method.Combine
	term    = method.Term
)

// of is c·x, a summand of [fuse.Program.Combine].
func of(c float64, x fuse.Register) fuse.Term { return fuse.Term{C: c, X: x} }

// defaults are the options of a run of every sampler. Steps are small, so neighbouring states are much alike.
var defaults = infer.Options{Warmup: 2000, Thin: 5}

// must is the value of a tensor operation inside a step, see [torch.Must].
func must[T any](v T, err error) T { return torch.Must(v, err) }

// Estimate says when a method looks at the gradients of several minibatches at one point: Batches of them (0 means 32)
// every Every updates (0 means at the beginning of each pass over the data).
type Estimate = method.Estimate

// checkBeta checks Beta and EstimateBeta, which takes its place.
func checkBeta(c *method.Checks, beta float64, e **Estimate) {
	c.Value("Beta", &beta, 0, false)
	c.Require(*e == nil || beta == 0, "Beta", beta, "it must be 0 when EstimateBeta is given, which finds it")
	*e = (*e).Check(c, "EstimateBeta", 2)
}

// noiseScale is the standard deviation of the injected noise, √(τε(2a − τεβ)), for the step ε and the friction a, which
// is 1 for SGLD, α for SGHMC and γM for SymplecticSGHMC. A negative variance means that β says there is more gradient
// noise than the friction can make up for.
func noiseScale(m *method.Move, eps, a, beta float64) float64 {
	variance := m.Tau * eps * (2*a - m.Tau*eps*beta)
	if !(variance >= 0) {
		must(0, fmt.Errorf("the noise variance τε(2a − τεβ) is %g at update %d, with τ = T/N = %g, step ε = %g, "+
			"friction a = %g, β (Beta) = %g: Beta must be at most 2a/(τε) = %g, or LR smaller: %w", variance, m.Index,
			m.Tau, eps, a, beta, 2*a/(m.Tau*eps), infer.ErrConfig))
	}
	return math.Sqrt(variance)
}

// injected appends the noise of an update with step ε, friction a and masses M (nil for 1): for β, or for the estimate
// V where there is to be one.
func injected(m *method.Move, eps, a, beta float64, e *Estimate, mass, v, like *ts.Tensor,
	terms ...torch.Term) []torch.Term {
	switch wanted := 2 * m.Tau * eps * a; {
	case e != nil:
		return m.CorrectedNoise(wanted, mass, eps*eps, v, like, terms...)
	case mass != nil:
		return m.MassiveNoise(mass, wanted, m.Tau*m.Tau*eps*eps*beta, like, terms...)
	}
	return m.Noise(noiseScale(m, eps, a, beta), like, terms...)
}

// fusedNoise is injected in its other form: the term of an update that is its noise. mass is the part with the masses,
// 0 for 1, and v that with the estimate, if one is asked for.
func fusedNoise(p *fuse.Program, m *method.Move, eps, a, beta float64, e *Estimate, mass, v fuse.Register) fuse.Term {
	wanted := 2 * m.Tau * eps * a
	switch {
	case e != nil && wanted == 0:
		m.Info.Stats = map[string][]float64{"clipped": make([]float64, len(m.Info.LogPosterior))}
	case e != nil:
		return p.CorrectedNoise(wanted, mass, eps*eps, v)
	case mass != 0:
		return p.MassiveNoise(wanted, mass, m.Tau*m.Tau*eps*eps*beta)
	default:
		return of(noiseScale(m, eps, a, beta), fuse.Noise)
	}
	return of(0, fuse.Noise)
}

// meanOf is the mean of each row of x, a statistic with one number for each chain, in the type of x.
func meanOf(x *ts.Tensor) []float64 {
	return must(torch.ToSlice[float64](x.MustMeanDim([]int64{-1}, false, must(torch.DTypeOfTensor(x)), false)))
}
