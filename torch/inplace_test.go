package torch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// An in-place op changes the tensor that it is called on and every view of it, and makes no tensor.
func TestInPlaceKeepsTheHandle(t *testing.T) {
	inScope(t, func(s *torch.Scope) {
		x := vec([]float64{1, 2, 3, 4}, 2, 2)
		row := x.T().MustSelect(0, 1, false)
		one := ts.FloatScalar(1)
		owned := s.Owned()
		handle := x.T().Ctensor()
		x.T().MustAddScalar_(one)
		x.T().MustMul_(x.T())
		assert.Equal(t, []float64{4, 9, 16, 25}, floats(x))
		assert.Equal(t, []float64{16, 25}, floats(torch.Of(row)))
		row.MustZero_()
		assert.Equal(t, []float64{4, 9, 0, 0}, floats(x))
		x.T().MustTranspose_(0, 1)
		assert.Equal(t, []float64{4, 0, 9, 0}, floats(x))
		x.T().MustSqueezeDims_([]int64{}) // of no dimension
		x.T().MustUnsqueeze_(0)
		assert.Equal(t, []int{1, 2, 2}, shapeOf(x))
		assert.Equal(t, owned, s.Owned())
		assert.Equal(t, handle, x.T().Ctensor())
	})
}

// In-place ops are recorded: for y = x² made in place of 1·x, y' = 2x.
func TestInPlaceGradient(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		value, grad, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
			y := x.T().MustMulScalar(ts.FloatScalar(1), false)
			y.MustMul_(x.T())
			return sum(torch.Of(y))
		}, vec([]float64{3, -1}))
		assert.NoError(t, err)
		assert.Equal(t, []float64{10}, floats(value))
		assert.Equal(t, []float64{6, -2}, floats(grad))
	})
	// A leaf that records gradients cannot be changed: libtorch says so.
	inScope(t, func(*torch.Scope) {
		leaf := torch.Must(torch.Leaf(vec([]float64{1})))
		e := asError(t, leaf.T().AddScalar_(ts.FloatScalar(1)))
		assert.Contains(t, e.Message, "leaf Variable that requires grad")
		assert.Equal(t, "AddScalar_", e.Op)
	})
}

// 100,000 in-place ops leave the number of tensors as it is and memory flat: 100,000 leaked handles of 8 bytes, which
// the allocator rounds up to 32, would be 3.2 MB. So would be the scalars, were they not freed with their scope.
func TestInPlaceDoesNotLeak(t *testing.T) {
	inScope(t, func(s *torch.Scope) {
		x := ts.MustZeros([]int64{4}, gotch.Double, gotch.CPU)
		y := ts.MustOnes([]int64{4}, gotch.Double, gotch.CPU)
		for name, op := range map[string]func(){
			"operand": func() { x.MustMul_(y) },
			"scalar":  func() { x.MustFill_(ts.FloatScalar(7)) },
		} {
			many := func(scopes int) {
				for range scopes {
					inScope(t, func(*torch.Scope) {
						for range 100 {
							op()
						}
					})
				}
			}
			many(100)
			owned, before := s.Owned(), testkit.Resident(t)
			many(1000)
			assert.Equal(t, owned, s.Owned(), name)
			testkit.Grown(t, before, 2<<20, name)
		}
		x.MustFill_(ts.FloatScalar(7))
		assert.Equal(t, []float64{7, 7, 7, 7}, floats(torch.Of(x)))
	})
}
