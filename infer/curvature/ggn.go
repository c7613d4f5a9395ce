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
func GGN(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (*ts.Tensor, error) {
	return solveOne("GGN", p, b, o, func(q *problem) *ts.Tensor {
		q.matrix("GGNDiag")
		sum := q.zeros(q.d, q.d)
		q.factors(f, outer, float64(q.d)*float64(q.d), func(_ int64, c *ts.Tensor, grads []*ts.Tensor) {
			g := joined(grads)
			left := g
			if c != nil {
				left = g.MustMul(c.MustUnsqueeze(1, false), false)
			}
			sum.MustAddmm_(left.MustT(false), g)
		})
		return q.summed("the Gauss-Newton matrix", sum)
	})
}

// GGNDiag returns the diagonal of the Gauss-Newton matrix, [d]. With H_i = Σ_k λ_ik u_ik u_ikᵀ it is Σ_ik
// λ_ik (J_iᵀ u_ik)²: one row of d numbers for each eigenvector, made in blocks of data, and never the n·C·d
// numbers of the Jacobian.
func GGNDiag(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (*ts.Tensor, error) {
	return solveOne("GGNDiag", p, b, o, func(q *problem) *ts.Tensor {
		sum := q.zeros(q.d)
		q.factors(f, outer, float64(q.d), func(rows int64, c *ts.Tensor, g []*ts.Tensor) { q.addSquares(sum, g, rows, c) })
		return q.summed("the diagonal of the Gauss-Newton matrix", sum)
	})
}

// GGNVP returns the product of the Gauss-Newton matrix with a vector, Σ_i J_iᵀ H_i J_i v, for v of shape [d]. The batch
// is evaluated as a whole, by a few backward passes and without a matrix: Options.Memory plays no part.
func GGNVP(f Forward, outer Outer, p infer.Params, b infer.Batch, v *ts.Tensor, o Options) (*ts.Tensor, error) {
	return solveOne("GGNVP", p, b, o, func(q *problem) *ts.Tensor {
		q.overData("forward function or the outer density", f != nil && outer != nil)
		q.like("v", v, q.d)
		leaf := torch.Must(torch.Leaf(q.p.Flat))
		z := f(q.at(leaf), q.b).T()
		q.returned("the forward function", z, q.n, false)
		tracked("the forward function", "the params", z)
		score := q.score(outer, z, q.b, q.n)
		out := vjp(z, leaf, score.minusHessian(jvp(z, leaf, v)))
		return q.summed("the product with the Gauss-Newton matrix", own(out))
	})
}

// score is the gradient of the outer density in z, ready to be differentiated once more.
type score struct {
	z, grad *ts.Tensor
}

// score differentiates the outer density at the values of z, of n data.
func (q *problem) score(outer Outer, z *ts.Tensor, b infer.Batch, n int64) score {
	leaf := torch.Must(torch.Leaf(z))
	l := q.densities(outer, leaf, b, n)
	tracked("the outer density", "the outputs", l)
	g := torch.Must(torch.Grad([]*ts.Tensor{l.MustSum(q.dtype, false)}, []*ts.Tensor{leaf},
		&torch.GradOptions{CreateGraph: true}))
	return score{z: leaf, grad: g[0]}
}

// minusHessian is −(∂² Σ_i log p(y_i|z_i)/∂z²) u, in the shape of z. A density that is linear in z has none.
func (s score) minusHessian(u *ts.Tensor) *ts.Tensor {
	if !torch.Must(s.grad.KelvinDescribe()).RequiresGrad {
		return s.z.MustZerosLike(false)
	}
	h := torch.Must(torch.Grad([]*ts.Tensor{s.grad}, []*ts.Tensor{s.z},
		&torch.GradOptions{Weights: []*ts.Tensor{u.MustReshapeAs(s.z, false)}, KeepGraph: true, AllowUnused: true}))
	return h[0].MustNeg(false)
}

// outerHessians are the blocks H_i, [rows, C, C], of a block of outputs z: column c of all of them is one product,
// because datum i's density depends on z_i alone.
func (q *problem) outerHessians(outer Outer, z *ts.Tensor, b infer.Batch, rows, c int64) *ts.Tensor {
	s := q.score(outer, z.MustDetach(false), b, rows)
	columns := make([]*ts.Tensor, c)
	for k := range columns {
		columns[k] = s.minusHessian(q.unit(rows, c, int64(k))).MustReshape([]int64{rows, c}, false)
	}
	return ts.MustStack(columns, 2)
}

// unit is [rows, c] with ones in one column.
func (q *problem) unit(rows, c, column int64) *ts.Tensor {
	u := q.zeros(rows, c)
	u.MustNarrow(1, column, 1, false).MustFill_(ts.FloatScalar(1))
	return u
}

// factors calls use with the rows g_ik = √|λ_ik| J_iᵀ u_ik, [rows, d] when they are joined, and the signs of λ_ik,
// [rows], nil where none is negative, for block after block of data and each eigenvector: the Gauss-Newton matrix is
// the sum of all sign(λ_ik) g_ik g_ikᵀ.
func (q *problem) factors(f Forward, outer Outer, result float64,
	use func(rows int64, signs *ts.Tensor, g []*ts.Tensor)) {
	q.overData("forward function or the outer density", f != nil && outer != nil)
	c := q.outputs(f)
	q.need(fmt.Sprintf("the second derivative in the %d outputs of a datum, [%d, %d],", c, c, c), float64(c)*float64(c),
		"use FisherDiag or GGNVP, which do not need it")
	row := rowNumbers*float64(q.width()) + 3*float64(c)*float64(c)
	q.blocks(q.rows(q.n, result, row), func(_, rows int64, block infer.Batch) {
		leaves, z := q.eachRow("the forward function", block, rows, false, f)
		h := finite("the second derivative of the outer density", q.outerHessians(outer, z, block, rows, c))
		values, vectors := eigen(h, rows, c)
		values = cleaned(values, c)
		for k := range c {
			inScope(func() {
				lambda := values.MustSelect(1, k, false)
				size := lambda.MustAbs(false)
				if torch.Must(torch.Item(size.MustMax(false))) == 0 {
					return
				}
				u := vectors.MustSelect(2, k, false).MustMul(size.MustSqrt(false).MustUnsqueeze(1, false), false)
				g := leaves.gradient(z, u.MustReshapeAs(z, false), true)
				use(rows, signsOf(lambda), g)
			})
		}
	})
}

// signsOf are those of eigenvalues, nil where none is negative.
func signsOf(values *ts.Tensor) *ts.Tensor {
	if torch.Must(torch.Item(values.MustMin(false))) < 0 {
		return values.MustSign(false)
	}
	return nil
}

// eigen are the eigenvalues, [rows, C], and in columns the eigenvectors, [rows, C, C], of symmetric matrices.
func eigen(h *ts.Tensor, rows, c int64) (values, vectors *ts.Tensor) {
	if c == 1 {
		return h.MustReshape([]int64{rows, 1}, false), h.MustOnesLike(false)
	}
	return h.MustLinalgEigh("L", false)
}

// outputs is C, the numbers that the model gives for a datum, from the first one.
func (q *problem) outputs(f Forward) int64 {
	c := int64(1)
	try(torch.NoGrad(func() error {
		inScope(func() {
			for _, n := range q.returned("the forward function", f(q.p, q.blockOf(0, 1)).T(), 1, false) {
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
func cleaned(values *ts.Tensor, c int64) *ts.Tensor {
	size := values.MustAbs(false)
	limit := size.MustAmax([]int64{1}, true, false).MustMulScalar(ts.FloatScalar(float64(c)*method.Epsilon(values)), false)
	return values.MustMul(size.MustGtTensor(limit, false).MustTotype(values.DType(), false), false)
}

// GGNFactor returns a factor A of the Gauss-Newton matrix, AᵀA = Σ_i J_iᵀ H_i J_i, of shape [m, d] with m at most 2d.
// Its rows are √λ_ik J_iᵀ u_ik, with the eigenvalues and eigenvectors of H_i, or where there are more than 2d of them
// those of their QR decompositions. The matrix itself has the square of the condition number of A, which rounding may
// not leave positive. A density that is not log-concave in z has no such factor: an error that wraps [ErrIndefinite].
func GGNFactor(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (*ts.Tensor, error) {
	return solveOne("GGNFactor", p, b, o, func(q *problem) *ts.Tensor {
		q.overData("forward function or the outer density", f != nil && outer != nil)
		c := q.outputs(f)
		most := int64(min(float64(q.n)*float64(c), 2*float64(q.d)))
		q.need(fmt.Sprintf("a factor of shape [%d, %d]", most, q.d), float64(most)*float64(q.d), dense("GGNDiag"))
		a, count := q.zeros(most, q.d), int64(0)
		q.factors(f, outer, float64(most)*float64(q.d), func(rows int64, signs *ts.Tensor, grads []*ts.Tensor) {
			g := joined(grads)
			if signs != nil {
				fail("log p(y|z) is not concave in the outputs z: the second derivative is %w", ErrIndefinite)
			}
			if count+rows > most {
				_, g = ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{a.MustNarrow(0, 0, count, false), g}, 0), "r")
				count, rows = 0, g.MustSize()[0]
			}
			a.MustNarrow(0, count, rows, false).Copy_(g)
			count += rows
		})
		if q.normalize {
			a.MustDivScalar_(ts.FloatScalar(math.Sqrt(float64(q.n))))
		}
		return own(finite("the factor of the Gauss-Newton matrix", a).MustNarrow(0, 0, count, false))
	})
}
