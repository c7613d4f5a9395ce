package curvature

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// HVP returns the gradient ∇f and the product ∇²f v of a log posterior, both of shape [d], by a second backward pass
// (Pearlmutter 1994). It differentiates f as it is: the product with the matrix of [Hessian] is minus this.
func HVP(f infer.LogPosterior, p infer.Params, b infer.Batch, v torch.Tensor) (grad, hv torch.Tensor, err error) {
	out, err := solve("HVP", 2, p, b, Options{}, func(q *problem) []torch.Tensor {
		q.given("log posterior", f != nil)
		q.like("v", v, q.d)
		leaf, grad := q.posteriorGradient(f, 1)
		hv := secondBackward(grad, leaf, v.Unsqueeze(0))
		return []torch.Tensor{own(torch.Of(grad.T().MustDetach(false).MustSelect(0, 0, false))), own(hv.At(0))}
	})
	return out[0], out[1], err
}

// Hessian returns the NEGATIVE Hessian of a log posterior, −∇²f, [d, d]: the precision of the Laplace approximation,
// positive definite at a mode. It takes d second backward passes, several at once. The batch need not count data: like
// those of HVP and HessianDiag, it may be empty, or have tensors of shape [] and of different first dimensions.
func Hessian(f infer.LogPosterior, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("Hessian", p, b, o, func(q *problem) torch.Tensor {
		q.given("log posterior", f != nil)
		q.matrix("HessianDiag")
		out := q.zeros(q.d, q.d)
		q.hessianRows(f, float64(q.d)*float64(q.d), func(from, rows int, h torch.Tensor) {
			out.T().MustNarrow(0, int64(from), int64(rows), false).Copy_(h.T())
		})
		return finite("the Hessian", out)
	})
}

// HessianDiag returns the diagonal of the NEGATIVE Hessian of a log posterior, [d]. It takes as many second backward
// passes as the whole matrix, but no more memory than a block of rows.
func HessianDiag(f infer.LogPosterior, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("HessianDiag", p, b, o, func(q *problem) torch.Tensor {
		q.given("log posterior", f != nil)
		out := q.zeros(q.d)
		q.hessianRows(f, float64(q.d), func(from, rows int, h torch.Tensor) {
			out.T().MustNarrow(0, int64(from), int64(rows), false).Copy_(h.T().MustDiagonal(int64(from), 0, 1, false))
		})
		return finite("the diagonal of the Hessian", out)
	})
}

// posteriorGradient is the gradient of f at copies of θ, [rows, d], with the leaf of the same shape that it can be
// differentiated in.
func (q *problem) posteriorGradient(f infer.LogPosterior, rows int) (leaf, grad torch.Tensor) {
	at := func(flat torch.Tensor) torch.Tensor {
		logp, _ := f(q.at(flat), q.b)
		value := logp.T()
		if shape := logp.Shape(); len(shape) != 0 {
			fail("the log posterior returned shape %v, expected []: %w", shape, torch.ErrNotScalar)
		}
		q.alike("what the log posterior returned", torch.Of(value))
		return torch.Of(value)
	}
	leaf = torch.Must(torch.Leaf(q.p.Flat.Expand(rows, q.d)))
	var value torch.Tensor
	if rows == 1 {
		value = at(leaf.Reshape(q.d))
	} else {
		value = torch.Of(torch.Must(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			return []torch.Tensor{at(in[0])}, nil
		}, []torch.Tensor{leaf}, nil))[0].T().MustSum(q.dtype, false))
	}
	tracked("the log posterior", "the params", value)
	g := torch.Must(torch.Grad([]torch.Tensor{value}, []torch.Tensor{leaf}, &torch.GradOptions{CreateGraph: true}))
	return leaf, g[0]
}

// secondBackward is row r of ∇²f times row r of v. The gradient of a linear f has no graph.
func secondBackward(grad, leaf, v torch.Tensor) torch.Tensor {
	if !torch.Must(grad.T().KelvinDescribe()).RequiresGrad {
		return torch.Of(leaf.T().MustZerosLike(false))
	}
	return torch.Must(torch.Grad([]torch.Tensor{grad}, []torch.Tensor{leaf},
		&torch.GradOptions{Weights: []torch.Tensor{v}, KeepGraph: true, AllowUnused: true}))[0]
}

// hessianRows calls use with block after block of rows of −∇²f. All blocks share one graph, of copies of θ: the blocks
// differ in the unit vectors alone. A copy evaluates the whole batch; its intermediates are taken to be as many numbers
// for each datum as there are parameters.
func (q *problem) hessianRows(f infer.LogPosterior, result float64, use func(from, rows int, h torch.Tensor)) {
	rows := q.rows(q.d, result, rowNumbers*float64(q.d)*float64(1+q.n))
	leaf, grad := q.posteriorGradient(f, rows)
	for from := 0; from < q.d; from += rows {
		m := min(rows, q.d-from)
		inScope(func() {
			units := q.zeros(rows, q.d)
			units.T().MustNarrow(1, int64(from), int64(m), false).MustDiagonal(0, 0, 1, false).MustFill_(ts.FloatScalar(1))
			use(from, m, torch.Of(secondBackward(grad, leaf, units).T().MustNarrow(0, 0, int64(m), false).MustNeg(false)))
		})
	}
}
