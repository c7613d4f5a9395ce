package curvature

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Fisher returns the empirical Fisher matrix Σ_i g_i g_iᵀ, [d, d]. (Kunstner et al. 2019, equation 3.)
func Fisher(f PerDatum, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("Fisher", p, b, o, func(q *problem) torch.Tensor {
		q.overData("density of each datum", f != nil)
		q.matrix("FisherDiag")
		sum := q.zeros(q.d, q.d)
		q.gradients(f, float64(q.d)*float64(q.d), func(_, _ int, _ torch.Tensor, grads []torch.Tensor) {
			g := joined(grads)
			sum.T().MustAddmm_(g.T().MustT(false), g.T())
		})
		return q.summed("the Fisher matrix", sum)
	})
}

// FisherDiag returns the diagonal of the empirical Fisher matrix, Σ_i g_i², [d]. It never holds more than
// one block of rows.
func FisherDiag(f PerDatum, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("FisherDiag", p, b, o, func(q *problem) torch.Tensor {
		q.overData("density of each datum", f != nil)
		sum := q.zeros(q.d)
		q.gradients(f, float64(q.d), func(_, rows int, _ torch.Tensor, g []torch.Tensor) {
			q.addSquares(sum, g, rows, torch.Tensor{})
		})
		return q.summed("the diagonal of the Fisher matrix", sum)
	})
}

// addSquares adds Σ_r c_r g_r² to sum, [d], for g of shape [rows, d] and c of shape [rows], by default 1. A single
// row, which may be all that fits, takes no memory besides.
func addSquares(sum, g torch.Tensor, rows int, c torch.Tensor) {
	switch {
	case rows == 1 && c == (torch.Tensor{}):
		row := g.At(0).T()
		sum.T().MustAddcmul_(row, row)
	case c == (torch.Tensor{}):
		sum.T().MustAdd_(g.Square().T().MustSumDimIntlist([]int64{0}, false, g.T().DType(), false))
	default:
		sum.T().MustAdd_(c.Unsqueeze(0).T().MustMm(g.Square().T(), false).MustSelect(0, 0, false))
	}
}

// FVP returns the product of the empirical Fisher matrix with a vector, Σ_i g_i (g_iᵀ v), for v of shape [d]. The batch
// is evaluated as a whole, by three backward passes and without a matrix: Options.Memory plays no part.
func FVP(f PerDatum, p infer.Params, b infer.Batch, v torch.Tensor, o Options) (torch.Tensor, error) {
	return solveOne("FVP", p, b, o, func(q *problem) torch.Tensor {
		q.overData("density of each datum", f != nil)
		q.like("v", v, q.d)
		leaf := torch.Must(torch.Leaf(q.p.Flat))
		l := f(q.at(leaf), q.b).T()
		q.returned("the density of each datum", torch.Of(l), q.n, true)
		tracked("the density of each datum", "the params", torch.Of(l))
		return q.summed("the product with the Fisher matrix", own(vjp(torch.Of(l), leaf, jvp(torch.Of(l), leaf, v))))
	})
}

// jvp is J v for J = ∂y/∂x, in the shape of y: the gradient in u of (Jᵀu)·v, which is linear in u (the double-backward
// trick, Townsend 2017).
func jvp(y, x, v torch.Tensor) torch.Tensor {
	u := torch.Must(torch.Leaf(torch.Of(y.T().MustZerosLike(false))))
	g := torch.Must(torch.Grad([]torch.Tensor{y}, []torch.Tensor{x},
		&torch.GradOptions{Weights: []torch.Tensor{u}, CreateGraph: true}))
	return torch.Must(torch.Grad(g, []torch.Tensor{u}, &torch.GradOptions{Weights: []torch.Tensor{v}, KeepGraph: true,
		AllowUnused: true}))[0]
}

// vjp is Jᵀ u for J = ∂y/∂x, in the shape of x. The graph of y is kept.
func vjp(y, x, u torch.Tensor) torch.Tensor { return leaves{x}.gradient(y, u, true)[0] }
