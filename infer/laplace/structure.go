package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// structure is that of a precision P. Its functions of a state are called inside torch.Do, and may panic with errors
// that it returns; with one that has no chain axis where they say so.
type structure interface {
	state(g Gaussian) Posterior // a state in the type that those of the structure have
	sums() []string             // the names of the curvature's tensors
	// size is what its tensors are and how many numbers they have, and what takes fewer.
	size(name string, p infer.Params) (what string, numbers float64, instead string)
	// prior is a prior precision as states have it.
	prior(name string, at infer.Params, prior Precision) torch.Tensor

	precision(s Gaussian) torch.Tensor
	root(s Gaussian, z torch.Tensor) torch.Tensor  // P^(−1/2) z for z of shape [K, d, m]
	solve(s Gaussian, g torch.Tensor) torch.Tensor // P⁻¹ g for g of shape [K, d, 1]
	logDet(s Gaussian) float64                     // log |P| of a single chain
	// quadratic returns x ↦ xᵀ P x for x of shape [d], with P of a single chain. The tensors that it needs are kept.
	quadratic(s Gaussian, scope *torch.Scope) func(x torch.Tensor) torch.Tensor
	spread(s Gaussian) torch.Tensor // a root S of P⁻¹ = S Sᵀ of a single chain, or for a diagonal P⁻¹ its elements
	// search finds the best prior precision of each site, for the distances delta from its mean.
	search(s Gaussian, delta []float64, perSite bool) map[string]float64
}

// nameOf is the name of a structure's states, for messages.
func nameOf(s structure) string { return fmt.Sprintf("%T", s.state(Gaussian{})) }

// diagonal has Curvature, Prior and Jacobian of the shape of the point.
type diagonal struct{}

func (diagonal) state(g Gaussian) Posterior { return DiagState{g} }

func (diagonal) sums() []string { return []string{"curvature"} }

func (diagonal) size(string, infer.Params) (what string, numbers float64, instead string) {
	return
}

func (diagonal) prior(name string, at infer.Params, prior Precision) torch.Tensor {
	return prior.diagonal(name, at)
}

func (diagonal) precision(s Gaussian) torch.Tensor {
	return torch.Of(s.sum().T().MustAddScalar(ts.FloatScalar(s.Damping), false))
}

// positive is P after a check that each element is positive.
func (d diagonal) positive(s Gaussian) torch.Tensor {
	p := d.precision(s)
	if least := approx.Item(torch.Of(p.T().MustMin(false))); least > 0 {
		return p // and none is NaN, which would be the minimum
	}
	dim := s.Params.Layout.Dim()
	for i, x := range torch.Must(torch.ToSlice[float64](p)) {
		what := s.Params.Layout.At(i % dim)
		if math.IsNaN(x) {
			approx.Fail("%s: the precision of %s is %w", nameOf(d), what, infer.ErrNonFinite)
		}
		if x > 0 {
			continue
		}
		if s.Params.Batched() {
			what += fmt.Sprintf(" of chain %d", i/dim)
		}
		why := "the data say nothing about it, and there is no prior"
		if x < 0 {
			why = "the log likelihood is not concave in the outputs, use a Fisher method"
		}
		approx.Fail("%s: the precision of %s is %g: %s: give a PriorPrecision above 0, or Damping: %w", nameOf(d), what, x,
			why, curvature.ErrIndefinite)
	}
	return p
}

// column is a tensor of the shape of the point as [K, d, 1].
func column(p infer.Params, x torch.Tensor) torch.Tensor {
	return x.Reshape(p.Chains(), -1, 1)
}

func (d diagonal) root(s Gaussian, z torch.Tensor) torch.Tensor {
	return z.Div(column(s.Params, d.positive(s).Sqrt()))
}

func (d diagonal) solve(s Gaussian, g torch.Tensor) torch.Tensor {
	return g.Div(column(s.Params, d.positive(s)))
}

func (d diagonal) logDet(s Gaussian) float64 {
	return total(d.positive(s).Log())
}

func (d diagonal) quadratic(s Gaussian, scope *torch.Scope) func(x torch.Tensor) torch.Tensor {
	p := d.precision(s)
	scope.Keep(p)
	return func(x torch.Tensor) torch.Tensor {
		return torch.Of(x.Square().Mul(p).T().MustSum(p.T().DType(), false))
	}
}

