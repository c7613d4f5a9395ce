package curvature

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Gradients returns the log density of each datum, [n], and its gradients g_i, [n, d], made in blocks of rows. It is
// refused where the n·d numbers do not fit. Values that are not finite are returned as they are.
func Gradients(f PerDatum, p infer.Params, b infer.Batch, o Options) (values, grads torch.Tensor, err error) {
	out, err := solve("Gradients", 2, p, b, o, func(q *problem) []torch.Tensor {
		q.overData("density of each datum", f != nil)
		result := float64(q.n) * float64(q.d)
		q.need(fmt.Sprintf("gradients of shape [%d, %d]", q.n, q.d), result,
			"take a smaller batch, or use GradientSums, FisherDiag or FVP, which sum over the data")
		values, grads := q.zeros(q.n), q.zeros(q.n, q.d)
		q.gradients(f, result, func(from, rows int, v torch.Tensor, g []torch.Tensor) {
			values.T().MustNarrow(0, int64(from), int64(rows), false).Copy_(v.T())
			grads.T().MustNarrow(0, int64(from), int64(rows), false).Copy_(joined(g).T())
		})
		return []torch.Tensor{values, grads}
	})
	return out[0], out[1], err
}

// GradientSums returns sums over the data of the log densities, Σ_i l_i of shape [], their gradients, Σ_i g_i of shape
// [d], and the squares of these, Σ_i g_i², [d], and never holds more than one block of rows. Sums that are not finite
// are returned as they are.
func GradientSums(f PerDatum, p infer.Params, b infer.Batch, o Options) (value, grad, squares torch.Tensor, err error) {
	out, err := solve("GradientSums", 3, p, b, o, func(q *problem) []torch.Tensor {
		q.overData("density of each datum", f != nil)
		sums := []torch.Tensor{q.zeros(), q.zeros(q.d), q.zeros(q.d)}
		q.gradients(f, 2*float64(q.d), func(_, rows int, v torch.Tensor, grads []torch.Tensor) {
			g := joined(grads)
			sums[0].T().MustAdd_(v.T().MustSum(q.dtype, false))
			sums[1].T().MustAdd_(g.T().MustSumDimIntlist([]int64{0}, false, q.dtype, false))
			addSquares(sums[2], g, rows, torch.Tensor{})
		})
		if q.normalize {
			for _, sum := range sums {
				sum.T().MustDivScalar_(ts.FloatScalar(float64(q.n)))
			}
		}
		return sums
	})
	return out[0], out[1], out[2], err
}

// gradients calls use with block after block of values [rows] and gradients, [rows, d] when they are joined.
func (q *problem) gradients(f PerDatum, result float64,
	use func(from, rows int, values torch.Tensor, grads []torch.Tensor)) {
	q.blocks(q.rows(q.n, result, rowNumbers*float64(q.width())), func(from, rows int, block infer.Batch) {
		leaves, out := q.eachRow("the density of each datum", block, rows, true, f)
		use(from, rows, torch.Of(out.T().MustDetach(false)),
			leaves.gradient(torch.Of(out.T().MustSum(q.dtype, false)), torch.Tensor{}, false))
	})
}

// rowNumbers is how many numbers a row of gradients takes for each parameter: the gradient, what is being added to it,
// and the copies of the weights that mapped matrix products make.
const rowNumbers = 4
