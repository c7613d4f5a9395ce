package lower_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// sourceOf is a source without a batch.
func sourceOf(dim int, f func(x torch.Tensor) torch.Tensor) lower.Source {
	return lower.Source{Dim: dim, Evaluate: func(x *ts.Tensor, _ []*ts.Tensor) (values, grads []*ts.Tensor,
		aux []lower.Named, err error) {
		v, g, err := torch.ValueAndGrad(f, torch.Of(x))
		return []*ts.Tensor{v.T()}, []*ts.Tensor{g.T()}, nil, err
	}}
}

// The gradient of log-sum-exp takes its exponentials from the value: a plan has one operation for all terms, and of two
// terms one is no exponential. Where terms are equal, far apart, so large that their sum is rounded, infinite or NaN,
// the gradient is what eager evaluation has.
func TestLogSumExp(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	weighted := func(y *ts.Tensor, n int) *ts.Tensor { // no two rows count alike
		w := ts.MustArange(ts.IntScalar(int64(n)), gotch.Double, gotch.CPU).MustAddScalar(ts.FloatScalar(1), false)
		return y.MustMul(w, false).MustSum(gotch.Double, false)
	}
	for _, c := range []struct {
		name         string
		terms, exps  int
		f            func(x *ts.Tensor, terms int) *ts.Tensor
		plusInfinity bool
	}{
		{"two", 2, 1, func(x *ts.Tensor, k int) *ts.Tensor {
			return weighted(view(x, 8, k).MustLogsumexp([]int64{1}, false, false), 8)
		}, true},
		{"three", 3, 1, func(x *ts.Tensor, k int) *ts.Tensor {
			return weighted(view(x, 8, k).MustLogsumexp([]int64{1}, false, false), 8)
		}, true},
		{"forty", 40, 1, func(x *ts.Tensor, k int) *ts.Tensor {
			return weighted(view(x, 8, k).MustLogsumexp([]int64{1}, false, false), 8)
		}, true},
		{"log softmax", 3, 1, func(x *ts.Tensor, k int) *ts.Tensor {
			y := view(x, 8, k).MustLogSoftmax(1, gotch.Double, false)
			return weighted(y.MustSelect(1, 0, false), 8)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dim := 8 * c.terms
			s := sourceOf(dim, func(x torch.Tensor) torch.Tensor { return torch.Of(c.f(x.T(), c.terms)) })
			plan := compile(t, s)
			exps := 0
			for _, step := range plan.Steps {
				for _, in := range step.Body {
					if in.Op == ir.Exp {
						exps++
					}
				}
			}
			assert.Equal(t, c.exps, exps)
			at := points(3, dim, 2, 4)
			special := [][2]float64{{1, 1}, {0, -800}, {-800, 3}, {1e9 + 0.3, 1e9 + 1}, {-4e9, -4e9 - 1}, {-inf, 0}}
			if c.plusInfinity {
				special = append(special, [2]float64{inf, 0}, [2]float64{0, inf}, [2]float64{nan, 0}, [2]float64{0, nan},
					[2]float64{-inf, -inf}, [2]float64{inf, inf}, [2]float64{inf, -inf})
			}
			for _, v := range special {
				x := points(1, dim, 1, 5)[0]
				for i := range 3 { // in the third row the others are as small as can be
					copy(x[i*c.terms:], v[:])
				}
				for k := 2; k < c.terms; k++ {
					x[2*c.terms+k] = -inf
				}
				at = append(at, x)
			}
			m, err := ir.NewMachine(plan, nil)
			require.NoError(t, err)
			grad := make([]float64, dim)
			for _, x := range at {
				value := m.Eval(x, 1, grad, nil)
				want, wantGrad, _ := eager(t, s, x, 1)
				assert.True(t, near(value, want, math.Abs(want), 1e-10), "%v: value %v, eager %v", x[:c.terms], value, want)
				for i := range grad {
					assert.True(t, near(grad[i], wantGrad[i], 8, 1e-10), "%v: gradient %d is %v, eager %v", x[:c.terms], i,
						grad[i], wantGrad[i])
				}
			}
		})
	}
}
