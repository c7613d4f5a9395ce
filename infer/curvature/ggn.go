package curvature

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// GGN returns the generalised Gauss-Newton matrix Σ_i J_iᵀ H_i J_i, [d, d], with J_i = ∂z_i/∂θ and H_i = −∂² log
// p(y_i|z_i)/∂z_i². (Schraudolph 2002; Martens 2020, section 8.)
func GGN(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("GGN", p, b, o, func(q *problem) torch.Tensor {
		q.matrix("GGNDiag")
		sum := q.zeros(q.d, q.d)
		q.factors(f, outer, float64(q.d)*float64(q.d), func(_ int, c torch.Tensor, grads []torch.Tensor) {
			g := joined(grads)
			left := g
			if c != (torch.Tensor{}) {
				left = g.Mul(c.Unsqueeze(1).T())
			}
			sum.T().MustAddmm_(left.T().MustT(false), g.T())
		})
		return q.summed("the Gauss-Newton matrix", sum)
	})
}

// GGNDiag returns the diagonal of the Gauss-Newton matrix, [d]. With H_i = Σ_k λ_ik u_ik u_ikᵀ it is Σ_ik
// λ_ik (J_iᵀ u_ik)²: one row of d numbers for each eigenvector, made in blocks of data, and never the n·C·d
// numbers of the Jacobian.
func GGNDiag(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("GGNDiag", p, b, o, func(q *problem) torch.Tensor {
		sum := q.zeros(q.d)
		q.factors(f, outer, float64(q.d), func(rows int, c torch.Tensor,
			g []torch.Tensor) {
			q.addSquares(sum, g, rows, c)
		})
		return q.summed("the diagonal of the Gauss-Newton matrix", sum)
	})
}

// GGNVP returns the product of the Gauss-Newton matrix with a vector, Σ_i J_iᵀ H_i J_i v, for v of shape [d]. The batch
// is evaluated as a whole, by a few backward passes and without a matrix: Options.Memory plays no part.
func GGNVP(f Forward, outer Outer, p infer.Params, b infer.Batch, v torch.Tensor, o Options) (torch.Tensor, error) {
	return solveOne("GGNVP", p, b, o, func(q *problem) torch.Tensor {
		q.overData("forward function or the outer density", f != nil && outer != nil)
		q.like("v", v, q.d)
		leaf := torch.Must(torch.Leaf(q.p.Flat))
		z := f(q.at(leaf), q.b).T()
		q.returned("the forward function", torch.Of(z), q.n, false)
		tracked("the forward function", "the params", torch.Of(z))
		score := q.score(outer, torch.Of(z), q.b, q.n)
		out := vjp(torch.Of(z), leaf, score.minusHessian(jvp(torch.Of(z), leaf, v)))
		return q.summed("the product with the Gauss-Newton matrix", own(out))
	})
}

// score is the gradient of the outer density in z, ready to be differentiated once more.
type score struct {
	z, grad torch.Tensor
}

// score differentiates the outer density at the values of z, of n data.
func (q *problem) score(outer Outer, z torch.Tensor, b infer.Batch, n int) score {
	leaf := torch.Must(torch.Leaf(z))
	l := q.densities(outer, leaf, b, n)
	tracked("the outer density", "the outputs", l)
	g := torch.Must(torch.Grad([]torch.Tensor{torch.Of(l.T().MustSum(q.dtype, false))}, []torch.Tensor{leaf},
		&torch.GradOptions{CreateGraph: true}))
	return score{z: leaf, grad: g[0]}
}

// minusHessian is −(∂² Σ_i log p(y_i|z_i)/∂z²) u, in the shape of z. A density that is linear in z has none.
func (s score) minusHessian(u torch.Tensor) torch.Tensor {
	if !torch.Must(s.grad.T().KelvinDescribe()).RequiresGrad {
		return torch.Of(s.z.T().MustZerosLike(false))
	}
	h := torch.Must(torch.Grad([]torch.Tensor{s.grad}, []torch.Tensor{s.z},
		&torch.GradOptions{Weights: []torch.Tensor{torch.Of(u.T().MustReshapeAs(s.z.T(), false))}, KeepGraph: true,
			AllowUnused: true}))
	return h[0].Neg()
}

// outerHessians are the blocks H_i, [rows, C, C], of a block of outputs z: column c of all of them is one product,
// because datum i's density depends on z_i alone.
func (q *problem) outerHessians(outer Outer, z torch.Tensor, b infer.Batch, rows, c int) torch.Tensor {
	s := q.score(outer, torch.Of(z.T().MustDetach(false)), b, rows)
	columns := make([]torch.Tensor, c)
	for k := range columns {
		columns[k] = s.minusHessian(q.unit(rows, c, k)).Reshape(rows, c)
	}
	return torch.Stack(2, columns)
}

// unit is [rows, c] with ones in one column.
func (q *problem) unit(rows, c, column int) torch.Tensor {
	u := q.zeros(rows, c)
	u.T().MustNarrow(1, int64(column), 1, false).MustFill_(ts.FloatScalar(1))
	return u
}

