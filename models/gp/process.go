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
	// Jitter is the part of the variance that is added to the diagonal, against rounding; 0 means 1e-9.
	Jitter float64
}

const defaultJitter = 1e-9

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
	if p.Jitter == 0 {
		p.Jitter = defaultJitter
	}
	if !(p.Jitter > 0 && !math.IsInf(p.Jitter, 0)) {
		fail("Process.Jitter", fmt.Sprint(p.Jitter), "it must be finite and greater than 0, or 0 for the default of %g",
			defaultJitter)
	}
	return p
}

// covariance is that of f + noise at x.
func (p Process) covariance(x, noise torch.Tensor) torch.Tensor {
	extra := p.Kernel.Variance(x).Mul(p.Jitter).Add(noise.Square())
	return p.Kernel.Within(x).Add(extra.Diag())
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
//	y ~ N(Mean, K + Jitter diag K + noise² I)
func (p Process) Marginal(noise any) dist.Distribution {
	p = p.checked()
	return dist.MultivariateNormal(p.Mean, p.covariance(p.X, p.noise(noise)))
}

// Latent declares f as a latent variable, and returns its values [n], for any likelihood: f = Mean + L z, with z, the
// variable name_z, of independent standard normal numbers and L Lᵀ = K + Jitter diag K. The draws have f as name.
func (p Process) Latent(c *ppl.Ctx, name string) torch.Tensor {
	p = p.checked()
	z := c.Sample(name+"_z", dist.Normal(0, 1).Expand(rows(p.X)))
	factor := p.covariance(p.X, torch.Of(0)).Cholesky()
	return c.Deterministic(name, factor.MatMul(z).Add(p.Mean))
}

// Given is the distribution of f at new inputs x, [m, d], given y = f + noise at the n inputs of the process; with
// noise 0 it is that given f itself. Its mean, covariance and draws are predictions (Rasmussen and Williams 2006,
// algorithm 2.1): with L Lᵀ = K + Jitter diag K + noise² I, k* the covariances of data and new inputs,
//
//	mean + k*ᵀ L⁻ᵀ L⁻¹ (y − Mean),  K** − (L⁻¹ k*)ᵀ L⁻¹ k* + Jitter diag K**
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
	factor := p.covariance(p.X, p.noise(noise)).Cholesky()
	across := factor.SolveTriangular(p.Kernel.Between(p.X, x), false)
	off := factor.SolveTriangular(y.Sub(here), false)
	loc := across.Transpose().MatMul(off).Add(there)
	return dist.MultivariateNormal(loc, p.covariance(x, torch.Of(0)).Sub(across.Transpose().MatMul(across)))
}
