package gp

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Process is a Gaussian process f at n inputs.
type Process struct {
	Kernel Kernel       // the covariance of f
	X      torch.Tensor // the inputs, [n, d] or [n]
	Mean   any          // of f: a number or [n]; nil is 0
	// Jitter is the least variance of the noise, as a part of the process's variance at each input: where the noise has
	// less, the rest is added. 0 means n·2⁻⁴⁹, which keeps rounding from making the covariance of n inputs indefinite:
	// 1e-13 for 50 of them. A run whose noise is below it says so.
	Jitter float64
}

// jitter is the Jitter of n inputs.
func (p Process) jitter(n int) float64 {
	if p.Jitter > 0 {
		return p.Jitter
	}
	return float64(n) * 0x1p-49
}

// checked is the process with its defaults.
func (p Process) checked() Process {
	combine("Process.Kernel", false, []Kernel{p.Kernel})
	p.X = inputs(p.X)
	mean := parameter("Process.Mean", p.Mean, 0)
	if shape := mean.Shape(); len(shape) > 1 || len(shape) == 1 && shape[0] != rows(p.X) {
		fail("Process.Mean", sized(shape), "there are %d inputs: it must be a number or of shape [%d]",
			rows(p.X), rows(p.X))
	}
	p.Mean = mean
	if !(p.Jitter >= 0 && !math.IsInf(p.Jitter, 0)) {
		fail("Process.Jitter", fmt.Sprint(p.Jitter), "it must be finite and greater than 0, or 0 for the default")
	}
	return p
}

// noisy is the covariance k of f with the variance of the noise on its diagonal, at least jitter·diag k.
func noisy(k, noise torch.Tensor, jitter float64) torch.Tensor {
	least := k.Diag().Mul(jitter)
	return k.Add(least.AtLeast(noise.Square()).Diag())
}

// noise is a standard deviation, a number or [n].
func (p Process) noise(x any) torch.Tensor {
	v := parameter("noise", x, 0)
	if n, ok := v.Number(); ok && !(n >= 0 && !math.IsInf(n, 0)) {
		fail("noise", fmt.Sprint(n), "it is a standard deviation, which must be finite and at least 0")
	}
	if shape := v.Shape(); len(shape) > 1 || len(shape) == 1 && shape[0] != rows(p.X) {
		fail("noise", sized(shape), "there are %d inputs: it must be a number or of shape [%d]", rows(p.X), rows(p.X))
	}
	return v
}

// Marginal is the distribution of y = f + independent noise of the standard deviation noise, a number or [n], with f
// integrated out (Rasmussen and Williams 2006, equation 2.30):
//
//	y ~ N(Mean, K + diag max(noise², Jitter K_ii))
func (p Process) Marginal(noise any) dist.Distribution {
	p = p.checked()
	deviation, k, jitter := p.noise(noise), p.Kernel.Within(p.X), p.jitter(rows(p.X))
	return dist.MultivariateNormal(p.Mean, watched(k, deviation, jitter, noisy(k, deviation, jitter)))
}

// Latent declares f as a latent variable, and returns its values [n], for any likelihood: f = Mean + L z, with z, the
// variable name_z, of independent standard normal numbers and L Lᵀ = K + Jitter diag K. The draws have f as name.
func (p Process) Latent(c *ppl.Ctx, name string) torch.Tensor {
	p = p.checked()
	z := c.Sample(name+"_z", dist.Normal(0, 1).Expand(rows(p.X)))
	factor := noisy(p.Kernel.Within(p.X), torch.Of(0), p.jitter(rows(p.X))).Cholesky()
	return c.Deterministic(name, factor.MatMul(z).Add(p.Mean))
}

// Given is the distribution of f at new inputs x, [m, d], given y = f + noise at the n inputs of the process; with
// noise 0 it is that given f itself. Its mean, covariance and draws are predictions (Rasmussen and Williams 2006,
// algorithm 2.1). With k* the covariances of data and new inputs, and D = diag max(noise², Jitter K_ii), they are rows
// of the factor of the joint covariance, which rounding does not make indefinite where it is nearly singular:
//
//	L Lᵀ = K + D,  M = k*ᵀ L⁻ᵀ,  R Rᵀ = K** + Jitter diag K** − M Mᵀ,  f ~ N(mean + M L⁻¹ (y − Mean), R Rᵀ)
//
// The mean at the new inputs is a number or [m]; nil is that of the process, where it is a number.
func (p Process) Given(y torch.Tensor, noise any, x torch.Tensor, mean any) dist.Distribution {
	p = p.checked()
	x = inputs(x)
	if shape := y.Shape(); len(shape) != 1 || shape[0] != rows(p.X) {
		fail("y", sized(shape), "there are %d inputs: it must be of shape [%d]", rows(p.X), rows(p.X))
	}
	here := p.Mean.(torch.Tensor)
	if mean == nil {
		if len(here.Shape()) > 0 {
			fail("mean", "nil", "the process has a mean for each input: give one for the new inputs")
		}
		mean = here
	}
	there := parameter("mean", mean, 0)
	if shape := there.Shape(); len(shape) > 1 || len(shape) == 1 && shape[0] != rows(x) {
		fail("mean", sized(shape), "there are %d new inputs: it must be a number or of shape [%d]", rows(x), rows(x))
	}
	n, m := rows(p.X), rows(x)
	jitter := p.jitter(n + m)
	data := noisy(p.Kernel.Within(p.X), p.noise(noise), jitter)
	new := noisy(p.Kernel.Within(x), torch.Of(0), jitter)
	across := p.Kernel.Between(p.X, x)
	joint := torch.Cat(0, torch.Cat(1, data, across), torch.Cat(1, across.Transpose(), new))
	factor := joint.Cholesky()
	block := func(from, to int) torch.Tensor { return factor.Slice(0, n, n+m).Slice(1, from, to) }
	off := factor.Slice(0, 0, n).Slice(1, 0, n).SolveTriangular(y.Sub(here), false)
	return dist.MultivariateNormalCholesky(block(0, n).MatMul(off).Add(there), block(n, n+m))
}
