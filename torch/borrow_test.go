package torch_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The slice and the tensor are the same memory: each sees what is done to the other, also through a part of the slice.
func TestBorrowIsNoCopy(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		data := []float64{1, 2, 3, 4, 5, 6}
		x := torch.Must(torch.Borrow(data[2:], 2, 2))
		data[3] = 40
		assert.Equal(t, []float64{3, 40, 5, 6}, floats(x))
		x.T().MustSelect(0, 1, false).MustMulScalar_(ts.FloatScalar(10))
		assert.Equal(t, []float64{1, 2, 3, 40, 50, 60}, data)
		require.NoError(t, torch.View(x, func(view []float64) error {
			assert.Same(t, &data[2], &view[0])
			return nil
		}))
	})
}

// reached says whether the collector has found memory unreachable, which it does not while it is pinned.
func reached(f func() bool) bool {
	for range 20 {
		if f() {
			return true
		}
		runtime.GC()
		runtime.Gosched()
	}
	return f()
}

// The memory stays while libtorch holds it, through whichever tensor, and is given up with the last of them.
func TestBorrowPinsMemory(t *testing.T) {
	const n = 1 << 16
	collected := make(chan struct{})
	gone := func() bool {
		select {
		case <-collected:
			return true
		default:
			return false
		}
	}
	var view torch.Tensor
	func() {
		data := make([]float64, n)
		for i := range data {
			data[i] = float64(i)
		}
		runtime.SetFinalizer(&data[0], func(*float64) { close(collected) })
		inScope(t, func(s *torch.Scope) {
			x := torch.Must(torch.Borrow(data))
			view = torch.Of(x.T().MustNarrow(0, n/2, n/2, false).MustView([]int64{2, -1}, false))
			s.Keep(view)
		})
	}()
	// Nothing in Go refers to the slice any more, and its first tensor is freed. Memory that was given back too early
	// would be used again by these.
	for range 50 {
		junk := make([]float64, n)
		for i := range junk {
			junk[i] = -1
		}
		runtime.KeepAlive(junk)
		runtime.GC()
	}
	require.False(t, gone(), "collected while a view is alive")
	values := floats(view)
	for i, v := range values {
		require.Equal(t, float64(n/2+i), v)
	}
	torch.Free(view)
	assert.True(t, reached(gone), "still pinned after the last tensor was freed")
}

// A graph that needs the memory for its gradient holds it too.
func TestBorrowInAGraph(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		leaf := torch.Must(torch.Leaf(torch.Of(ts.MustFull([]int64{1 << 16}, ts.FloatScalar(2), gotch.Double, gotch.CPU))))
		y := func() torch.Tensor {
			data := make([]float64, 1<<16)
			for i := range data {
				data[i] = 3
			}
			x := torch.Must(torch.Borrow(data))
			defer torch.Free(x)
			return sum(torch.Of(leaf.T().MustMul(x.T(), false)))
		}()
		for range 10 {
			runtime.KeepAlive(make([]float64, 1<<16))
			runtime.GC()
		}
		grad := torch.Must(torch.Grad([]torch.Tensor{y}, []torch.Tensor{leaf}, nil))[0]
		assert.Equal(t, 3.0*(1<<16), floats(sum(grad))[0])
	})
}

// Borrowing a hundred thousand times pins nothing for good; a pin that is lost ends the process.
func TestBorrowOften(t *testing.T) {
	before := 0
	for i := range 100000 {
		if i == 1000 {
			before = testkit.Resident(t)
		}
		inScope(t, func(*torch.Scope) { torch.Must(torch.Borrow(make([]float64, 64), 8, 8)) })
	}
	runtime.GC()
	testkit.Grown(t, before, 8<<20, "100,000 slices of 512 bytes are 51 MB")
	// The collector frees tensors that are in no scope, and then their memory.
	collected := make(chan struct{})
	func() {
		data := make([]float64, 1000)
		runtime.SetFinalizer(&data[0], func(*float64) { close(collected) })
		torch.Must(torch.Borrow(data))
	}()
	assert.True(t, reached(func() bool {
		select {
		case <-collected:
			return true
		default:
			return false
		}
	}))
}