func (d diagonal) spread(s Gaussian) torch.Tensor {
	return d.positive(s).Reciprocal()
}

func (diagonal) search(s Gaussian, delta []float64, perSite bool) map[string]float64 {
	curve := torch.Must(torch.ToSlice[float64](s.likelihood()))
	blocks := make([]block, len(s.Params.Layout.Sites))
	for i, site := range s.Params.Layout.Sites {
		blocks[i].sites, blocks[i].eps = []string{site.Name}, method.Epsilon(s.Params.Flat)
		for j := site.Offset; j < site.Offset+site.Size; j++ {
			blocks[i].add(curve[j]+s.Damping, delta[j])
		}
	}
	return separate(blocks, perSite)
}

// matrix has Curvature, Prior and Jacobian of shape [d, d] or [K, d, d].
type matrix struct{}

func (matrix) state(g Gaussian) Posterior { return DenseState{g} }

func (matrix) sums() []string { return []string{"curvature"} }

func (matrix) size(_ string, p infer.Params) (what string, numbers float64, instead string) {
	d, k := p.Layout.Dim(), p.Chains()
	return fmt.Sprintf("a precision of shape [%d, %d] for each of %d chains", d, d, k),
		float64(d) * float64(d) * float64(k),
		"use a diagonal method or KFAC, or the last layer alone by infer.Subspace"
}

func (matrix) prior(name string, at infer.Params, prior Precision) torch.Tensor {
	return prior.matrix(name, at)
}

func (matrix) precision(s Gaussian) torch.Tensor {
	p := s.sum()
	p.T().MustDiagonal(0, -2, -1, false).MustAddScalar_(ts.FloatScalar(s.Damping))
	return p
}

// factor is the lower Cholesky factor L of P = L Lᵀ.
func (m matrix) factor(s Gaussian) torch.Tensor {
	return torch.Must(approx.Cholesky(nameOf(m)+": the precision", m.precision(s), "give a larger PriorPrecision or "+
		"Damping, use a Gauss-Newton method in place of the Hessian, or find a better optimum with more updates "+
		"(infer.Options.Warmup)"))
}

func (m matrix) root(s Gaussian, z torch.Tensor) torch.Tensor {
	l := m.factor(s)
	if !s.Params.Batched() {
		l = l.Unsqueeze(0)
	}
	return torch.Of(approx.T(l).T().MustLinalgSolveTriangular(z.T(), true, true, false, false))
}

func (m matrix) solve(s Gaussian, g torch.Tensor) torch.Tensor {
	return torch.Of(g.T().MustCholeskySolve(m.factor(s).T(), false, false))
}

func (m matrix) logDet(s Gaussian) float64 {
	return 2 * total(torch.Of(m.factor(s).T().MustDiagonal(0, -2, -1, false).MustLog(false)))
}

func (m matrix) quadratic(s Gaussian, scope *torch.Scope) func(x torch.Tensor) torch.Tensor {
	p := m.precision(s)
	scope.Keep(p)
	return func(x torch.Tensor) torch.Tensor {
		return torch.Of(p.MatMul(x).Mul(x).T().MustSum(p.T().DType(), false))
	}
}

func (m matrix) spread(s Gaussian) torch.Tensor {
	l := m.factor(s) // P⁻¹ = L⁻ᵀ L⁻¹
	return torch.Of(approx.T(l).T().MustLinalgSolveTriangular(approx.Eye(s.Params.Layout.Dim(), l).T(), true, true,
		false, false))
}

func (matrix) search(s Gaussian, delta []float64, perSite bool) map[string]float64 {
	// In float64: the rounding of a float32 curvature stays, but the search adds none of its own.
	fixed := s.likelihood().T().MustTotype(gotch.Double, false).MustAdd(s.Curvature.T().MustZerosLike(false), false)
	fixed.MustDiagonal(0, 0, 1, false).MustAddScalar_(ts.FloatScalar(s.Damping))
	all := block{sites: s.Params.Layout.Names(), eps: method.Epsilon(s.Curvature)}
	all.eigen = torch.Must(torch.ToSlice[float64](torch.Of(fixed.MustLinalgEigvalsh("L", false))))
	if !perSite {
		for _, x := range delta {
			all.square += x * x
		}
		return separate([]block{all}, false)
	}
	all.clean()
	c := coupled{layout: s.Params.Layout, fixed: torch.Of(fixed), prior: s.Prior, delta: delta}
	return c.maximize()
}
