package torch_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// These operations have another form in older versions of libtorch, and set-up writes their bodies. Whichever form is
// in use, the numbers are those of the formulas.

// spread is the variance of x with a correction: Σ(x - mean)² / (n - correction); and the mean.
func spread(x []float64, correction float64) (variance, mean float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / (float64(len(x)) - correction)
	}
	return variance, mean
}

func TestVarianceWithCorrection(t *testing.T) {
	data := numbers(12, 0)
	columns := [][]float64{{}, {}, {}, {}}
	for i, v := range data {
		columns[i%4] = append(columns[i%4], v)
	}
	for _, c := range []struct {
		dims   []int
		keep   bool
		groups [][]float64
		shape  []int
	}{
		{[]int{1}, false, [][]float64{data[:4], data[4:8], data[8:]}, []int{3}},
		{[]int{-1}, true, [][]float64{data[:4], data[4:8], data[8:]}, []int{3, 1}},
		{[]int{0}, false, columns, []int{4}},
		{[]int{0, 1}, true, [][]float64{data}, []int{1, 1}},
		{nil, false, [][]float64{data}, []int{}},
		{[]int{}, false, [][]float64{data}, []int{}},
	} {
		for _, correction := range []int{0, 1, 2} {
			inScope(t, func(*torch.Scope) {
				var variance, sd, mean []float64
				for _, g := range c.groups {
					v, m := spread(g, float64(correction))
					variance, sd, mean = append(variance, v), append(sd, math.Sqrt(v)), append(mean, m)
				}
				x, by := vec(data, 3, 4), ts.IntScalar(int64(correction))
				check := func(want []float64, got torch.Tensor, what string) {
					assert.Equal(t, c.shape, shapeOf(got), what)
					near(t, want, floats(got), 1e-15, what)
				}
				check(variance, torch.Of(x.T().MustVarCorrection(torch.Int64s(c.dims), by, c.keep, false)), "var")
				check(sd, torch.Of(x.T().MustStdCorrection(torch.Int64s(c.dims), by, c.keep, false)), "std")
				v, m := x.T().MustVarMeanCorrection(torch.Int64s(c.dims), by, c.keep, false)
				check(variance, torch.Of(v), "var of var_mean")
				check(mean, torch.Of(m), "mean of var_mean")
				s, m := x.T().MustStdMeanCorrection(torch.Int64s(c.dims), by, c.keep, false)
				check(sd, torch.Of(s), "std of std_mean")
				check(mean, torch.Of(m), "mean of std_mean")
				out := ts.MustZeros(torch.Int64s(c.shape), gotch.Double, gotch.CPU)
				check(variance, torch.Of(x.T().MustVarCorrectionOut(out, torch.Int64s(c.dims), by, c.keep, false)), "var out")
				check(variance, torch.Of(out), "var out")
				check(sd, torch.Of(x.T().MustStdCorrectionOut(out, torch.Int64s(c.dims), by, c.keep, false)), "std out")
				check(sd, torch.Of(out), "std out")
			})
		}
	}
	// A correction that is not whole is used, or refused: not rounded.
	inScope(t, func(*torch.Scope) {
		x, err := vec(data).T().VarCorrection(nil, ts.FloatScalar(0.5), false, false)
		if err != nil {
			assert.Contains(t, asError(t, err).Message, "whole corrections")
		} else {
			want, _ := spread(data, 0.5)
			near(t, []float64{want}, floats(torch.Of(x)), 1e-15)
		}
	})
	// The gradient of a variance: 2 (x - mean) / (n - correction).
	inScope(t, func(*torch.Scope) {
		_, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
			return torch.Of(x.T().MustVarCorrection(nil, ts.IntScalar(2), false, false))
		}, vec(data))
		require.NoError(t, err)
		_, mean := spread(data, 0)
		var want []float64
		for _, v := range data {
			want = append(want, 2*(v-mean)/10)
		}
		near(t, want, floats(grad), 1e-15)
	})
}

// Dimensions of size one go, the others stay, whatever their order and sign.
func TestSqueezeOfSeveralDimensions(t *testing.T) {
	for _, c := range []struct{ dims, shape []int }{
		{[]int{0}, []int{2, 1, 3, 1}},
		{[]int{0, 2}, []int{2, 3, 1}},
		{[]int{4, 0}, []int{2, 1, 3}},
		{[]int{-1, -3}, []int{1, 2, 3}},
		{[]int{2, -5, 4}, []int{2, 3}},
		{[]int{0, 1, 2, 3, 4}, []int{2, 3}},
		{[]int{1, 3}, []int{1, 2, 1, 3, 1}},
		{[]int{}, []int{1, 2, 1, 3, 1}},
	} {
		inScope(t, func(*torch.Scope) {
			data := numbers(6, 0)
			x := vec(data, 1, 2, 1, 3, 1)
			assert.Equal(t, c.shape, shapeOf(torch.Of(x.T().MustSqueezeDims(torch.Int64s(c.dims), false))), "%v", c.dims)
			assert.Equal(t, []int{1, 2, 1, 3, 1}, shapeOf(x))
			y := x.T().MustSqueezeCopyDims(torch.Int64s(c.dims), false)
			assert.Equal(t, c.shape, shapeOf(torch.Of(y)), "%v", c.dims)
			y.MustZero_()
			assert.Equal(t, data, floats(x), "a copy")
			z := x.T().MustSqueezeDims(torch.Int64s(c.dims), false)
			z.MustMulScalar_(ts.FloatScalar(2))
			assert.Equal(t, 2*data[5], floats(x)[5], "a view")
			x.T().MustSqueezeDims_(torch.Int64s(c.dims))
			assert.Equal(t, c.shape, shapeOf(x), "%v", c.dims)
		})
	}
	inScope(t, func(*torch.Scope) {
		_, err := vec([]float64{1}, 1, 1).T().SqueezeDims([]int64{0, 2}, false)
		assert.Contains(t, asError(t, err).Message, "out of range")
	})
}

