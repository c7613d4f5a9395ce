package curvature

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LinearizedOptions are the options of the linearised predictive; the zero value is fine.
type LinearizedOptions struct {
	Memory int // bytes for rows of the Jacobian and the result; 0 means 1 GiB
	// NoiseSD is the standard deviation of observation noise that is independent for each output: its square is added to
	// the diagonals of the covariances. Default 0, the outputs without noise.
	NoiseSD float64
}

// Linearized returns the outputs of a model that is linearised at p, under a Gaussian around p of covariance Σ:
// z_i ~ N(f(p)_i, J_i Σ J_iᵀ + NoiseSD² I). Σ is a matrix, [d, d], or its diagonal, [d], for independent parameters.
// The mean has shape [n, C], the covariance [n, C, C]. Outputs of shape [n] have C = 1, those of higher rank are
// flattened in row-major order. (Immer et al. 2021, equation 9.)
func Linearized(f Forward, p infer.Params, b infer.Batch, covariance torch.Tensor, o LinearizedOptions) (mean,
	cov torch.Tensor, err error) {
	return linearized("Linearized", f, p, b, o, func(q *problem) (int, func(j torch.Tensor) (left, right torch.Tensor)) {
		if covariance == (torch.Tensor{}) {
			fail("the covariance is nil, expected shape [%d] or [%d, %d]", q.d, q.d, q.d)
		}
		if shape, err := torch.Shape(covariance); err != nil || len(shape) != 1 {
			q.like("the covariance", covariance, q.d, q.d)
			sigma := covariance.T().MustDetach(false)
			return q.d, func(j torch.Tensor) (left, right torch.Tensor) { return j.MatMul(sigma), j }
		}
		q.like("the variance", covariance, q.d)
		least := torch.Of(covariance.T().MustMin(false)).Item()
		try(method.CheckValue("curvature.Linearized", "the smallest variance", least, 0, false))
		sd := covariance.T().MustDetach(false).MustSqrt(false)
		return q.d, func(j torch.Tensor) (left, right torch.Tensor) {
			j.T().MustMul_(sd)
			return j, j
		}
	})
}

// LinearizedFactor is [Linearized] for a Gaussian whose covariance is S Sᵀ for a factor S of shape [d, m]: a Cholesky
// factor, or a low rank m.
func LinearizedFactor(f Forward, p infer.Params, b infer.Batch, factor torch.Tensor, o LinearizedOptions) (mean,
	cov torch.Tensor, err error) {
	return linearized("LinearizedFactor", f, p, b, o, func(q *problem) (int, func(j torch.Tensor) (left,
		right torch.Tensor)) {
		q.given("factor of the covariance", factor != (torch.Tensor{}))
		shape := factor.Shape()
		if len(shape) != 2 || shape[0] != q.d || shape[1] == 0 {
			fail("the factor of the covariance has shape %v, expected [%d, m]", shape, q.d)
		}
		q.alike("the factor of the covariance", factor)
		s := factor.T().MustDetach(false)
		return shape[1], func(j torch.Tensor) (left, right torch.Tensor) {
			js := j.MatMul(s).T()
			return torch.Of(js), torch.Of(js)
		}
	})
}

// linearized maps blocks of data. What prepare returns turns Jacobians [rows, C, d] into the two factors [rows, C, m]
// of the covariances left·rightᵀ; it also returns m.
func linearized(name string, f Forward, p infer.Params, b infer.Batch, o LinearizedOptions,
	prepare func(q *problem) (int, func(j torch.Tensor) (left,
		right torch.Tensor))) (mean, cov torch.Tensor, err error) {
	options := Options{Memory: o.Memory, MemoryField: "curvature.LinearizedOptions.Memory"}
	out, err := solve(name, 2, p, b, options, func(q *problem) []torch.Tensor {
		q.overData("forward function", f != nil)
		try(method.CheckValue("curvature.LinearizedOptions", "NoiseSD", o.NoiseSD, 0, false))
		m, factors := prepare(q)
		c := q.outputs(f)
		result := float64(q.n) * float64(c) * float64(1+c)
		row := rowNumbers*float64(q.d) + float64(c)*float64(q.d+m)
		q.need(fmt.Sprintf("covariances of shape [%d, %d, %d] with the Jacobian of a datum, [%d, %d],", q.n, c, c, c, q.d),
			result+row, "take fewer data at a time, or the last layer alone by infer.Subspace")
		mean, cov := q.zeros(q.n, c), q.zeros(q.n, c, c)
		q.blocks(q.rows(q.n, result, row), func(from, rows int, block infer.Batch) {
			leaves, z := q.eachRow("the forward function", block, rows, false, f)
			left, right := factors(q.jacobian(leaves, z, rows, c))
			mean.T().MustNarrow(0, int64(from), int64(rows),
				false).Copy_(z.T().MustDetach(false).MustReshape([]int64{int64(rows), int64(c)}, false))
			cov.T().MustNarrow(0, int64(from), int64(rows),
				false).Copy_(left.T().MustBmm(right.T().MustTranspose(1, 2, false), false))
		})
		if o.NoiseSD > 0 {
			cov.T().MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(o.NoiseSD * o.NoiseSD))
		}
		return []torch.Tensor{mean, cov}
	})
	return out[0], out[1], err
}

// jacobian is ∂z/∂θ of each row, [rows, C, d], one backward pass for each output.
func (q *problem) jacobian(leaves leaves, z torch.Tensor, rows, c int) torch.Tensor {
	j := q.zeros(rows, c, q.d)
	for k := range c {
		inScope(func() {
			g := leaves.gradient(z, torch.Of(q.unit(rows, c, k).T().MustReshapeAs(z.T(), false)), true)
			j.T().MustSelect(1, int64(k), false).Copy_(joined(g).T())
		})
	}
	return j
}