// factors calls use with the rows g_ik = √|λ_ik| J_iᵀ u_ik, [rows, d] when they are joined, and the signs of λ_ik,
// [rows], nil where none is negative, for block after block of data and each eigenvector: the Gauss-Newton matrix is
// the sum of all sign(λ_ik) g_ik g_ikᵀ.
func (q *problem) factors(f Forward, outer Outer, result float64,
	use func(rows int, signs torch.Tensor, g []torch.Tensor)) {
	q.overData("forward function or the outer density", f != nil && outer != nil)
	c := q.outputs(f)
	q.need(fmt.Sprintf("the second derivative in the %d outputs of a datum, [%d, %d],", c, c, c), float64(c)*float64(c),
		"use FisherDiag or GGNVP, which do not need it")
	row := rowNumbers*float64(q.width()) + 3*float64(c)*float64(c)
	q.blocks(q.rows(q.n, result, row), func(_, rows int, block infer.Batch) {
		leaves, z := q.eachRow("the forward function", block, rows, false, f)
		h := finite("the second derivative of the outer density", q.outerHessians(outer, z, block, rows, c))
		values, vectors := eigen(h, rows, c)
		values = cleaned(values, c)
		for k := range c {
			inScope(func() {
				lambda := values.T().MustSelect(1, int64(k), false)
				size := lambda.MustAbs(false)
				if torch.Of(size.MustMax(false)).Item() == 0 {
					return
				}
				u := vectors.T().MustSelect(2, int64(k), false).MustMul(size.MustSqrt(false).MustUnsqueeze(1, false), false)
				g := leaves.gradient(z, torch.Of(u.MustReshapeAs(z.T(), false)), true)
				use(rows, signsOf(torch.Of(lambda)), g)
			})
		}
	})
}

// signsOf are those of eigenvalues, nil where none is negative.
func signsOf(values torch.Tensor) torch.Tensor {
	if torch.Of(values.T().MustMin(false)).Item() < 0 {
		return torch.Of(values.T().MustSign(false))
	}
	return torch.Tensor{}
}

// eigen are the eigenvalues, [rows, C], and in columns the eigenvectors, [rows, C, C], of symmetric matrices.
func eigen(h torch.Tensor, rows, c int) (values, vectors torch.Tensor) {
	if c == 1 {
		return h.Reshape(rows, 1), torch.Of(h.T().MustOnesLike(false))
	}
	l, v := h.T().MustLinalgEigh("L", false)
	return torch.Of(l), torch.Of(v)
}

// outputs is C, the numbers that the model gives for a datum, from the first one.
func (q *problem) outputs(f Forward) int {
	c := 1
	try(torch.NoGrad(func() error {
		inScope(func() {
			for _, n := range q.returned("the forward function", f(q.p, q.blockOf(0, 1)), 1, false) {
				c *= n
			}
		})
		return nil
	}))
	if c == 0 {
		fail("the forward function returned no numbers for a datum")
	}
	return c
}

// cleaned are eigenvalues, [rows, C], with zeros for those that are rounding errors of their matrix: they are within
// C·ε of the largest one. A softmax has one such eigenvalue.
func cleaned(values torch.Tensor, c int) torch.Tensor {
	size := values.Abs().T()
	limit := size.MustAmax([]int64{1}, true, false).MustMulScalar(ts.FloatScalar(float64(c)*method.Epsilon(values)), false)
	return values.Mul(size.MustGtTensor(limit, false).MustTotype(values.T().DType(), false))
}

// GGNFactor returns a factor A of the Gauss-Newton matrix, AᵀA = Σ_i J_iᵀ H_i J_i, of shape [m, d] with m at most 2d.
// Its rows are √λ_ik J_iᵀ u_ik, with the eigenvalues and eigenvectors of H_i, or where there are more than 2d of them
// those of their QR decompositions. The matrix itself has the square of the condition number of A, which rounding may
// not leave positive. A density that is not log-concave in z has no such factor: an error that wraps [ErrIndefinite].
func GGNFactor(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (torch.Tensor, error) {
	return solveOne("GGNFactor", p, b, o, func(q *problem) torch.Tensor {
		q.overData("forward function or the outer density", f != nil && outer != nil)
		c := q.outputs(f)
		most := int(min(float64(q.n)*float64(c), 2*float64(q.d)))
		q.need(fmt.Sprintf("a factor of shape [%d, %d]", most, q.d), float64(most)*float64(q.d), dense("GGNDiag"))
		a, count := q.zeros(most, q.d), 0
		q.factors(f, outer, float64(most)*float64(q.d), func(rows int, signs torch.Tensor, grads []torch.Tensor) {
			g := joined(grads)
			if signs != (torch.Tensor{}) {
				fail("log p(y|z) is not concave in the outputs z: the second derivative is %w", ErrIndefinite)
			}
			if count+rows > most {
				_, r := ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{a.T().MustNarrow(0, 0, int64(count), false), g.T()}, 0), "r")
				g = torch.Of(r)
				count, rows = 0, g.Shape()[0]
			}
			a.T().MustNarrow(0, int64(count), int64(rows), false).Copy_(g.T())
			count += rows
		})
		if q.normalize {
			a.T().MustDivScalar_(ts.FloatScalar(math.Sqrt(float64(q.n))))
		}
		return own(torch.Of(finite("the factor of the Gauss-Newton matrix", a).T().MustNarrow(0, 0, int64(count), false)))
	})
}
