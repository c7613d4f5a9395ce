package sgmcmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/fuse"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

var _ = []infer.Method{SGLD{}, PSGLD{}, SGLRW{}, SGHMC{}, BAOA{}, SGNHT{}, SymplecticSGHMC{}, ATMC{}}

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

// noise is what an update with step ε and friction a injects, so that with the noise that the gradient brings along it
// is that of the friction: of variance τε(2aM − τεβ), with M the masses. Where there is to be an estimate V of the
// variance of the gradient, ε²V takes the place of τ²ε²β.
type noise struct {
	Step, Friction, Beta float64       // ε, a, which is 1 for SGLD, α for SGHMC and γ for SymplecticSGHMC, and β
	Estimate             *Estimate     // nil for β
	Variance, Mass       fuse.Register // of V, and of M; 0 for masses of 1
}

// scale is the standard deviation of the noise of an element of mass 1, √(τε(2a − τεβ)). A negative variance means that
// β says there is more gradient noise than the friction can make up for.
func (n noise) scale(m *method.Move) float64 {
	variance := m.Tau * n.Step * (2*n.Friction - m.Tau*n.Step*n.Beta)
	if !(variance >= 0) {
		must(0, fmt.Errorf("the noise variance τε(2a − τεβ) is %g at update %d, with τ = T/N = %g, step ε = %g, "+
			"friction a = %g, β (Beta) = %g: Beta must be at most 2a/(τε) = %g, or LR smaller: %w", variance, m.Index,
			m.Tau, n.Step, n.Friction, n.Beta, 2*n.Friction/(m.Tau*n.Step), infer.ErrConfig))
	}
	return math.Sqrt(variance)
}

// term is the summand of an update that is its noise. What it needs is made in the registers A and B.
func (n noise) term(p *fuse.Program, m *method.Move) fuse.Term {
	wanted := 2 * m.Tau * n.Step * n.Friction
	switch {
	case n.Estimate != nil && wanted == 0:
		m.Info.Stats = map[string][]float64{"clipped": make([]float64, len(m.Info.LogPosterior))}
		return fuse.Noise.Times(0)
	case n.Estimate != nil:
		n.corrected(p, wanted)
	case n.Mass == 0:
		return fuse.Noise.Times(n.scale(m))
	case wanted == 0:
		return fuse.Noise.Times(0)
	case n.Beta == 0:
		p.Root(fuse.A, 1, n.Mass, 0)
		return fuse.Product(math.Sqrt(wanted), fuse.A, fuse.Noise)
	default:
		p.Combine(fuse.A, n.Mass.Times(wanted))
		p.Shift(fuse.A, fuse.A, -m.Tau*m.Tau*n.Step*n.Step*n.Beta) // the least may be 0 and come out a rounding below
	}
	p.Clamp(fuse.A, fuse.A, 0, math.Inf(1))
	p.Root(fuse.A, 1, fuse.A, 0)
	return fuse.Product(1, fuse.A, fuse.Noise)
}

// corrected makes wanted·M − ε²V in A. If the gradient noise already exceeds the wanted noise, nothing is injected; the
// statistic "clipped" is the share of such elements in each chain.
func (n noise) corrected(p *fuse.Program, wanted float64) {
	lost := n.Variance.Times(-n.Step * n.Step)
	if n.Mass != 0 {
		p.Combine(fuse.A, lost, n.Mass.Times(wanted))
	} else {
		p.Combine(fuse.A, lost)
		p.Shift(fuse.A, fuse.A, wanted)
	}
	p.Below(fuse.B, fuse.A)
	p.Tell("clipped", fuse.B)
}

// meanOf is the mean of each row of x, a statistic with one number for each chain, in the type of x.
func meanOf(x torch.Tensor) []float64 {
	return must(torch.ToSlice[float64](torch.Of(x.T().MustMeanDim([]int64{-1}, false, must(torch.DTypeOfTensor(x)),
		false))))
}
