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

// logistic is a log density with all that a model has: a product with data, a loss, a prior, scalars and a reduction.
func logistic(x, y torch.Tensor) func(w torch.Tensor) torch.Tensor {
	return func(w torch.Tensor) torch.Tensor {
		loss := x.T().MustMv(w.T(), false).MustBinaryCrossEntropyWithLogits(y.T(), ts.None, ts.None, 2, false)
		prior := sum(torch.Of(w.T().MustSquare(false))).T().MustMulScalar(ts.FloatScalar(0.5), false)
		return torch.Of(loss.MustAdd(prior, false).MustNeg(false))
	}
}

// 20,000 gradient evaluations, of each kind, keep resident memory flat. One evaluation makes some 30 tensors and graph
// nodes of 100 to 1000 bytes: were one of them lost each time, it would be 2 MB or more. (The first evaluations fill
// the allocators' pools.)
func TestGradientsInFlatMemory(t *testing.T) {
	x, y, w := vec(numbers(40*8, 0), 40, 8), ts.MustOnes([]int64{40}, gotch.Double, gotch.CPU), vec(numbers(4*8, 77), 4, 8)
	defer torch.Free(x, torch.Of(y), w)
	first := w.T().MustSelect(0, 0, false)
	defer torch.Free(torch.Of(first))
	f := logistic(x, torch.Of(y))
	for name, evaluate := range map[string]func() error{
		"ValueAndGrad": func() error {
			value, grad, err := torch.ValueAndGrad(f, torch.Of(first))
			torch.Free(value, grad)
			return err
		},
		"VmapValueAndGrad": func() error {
			return torch.Do(func(*torch.Scope) error { _, _, err := torch.VmapValueAndGrad(f, w); return err })
		},
		"Grad of Grad": func() error {
			return torch.Do(func(*torch.Scope) error {
				leaf := torch.Must(torch.Leaf(torch.Of(first)))
				g := torch.Must(torch.Grad([]torch.Tensor{f(leaf)}, []torch.Tensor{leaf}, &torch.GradOptions{CreateGraph: true}))
				_, err := torch.Grad([]torch.Tensor{torch.Of(g[0].T().MustDot(first, false))}, []torch.Tensor{leaf}, nil)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2000 {
				require.NoError(t, evaluate())
			}
			runtime.GC()
			unscoped, before := torch.UnscopedBytes(), testkit.Resident(t)
			for range 20000 {
				if err := evaluate(); err != nil {
					t.Fatal(err)
				}
			}
			runtime.GC()
			testkit.Grown(t, before, 4<<20)
			assert.Equal(t, unscoped, torch.UnscopedBytes())
		})
	}
}

// Errors, too, leave nothing behind: neither tensors nor messages (of some 200 bytes), nor levels of vmap.
func TestErrorsInFlatMemory(t *testing.T) {
	x := vec(numbers(6, 0), 3, 2)
	defer torch.Free(x)
	fail := func(n int) {
		for range n {
			_, _, err := torch.VmapValueAndGrad(func(x torch.Tensor) torch.Tensor {
				return torch.Of(x.T().MustMulScalar(ts.FloatScalar(2), false).MustView([]int64{7}, false))
			}, x)
			require.Error(t, err)
		}
	}
	fail(50)
	before := testkit.Resident(t)
	fail(400)
	testkit.Grown(t, before, 2<<20)
}

// collect runs the collector until what it finds is freed, or in vain.
func collect(enough func() bool) {
	for range 100 {
		if enough() {
			return
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// Tensors outside any scope, and those kept out of the outermost, are freed by the garbage collector.
func TestUnscopedTensorsAreCollected(t *testing.T) {
	const mega = 1 << 20
	collect(func() bool { return torch.UnscopedBytes() == 0 })
	base := torch.UnscopedBytes()
	func() {
		var list []torch.Tensor
		for range 10 {
			list = append(list, torch.Of(ts.MustZeros([]int64{mega / 8}, gotch.Double, gotch.CPU)))
		}
		assert.EqualValues(t, base+10*mega, torch.UnscopedBytes())
		inScope(t, func(s *torch.Scope) {
			kept, detached := ts.MustZeros(
				[]int64{mega},
				gotch.Uint8,
				gotch.CPU,
			), ts.MustZeros(
				[]int64{mega},
				gotch.Uint8,
				gotch.CPU,
			)
			ts.MustZeros([]int64{mega}, gotch.Uint8, gotch.CPU)
			assert.EqualValues(t, base+10*mega, torch.UnscopedBytes(), "tensors of a scope do not count")
			s.Keep(torch.Of(kept))
			torch.Detach(torch.Of(detached))
			assert.EqualValues(t, base+12*mega, torch.UnscopedBytes())
		})
		torch.Free(list[0])
		assert.EqualValues(t, base+11*mega, torch.UnscopedBytes())
		runtime.KeepAlive(list)
	}()
	collect(func() bool { return torch.UnscopedBytes() <= base })
	assert.EqualValues(t, base, torch.UnscopedBytes())
}

// The collector does not see libtorch's memory, so it is asked to run: 4 GB made outside any scope, 8 MB at a time and
// dropped at once, are never all alive.
func TestUnscopedMemoryIsBounded(t *testing.T) {
	largest := 0
	for range 512 {
		ts.MustZeros([]int64{1 << 20}, gotch.Double, gotch.CPU)
		largest = max(largest, torch.UnscopedBytes())
	}
	assert.Less(t, largest, int(2<<30))
	collect(func() bool { return torch.UnscopedBytes() < 64<<20 })
	assert.Less(t, torch.UnscopedBytes(), int(64<<20))
}

// Opening and closing scopes, deeply nested and from many goroutines, costs no memory that stays.
func TestScopesInFlatMemory(t *testing.T) {
	var nest func(depth int)
	nest = func(depth int) {
		inScope(t, func(s *torch.Scope) {
			x := scalar(1)
			if depth > 0 {
				nest(depth - 1)
			}
			s.Keep(x)
		})
	}
	run := func(n int) {
		done := make(chan struct{})
		for range 8 {
			go func() {
				defer func() { done <- struct{}{} }()
				for range n {
					inScope(t, func(*torch.Scope) { nest(10) })
				}
			}()
		}
		for range 8 {
			<-done
		}
	}
	run(100)
	runtime.GC()
	before := testkit.Resident(t)
	run(1000)
	runtime.GC()
	testkit.Grown(t, before, 8<<20, "88,000 scopes of some 200 bytes are 17 MB")
}