// Attention written out: softmax(Q Kᵀ scale + mask) V, row by row.
func TestAttention(t *testing.T) {
	const n, m, d, e = 3, 4, 2, 5
	q, k, v := numbers(n*d, 0), numbers(m*d, 20), numbers(m*e, 40)
	bias := numbers(n*m, 90)
	attention := func(scale float64, allowed func(i, j int) bool, bias []float64) []float64 {
		out := make([]float64, n*e)
		for i := range n {
			total, weights := 0.0, make([]float64, m)
			for j := range m {
				score := 0.0
				for c := range d {
					score += q[i*d+c] * k[j*d+c] * scale
				}
				if bias != nil {
					score += bias[i*m+j]
				}
				if allowed(i, j) {
					weights[j] = math.Exp(score)
					total += weights[j]
				}
			}
			for j := range m {
				for c := range e {
					out[i*e+c] += weights[j] / total * v[j*e+c]
				}
			}
		}
		return out
	}
	all := func(i, j int) bool { return true }
	inScope(t, func(*torch.Scope) {
		some := make([]bool, n*m)
		for i := range some {
			some[i] = i%3 != 1
		}
		mask := torch.New(some, n, m)
		for name, c := range map[string]struct {
			mask   torch.Tensor
			causal bool
			scale  []float64
			want   []float64
		}{
			"plain":       {torch.Of(ts.None), false, nil, attention(1/math.Sqrt(d), all, nil)},
			"empty scale": {torch.Of(ts.None), false, []float64{}, attention(1/math.Sqrt(d), all, nil)},
			"scaled":      {torch.Of(ts.None), false, []float64{0.3}, attention(0.3, all, nil)},
			"causal": {torch.Of(ts.None), true, nil, attention(1/math.Sqrt(d), func(i, j int) bool { return j <= i },
				nil)},
			"mask":           {mask, false, nil, attention(1/math.Sqrt(d), func(i, j int) bool { return some[i*m+j] }, nil)},
			"bias":           {vec(bias, n, m), false, nil, attention(1/math.Sqrt(d), all, bias)},
			"bias, rescaled": {vec(bias, n, m), false, []float64{-2}, attention(-2, all, bias)},
		} {
			// Two batches and three heads of the same.
			spread := func(data []float64, shape ...int) torch.Tensor {
				return torch.Of(vec(data, shape...).T().MustExpand(torch.Int64s(append([]int{2, 3}, shape...)), false, false))
			}
			out := ts.MustScaledDotProductAttention(
				spread(q, n, d).T(),
				spread(k, m, d).T(),
				spread(v, m, e).T(),
				c.mask.T(),
				0,
				c.causal,
				c.scale,
			)
			require.Equal(t, []int{2, 3, n, e}, shapeOf(torch.Of(out)), name)
			for b := range 6 {
				near(t, c.want, floats(torch.Of(out.MustSelect(0, int64(b/3), false).MustSelect(0, int64(b%3),
					false))), 1e-14, name)
			}
		}
	})
}

// A sparse tensor, made dense: the gradient of an embedding in its table, which has a row for each index that was used.
// Row 1 is used twice, with weights 2 and 8 (times the column's), row 3 once.
func TestToDense(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		table := torch.Must(torch.Leaf(vec(numbers(10, 0), 5, 2)))
		out := ts.MustEmbedding(table.T(), ints([]int{1, 3, 1}).T(), -1, false, true)
		grads := torch.Must(torch.Grad([]torch.Tensor{torch.Of(out)}, []torch.Tensor{table}, &torch.GradOptions{
			Weights: []torch.Tensor{vec([]float64{2, 20, 4, 40, 8, 80}, 3, 2)},
		}))
		require.True(t, grads[0].T().MustIsSparse())
		dense := grads[0].T().MustToDense(gotch.Invalid, false, false) // of the type that it has; libtorch knows no other yet
		assert.False(t, dense.MustIsSparse())
		assert.Equal(t, []float64{0, 0, 10, 100, 0, 0, 4, 40, 0, 0}, floats(torch.Of(dense)))
		empty := ts.MustSparseCooTensor([]int64{2, 2}, gotch.Double, gotch.CPU)
		assert.Equal(t, []float64{0, 0, 0, 0}, floats(torch.Of(empty.MustToDense(gotch.Invalid, false, false))))
	})
}
