package torch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// matrices are forms of a batch [n, rows, columns] of the same numbers.
func matrices(t *testing.T, seed uint64, dtype gotch.DType, n, rows, columns int) map[string]torch.Tensor {
	t.Helper()
	streams := torch.NewStreams(seed, 1)
	x := torch.Must(streams.Normal([]int{n, rows, columns}, dtype, torch.CPU))
	x = torch.Of(x.T().MustReshape([]int64{int64(n), int64(rows), int64(columns)}, false))
	swapped := x.T().MustTranspose(1, 2, false).MustContiguous(false).MustTranspose(1, 2, false)
	wide := ts.MustZeros([]int64{int64(n), int64(rows + 2), int64(2*columns + 1)}, dtype, gotch.CPU)
	part := wide.MustNarrow(1, 1, int64(rows), false)
	narrow := part.MustNarrow(2, 1, int64(columns), false)
	narrow.Copy_(x.T())
	long := ts.MustZeros([]int64{int64(n), int64(columns), int64(rows + 3)}, dtype, gotch.CPU)
	high := long.MustNarrow(2, 2, int64(rows), false).MustTranspose(1, 2, false)
	high.Copy_(x.T())
	sparse := ts.MustZeros([]int64{int64(n), int64(rows), int64(columns), 2}, dtype, gotch.CPU).MustSelect(3, 1, false)
	sparse.Copy_(x.T())
	last := x.T().MustPermute([]int64{1, 2, 0}, false).MustContiguous(false).MustPermute([]int64{2, 0, 1}, false)
	return map[string]torch.Tensor{"rows": x, "columns": torch.Of(swapped), "a part": torch.Of(narrow),
		"a part of columns":   torch.Of(high),
		"every second number": torch.Of(sparse), "the batch last": torch.Of(last)}
}

// Products of batches of matrices are sums of products, computed here in Go, whatever the strides: for vectors, outer
// products and matrices, sizes about those from which on the BLAS is called, and both precisions. Each product is the
// same, bit for bit, in a result that is given, as replays have it, and where the kernel is Kelvin's, which it is with
// OpenBLAS, among others and alone.
func TestProductsOfBatches(t *testing.T) {
	for _, dtype := range []gotch.DType{gotch.Float, gotch.Double} {
		epsilon := map[gotch.DType]float64{gotch.Float: 0x1p-23, gotch.Double: 0x1p-52}[dtype]
		for _, size := range [][4]int{{2, 1, 20, 20}, {5, 1, 19, 21}, {3, 20, 1, 20}, {2, 21, 1, 19}, {7, 20, 20, 1},
			{4, 1, 1, 400}, {4, 400, 1, 1}, {4, 1, 400, 1}, {3, 7, 8, 9}, {3, 5, 8, 9}, {2, 64, 64, 64}, {2, 65, 64, 64},
			{300, 4, 30, 50}, {1, 8, 9, 10}} {
			n, m, inner, k := size[0], size[1], size[2], size[3]
			inScope(t, func(*torch.Scope) {
				lefts, rights := matrices(t, 1, dtype, n, m, inner), matrices(t, 2, dtype, n, inner, k)
				a := floats(torch.Of(lefts["rows"].T().MustTotype(gotch.Double, false).MustContiguous(false)))
				b := floats(torch.Of(rights["rows"].T().MustTotype(gotch.Double, false).MustContiguous(false)))
				want, bound := make([]float64, n*m*k), make([]float64, n*m*k)
				for i := range n {
					for r := range m {
						for c := range k {
							at := (i*m+r)*k + c
							for j := range inner {
								v := a[(i*m+r)*inner+j] * b[(i*inner+j)*k+c]
								want[at] += v
								bound[at] += math.Abs(v)
							}
						}
					}
				}
				for left, x := range lefts {
					for right, y := range rights {
						name := fmt.Sprintf("%v %v: %s, %s", dtype, size, left, right)
						got := x.T().MustBmm(y.T(), false)
						require.Equal(t, []int{n, m, k}, shapeOf(torch.Of(got)))
						have := floats(torch.Of(got.MustTotype(gotch.Double, false)))
						for i := range want {
							// Each of the sum's roundings is at most half of epsilon of a partial sum. (Higham 2002, section 3.1.)
							require.InDelta(t, want[i], have[i], float64(inner+1)*epsilon*bound[i], name)
						}
						given := ts.MustZeros([]int64{int64(n), int64(m), int64(k)}, dtype, gotch.CPU)
						torch.Must(x.T().BmmOut(given, y.T(), false))
						require.Equal(t, have, floats(torch.Of(given.MustTotype(gotch.Double, false))), name)
						for _, few := range []int{1, 2} {
							if few >= n || thread.BLAS() == 0 {
								break
							}
							part := x.T().MustNarrow(0, 1, int64(few), false).MustBmm(y.T().MustNarrow(0, 1, int64(few), false), false)
							require.Equal(t, have[m*k:(1+few)*m*k], floats(torch.Of(part.MustTotype(gotch.Double, false))), name)
						}
					}
				}
			})
		}
	}
}

// A matrix that is one for all has no memory of its own, and numbers that are not finite spread no further.
func TestProductsOfOneMatrix(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		one := matrices(t, 3, gotch.Double, 1, 20, 30)["rows"]
		many := one.T().MustExpand([]int64{4, 20, 30}, true, false)
		x := matrices(t, 4, gotch.Double, 4, 2, 20)["rows"]
		want := floats(torch.Of(x.T().MustReshape([]int64{8, 20}, false).MustMm(one.T().MustSelect(0, 0, false), false)))
		assert.InDeltaSlice(t, want, floats(torch.Of(x.T().MustBmm(many, false))), 1e-12)
		x.T().MustSelect(0, 1, false).MustFill_(ts.FloatScalar(math.NaN()))
		for i, v := range floats(torch.Of(x.T().MustBmm(many, false))) {
			assert.Equal(t, i/60 == 1, math.IsNaN(v), "number %d", i)
		}
	})
}

// What cannot be multiplied is libtorch's error, and other types are libtorch's products.
func TestProductsOfOtherBatches(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := ts.MustOnes([]int64{3, 20, 30}, gotch.Double, gotch.CPU)
		_, err := x.Bmm(ts.MustOnes([]int64{3, 20, 30}, gotch.Double, gotch.CPU), false)
		assert.ErrorContains(t, err, "batch2")
		_, err = x.Bmm(ts.MustOnes([]int64{2, 30, 20}, gotch.Double, gotch.CPU), false)
		assert.ErrorContains(t, err, "batch2")
		_, err = x.Bmm(ts.MustOnes([]int64{3, 30, 20}, gotch.Float, gotch.CPU), false)
		assert.Error(t, err)
		whole := ts.MustOnes([]int64{3, 20, 30}, gotch.Int64, gotch.CPU)
		assert.Equal(t, 20, whole.MustTranspose(1, 2, false).MustBmm(whole, false).MustInt64Value([]int64{0, 0, 0}))
		assert.Empty(t, floats(torch.Of(x.MustNarrow(0, 0, 0,
			false).MustBmm(x.MustNarrow(0, 0, 0, false).MustTranspose(1, 2, false),
			false))))
	})
}
