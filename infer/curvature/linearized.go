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
	Memory int64 // bytes for rows of the Jacobian and the result; 0 means 1 GiB
	// NoiseSD is the standard deviation of observation noise that is independent for each output: its square is added to
	// the diagonals of the covariances. Default 0, the outputs without noise.
	NoiseSD float64
}

// Linearized returns the outputs of a model that is linearised at p, under a Gaussian around p of covariance Σ:
// z_i ~ N(f(p)_i, J_i Σ J_iᵀ + NoiseSD² I). Σ is a matrix, [d, d], or its diagonal, [d], for independent parameters.
// The mean has shape [n, C], the covariance [n, C, C]. Outputs of shape [n] have C = 1, those of higher rank are
// flattened in row-major order. (Immer et al. 2021, equation 9.)
func Linearized(f Forward, p infer.Params, b infer.Batch, covariance *ts.Tensor, o LinearizedOptions) (mean,
	cov *ts.Tensor,
	err error) {
	return linearized("Linearized", f, p, b, o, func(q *problem) (int64, func(j *ts.Tensor) (left, right *ts.Tensor),
		error) {
		if covariance == nil {
			return 0, nil, fmt.Errorf("the covariance is nil, expected shape [%d] or [%d, %d]", q.d, q.d, q.d)
		}
		if shape, err := torch.Shape(covariance); err != nil || len(shape) != 1 {
			if err := q.like("the covariance", covariance, q.d, q.d); err != nil {
				return 0, nil, err
			}
			sigma := covariance.MustDetach(false)
			return q.d, func(j *ts.Tensor) (left, right *ts.Tensor) { return j.MustMatmul(sigma, false), j }, nil
		}
		if err := q.like("the variance", covariance, q.d); err != nil {
			return 0, nil, err
		}
		least, err := torch.Item(covariance.MustMin(false))
		if err != nil {
			return 0, nil, err
		}
		if err := method.CheckValue("curvature.Linearized", "the smallest variance", least, 0, false); err != nil {
			return 0, nil, err
		}
		sd := covariance.MustDetach(false).MustSqrt(false)
		return q.d, func(j *ts.Tensor) (left, right *ts.Tensor) {
			j.MustMul_(sd)
			return j, j
		}, nil
	})
}

// LinearizedFactor is [Linearized] for a Gaussian whose covariance is S Sᵀ for a factor S of shape [d, m]: a Cholesky
// factor, or a low rank m.
func LinearizedFactor(f Forward, p infer.Params, b infer.Batch, factor *ts.Tensor, o LinearizedOptions) (mean,
	cov *ts.Tensor, err error) {
	return linearized("LinearizedFactor", f, p, b, o, func(q *problem) (int64, func(j *ts.Tensor) (left, right *ts.Tensor),
		error) {
		if factor == nil {
			return 0, nil, errNil("factor of the covariance")
		}
		shape, err := torch.Shape(factor)
		if err != nil {
			return 0, nil, err
		}
		if len(shape) != 2 || shape[0] != q.d || shape[1] == 0 {
			return 0, nil, fmt.Errorf("the factor of the covariance has shape %v, expected [%d, m]", shape, q.d)
		}
		if err := q.alike("the factor of the covariance", factor); err != nil {
			return 0, nil, err
		}
		s := factor.MustDetach(false)
		return shape[1], func(j *ts.Tensor) (left, right *ts.Tensor) {
			js := j.MustMatmul(s, false)
			return js, js
		}, nil
	})
}

// linearized maps blocks of data. What prepare returns turns Jacobians [rows, C, d] into the two factors [rows, C, m]
// of the covariances left·rightᵀ; it also returns m.
func linearized(name string, f Forward, p infer.Params, b infer.Batch, o LinearizedOptions,
	prepare func(q *problem) (int64, func(j *ts.Tensor) (left, right *ts.Tensor), error)) (mean, cov *ts.Tensor,
	err error) {
	out, err := solve(name, p, b, Options{Memory: o.Memory, MemoryField: "curvature.LinearizedOptions.Memory"},
		func(q *problem) ([]*ts.Tensor, error) {
			if err := q.overData("forward function", f != nil); err != nil {
				return nil, err
			}
			if err := method.CheckValue("curvature.LinearizedOptions", "NoiseSD", o.NoiseSD, 0, false); err != nil {
				return nil, err
			}
			m, factors, err := prepare(q)
			if err != nil {
				return nil, err
			}
			c, err := q.outputs(f)
			if err != nil {
				return nil, err
			}
			result := float64(q.n) * float64(c) * float64(1+c)
			row := rowNumbers*float64(q.d) + float64(c)*float64(q.d+m)
			if err := q.need(fmt.Sprintf("covariances of shape [%d, %d, %d] with the Jacobian of a datum, [%d, %d],", q.n, c, c,
				c, q.d), result+row,
				"take fewer data at a time, or the last layer alone by infer.Subspace"); err != nil {
				return nil, err
			}
			mean, cov := q.zeros(q.n, c), q.zeros(q.n, c, c)
			err = q.blocks(q.rows(q.n, result, row), func(from, rows int64, block infer.Batch) error {
				leaves, z := q.eachRow("the forward function", block, rows, false, f)
				j, err := q.jacobian(leaves, z, rows, c)
				if err != nil {
					return err
				}
				left, right := factors(j)
				mean.MustNarrow(0, from, rows, false).Copy_(z.MustDetach(false).MustReshape([]int64{rows, c}, false))
				cov.MustNarrow(0, from, rows, false).Copy_(left.MustBmm(right.MustTranspose(1, 2, false), false))
				return nil
			})
			if err != nil {
				return nil, err
			}
			if o.NoiseSD > 0 {
				cov.MustDiagonal(0, 1, 2, false).MustAddScalar_(ts.FloatScalar(o.NoiseSD * o.NoiseSD))
			}
			return []*ts.Tensor{mean, cov}, nil
		})
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

// jacobian is ∂z/∂θ of each row, [rows, C, d], one backward pass for each output.
func (q *problem) jacobian(leaves leaves, z *ts.Tensor, rows, c int64) (*ts.Tensor, error) {
	j := q.zeros(rows, c, q.d)
	for k := range c {
		if err := torch.Do(func(*torch.Scope) error {
			g, err := leaves.gradient(z, q.unit(rows, c, k).MustReshapeAs(z, false), true)
			if err != nil {
				return err
			}
			j.MustSelect(1, k, false).Copy_(joined(g))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return j, nil
}
