package torch_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// drop2 drops a value and keeps the error.
func drop2[T any](_ T, err error) error { return err }

// returning are the operations that return their error. Each is one form of gotch's: generated with one or more
// outputs, with lists, without an output buffer, and written by hand; then Kelvin's own.
func returning(t *testing.T) map[string]func(x, ok *ts.Tensor) error {
	return map[string]func(x, ok *ts.Tensor) error{
		"Exp":                  func(x, ok *ts.Tensor) error { return drop2(x.Exp(false)) },
		"Add":                  func(x, ok *ts.Tensor) error { return drop2(x.Add(ok, false)) },
		"Add, second operand":  func(x, ok *ts.Tensor) error { return drop2(ok.Add(x, false)) },
		"Where, a condition":   func(x, ok *ts.Tensor) error { return drop2(ok.WhereSelf(x, ok, false)) },
		"Embedding":            func(x, ok *ts.Tensor) error { return drop2(ts.Embedding(x, ok, -1, false, false)) },
		"MaxDim":               func(x, ok *ts.Tensor) error { _, _, err := x.MaxDim(0, false, false); return err },
		"Add_":                 func(x, ok *ts.Tensor) error { return x.Add_(ok) },
		"Add_, second operand": func(x, ok *ts.Tensor) error { return ok.Add_(x) },
		"MulScalar_":           func(x, ok *ts.Tensor) error { return x.MulScalar_(ts.FloatScalar(2)) },
		"Zero_":                func(x, ok *ts.Tensor) error { return x.Zero_() },
		"Detach_":              func(x, ok *ts.Tensor) error { return x.Detach_() },
		"Cat":                  func(x, ok *ts.Tensor) error { return drop2(ts.Cat([]*ts.Tensor{ok, x}, 0)) },
		"Stack":                func(x, ok *ts.Tensor) error { return drop2(ts.Stack([]*ts.Tensor{x, ok}, 0)) },
		"Einsum": func(x, ok *ts.Tensor) error {
			return drop2(ts.Einsum("ij,jk->ik", []*ts.Tensor{ok, x}, nil))
		},
		"Meshgrid":         func(x, ok *ts.Tensor) error { return drop2(ts.Meshgrid([]*ts.Tensor{ok, x})) },
		"BroadcastTensors": func(x, ok *ts.Tensor) error { return drop2(ts.BroadcastTensors([]*ts.Tensor{ok, x})) },
		"Split":            func(x, ok *ts.Tensor) error { return drop2(x.Split(1, 0)) },
		"SplitWithSizes":   func(x, ok *ts.Tensor) error { return drop2(x.SplitWithSizes([]int64{1, 1}, 0)) },
		"Chunk":            func(x, ok *ts.Tensor) error { return drop2(x.Chunk(2, 0)) },
		"Unbind":           func(x, ok *ts.Tensor) error { return drop2(x.Unbind(0)) },
		"NonzeroNumpy":     func(x, ok *ts.Tensor) error { return drop2(x.NonzeroNumpy()) },
		"TopK":             func(x, ok *ts.Tensor) error { _, _, err := x.TopK(1, 0, true, true); return err },
		"NLLLoss":          func(x, ok *ts.Tensor) error { return drop2(x.NLLLoss(ok, false)) },
		"NLLLoss, target":  func(x, ok *ts.Tensor) error { return drop2(ok.NLLLoss(x, false)) },
		"ConstantPadNdWithVal": func(x, ok *ts.Tensor) error {
			return drop2(x.ConstantPadNdWithVal([]int64{1, 1}, ts.FloatScalar(0), false))
		},
		"Equal":         func(x, ok *ts.Tensor) error { return drop2(x.Equal(ok, false)) },
		"Allclose":      func(x, ok *ts.Tensor) error { return drop2(ok.Allclose(x, 1, 1, false, false)) },
		"IsLeaf":        func(x, ok *ts.Tensor) error { return drop2(x.IsLeaf(false)) },
		"IsNonzero":     func(x, ok *ts.Tensor) error { return drop2(x.IsNonzero(false)) },
		"Size":          func(x, ok *ts.Tensor) error { return drop2(x.Size()) },
		"Size1":         func(x, ok *ts.Tensor) error { return drop2(x.Size1()) },
		"Size2":         func(x, ok *ts.Tensor) error { return drop2(x.Size2()) },
		"Stride":        func(x, ok *ts.Tensor) error { return drop2(x.Stride()) },
		"Device":        func(x, ok *ts.Tensor) error { return drop2(x.Device()) },
		"Float64Value":  func(x, ok *ts.Tensor) error { return drop2(x.Float64Value([]int64{0, 0})) },
		"Int64Value":    func(x, ok *ts.Tensor) error { return drop2(x.Int64Value([]int64{0, 0})) },
		"RequiresGrad":  func(x, ok *ts.Tensor) error { return drop2(x.RequiresGrad()) },
		"Defined":       func(x, ok *ts.Tensor) error { return drop2(x.Defined()) },
		"IsSparse":      func(x, ok *ts.Tensor) error { return drop2(x.IsSparse()) },
		"IsContiguous":  func(x, ok *ts.Tensor) error { return drop2(x.IsContiguous()) },
		"IsMkldnn":      func(x, ok *ts.Tensor) error { return drop2(x.IsMkldnn()) },
		"DataPtr":       func(x, ok *ts.Tensor) error { return drop2(x.DataPtr()) },
		"Backward":      func(x, ok *ts.Tensor) error { return x.Backward() },
		"ShallowClone":  func(x, ok *ts.Tensor) error { return drop2(x.ShallowClone()) },
		"Get":           func(x, ok *ts.Tensor) error { return drop2(x.Get(0)) },
		"ToString":      func(x, ok *ts.Tensor) error { return drop2(x.ToString(80)) },
		"CopyDataUint8": func(x, ok *ts.Tensor) error { return x.CopyDataUint8(make([]uint8, 4), 4) },
		"Save":          func(x, ok *ts.Tensor) error { return x.Save(filepath.Join(t.TempDir(), "x")) },
		"SaveMulti": func(x, ok *ts.Tensor) error {
			return ts.SaveMulti(
				[]ts.NamedTensor{{Name: "ok", Tensor: ok}, {Name: "x", Tensor: x}},
				filepath.Join(t.TempDir(), "x"),
			)
		},
		"RunBackward": func(x, ok *ts.Tensor) error {
			return drop2(ts.RunBackward([]*ts.Tensor{ok}, []*ts.Tensor{x}, false, false))
		},

		"torch.Item":          func(x, ok *ts.Tensor) error { return drop2(torch.Item(torch.Of(x))) },
		"torch.Shape":         func(x, ok *ts.Tensor) error { return drop2(torch.Shape(torch.Of(x))) },
		"torch.Numel":         func(x, ok *ts.Tensor) error { return drop2(torch.Numel(torch.Of(x))) },
		"torch.DTypeOfTensor": func(x, ok *ts.Tensor) error { return drop2(torch.DTypeOfTensor(torch.Of(x))) },
		"torch.DeviceOf":      func(x, ok *ts.Tensor) error { return drop2(torch.DeviceOf(torch.Of(x))) },
		"torch.To":            func(x, ok *ts.Tensor) error { return drop2(torch.To(torch.Of(x), torch.CPU, gotch.Float)) },
		"torch.ToSlice":       func(x, ok *ts.Tensor) error { return drop2(torch.ToSlice[float64](torch.Of(x))) },
		"torch.CopyTo":        func(x, ok *ts.Tensor) error { return torch.CopyTo(make([]float64, 4), torch.Of(x)) },
		"torch.CopyFrom":      func(x, ok *ts.Tensor) error { return torch.CopyFrom(torch.Of(x), make([]float64, 4)) },
		"torch.View": func(x, ok *ts.Tensor) error {
			return torch.View(torch.Of(x),
				func([]float64) error { return nil })
		},
		"torch.Leaf": func(x, ok *ts.Tensor) error { return drop2(torch.Leaf(torch.Of(x))) },
		"torch.Grad, output": func(x, ok *ts.Tensor) error {
			return drop2(torch.Grad([]torch.Tensor{torch.Of(x)}, []torch.Tensor{torch.Of(ok)}, nil))
		},
		"torch.Grad, input": func(x, ok *ts.Tensor) error {
			return drop2(torch.Grad([]torch.Tensor{torch.Of(ok)}, []torch.Tensor{torch.Of(ok), torch.Of(x)}, nil))
		},
		"torch.Grad, weight": func(x, ok *ts.Tensor) error {
			return drop2(torch.Grad([]torch.Tensor{torch.Of(ok)}, []torch.Tensor{torch.Of(ok)},
				&torch.GradOptions{Weights: []torch.Tensor{torch.Of(x)}}))
		},
		"torch.ValueAndGrad": func(x, ok *ts.Tensor) error { _, _, err := torch.ValueAndGrad(sum, torch.Of(x)); return err },
		"ValueAndGrad, closure": func(x, ok *ts.Tensor) error {
			_, _, err := torch.ValueAndGrad(func(y torch.Tensor) torch.Tensor { return sum(torch.Of(y.T().MustMul(x, false))) },
				torch.Of(ok))
			return err
		},
		"ValueAndGrad, result": func(x, ok *ts.Tensor) error {
			_, _, err := torch.ValueAndGrad(func(torch.Tensor) torch.Tensor { return torch.Of(x) }, torch.Of(ok))
			return err
		},
		"VmapValueAndGrad": func(x, ok *ts.Tensor) error {
			_, _,
				err := torch.VmapValueAndGrad(sum, torch.Of(x))
			return err
		},
		"torch.Vmap, input": func(x, ok *ts.Tensor) error {
			return drop2(torch.Vmap(same, []torch.Tensor{torch.Of(ok), torch.Of(x)}, nil))
		},
		"torch.Vmap, whole input": func(x, ok *ts.Tensor) error {
			return drop2(torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				y, err := raw.Of(in[0].T().Add(in[1].T(), false))
				return []torch.Tensor{y}, err
			}, []torch.Tensor{torch.Of(ok), torch.Of(x)}, &torch.VmapOptions{InDims: []int{0, torch.NotMapped}}))
		},
		"torch.Vmap, output": func(x, ok *ts.Tensor) error {
			return drop2(
				torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { return []torch.Tensor{torch.Of(x)}, nil },
					[]torch.Tensor{torch.Of(ok)}, nil),
			)
		},
		"Streams.NormalLike": func(x, ok *ts.Tensor) error {
			s := torch.NewStreams(1,
				1)
			return drop2(s.NormalLike(torch.Of(x)))
		},
	}
}

func same(in []torch.Tensor) ([]torch.Tensor, error) { return in, nil }

// panicking are the operations that have no error to return, and some that end in a panic by their name.
var panicking = map[string]func(x, ok *ts.Tensor){
	"MustExp":          func(x, ok *ts.Tensor) { x.MustExp(false) },
	"MustExp, dropped": func(x, ok *ts.Tensor) { x.MustExp(true) },
	"MustAdd_":         func(x, ok *ts.Tensor) { ok.MustAdd_(x) },
	"MustSize":         func(x, ok *ts.Tensor) { x.MustSize() },
	"MustUnbind":       func(x, ok *ts.Tensor) { x.MustUnbind(0, true) },
	"MustCat":          func(x, ok *ts.Tensor) { ts.MustCat([]*ts.Tensor{x}, 0) },
	"MustIsLeaf":       func(x, ok *ts.Tensor) { x.MustIsLeaf(false) },
	"MustRequiresGrad": func(x, ok *ts.Tensor) { x.MustRequiresGrad() },
	"DType":            func(x, ok *ts.Tensor) { x.DType() },
	"Dim":              func(x, ok *ts.Tensor) { x.Dim() },
	"Numel":            func(x, ok *ts.Tensor) { x.Numel() },
	"Float64Values":    func(x, ok *ts.Tensor) { x.Float64Values() },
	"Int64Values":      func(x, ok *ts.Tensor) { x.Int64Values() },
	"Vals":             func(x, ok *ts.Tensor) { x.Vals() },
	"Copy_":            func(x, ok *ts.Tensor) { x.Copy_(ok) },
	"Copy_, source":    func(x, ok *ts.Tensor) { ok.Copy_(x) },
	"ZeroGrad":         func(x, ok *ts.Tensor) { x.ZeroGrad() },
	"Print":            func(x, ok *ts.Tensor) { x.Print() },
	"Ctensor":          func(x, ok *ts.Tensor) { x.Ctensor() },
	"MustDataPtr":      func(x, ok *ts.Tensor) { x.MustCopyData(make([]float64, 4), 4) },
}

// kelvins says whether a function is of this package, which takes no pointer.
func kelvins(name string) bool {
	return slices.ContainsFunc([]string{"torch.", "ValueAndGrad", "VmapValueAndGrad", "Streams."},
		func(p string) bool { return strings.HasPrefix(name, p) })
}

// Whatever is done with a tensor whose scope is closed gives an error that says so and how to help it, also outside any
// scope, and so does a nil tensor.
func TestFreedAndNilTensorsAreErrors(t *testing.T) {
	check := func(t *testing.T, err error, isNil bool) {
		e := asError(t, err)
		assert.Truef(t, e.Freed, "not marked as freed: %v", e)
		assert.NotEmpty(t, e.Op)
		assert.Regexp(t, `^torch/freed_test\.go:\d+$`, e.At)
		if isNil {
			assert.Contains(t, e.Error(), "an operand is nil")
		} else {
			assert.Contains(t, e.Error(), "used after it was freed")
			assert.Contains(t, e.Error(), "Scope.Keep")
		}
	}
	for name, f := range returning(t) {
		t.Run(name, func(t *testing.T) {
			for _, x := range []*ts.Tensor{closed(t).T(), nil} {
				if x == nil && kelvins(name) {
					continue // a torch.Tensor is never nil
				}
				inScope(t, func(*torch.Scope) {
					check(t, f(x, ts.MustOnes([]int64{2, 2}, gotch.Double, gotch.CPU)), x == nil)
				})
				ok := ts.MustOnes([]int64{2, 2}, gotch.Double, gotch.CPU)
				check(t, f(x, ok), x == nil)
				torch.Free(torch.Of(ok))
			}
		})
	}
	for name, f := range panicking {
		t.Run(name, func(t *testing.T) {
			for _, x := range []*ts.Tensor{closed(t).T(), nil} {
				check(t, torch.Do(func(*torch.Scope) error {
					f(x, ts.MustOnes([]int64{2, 2}, gotch.Double, gotch.CPU))
					return nil
				}), x == nil)
			}
		})
	}
}

// The error names all operands and which of them was freed.
func TestFreedErrorShowsTheOperands(t *testing.T) {
	x := closed(t)
	inScope(t, func(*torch.Scope) {
		_, err := vec([]float64{1, 2, 3}).T().Addcmul(x.T(), nil, false)
		e := asError(t, err)
		assert.Equal(t, []string{"[3] Double", "freed", "nil"}, e.Operands)
		_, err = ts.Cat([]*ts.Tensor{vec([]float64{1}).T(), nil, x.T()}, 0)
		assert.Equal(t, []string{"[1] Double", "nil", "freed"}, asError(t, err).Operands)
	})
}

// Dropping is allowed as often as one likes, for nil tensors too.
func TestDropTwice(t *testing.T) {
	x := closed(t)
	require.NoError(t, x.T().Drop())
	x.T().MustDrop()
	var none *ts.Tensor
	require.NoError(t, none.Drop())
	assert.False(t, torch.Freed(torch.Tensor{}))
	y := ts.MustOnes([]int64{2}, gotch.Double, gotch.CPU)
	z := y.MustExp(true) // drops y
	assert.True(t, torch.Freed(torch.Of(y)))
	torch.Free(torch.Of(y), torch.Of(z), torch.Of(z))
	// Where takes its condition by value: a copy of the caller's tensor, which stays his.
	inScope(t, func(s *torch.Scope) {
		c := torch.New([]bool{true, false, true})
		at := ts.MustWhere(*c.T(), true)
		require.Len(t, at, 1)
		assert.Equal(t, []float64{0, 2}, floats(torch.Of(at[0])))
		assert.Equal(t, []float64{1, 0, 1}, floats(c))
	})
}

// The garbage collector does not free a tensor while an operation on it runs, although nothing refers to it any more
// once its handle was read.
func TestCollectorDuringOperations(t *testing.T) {
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 300 {
		x := ts.MustFull([]int64{50000}, ts.FloatScalar(3), gotch.Double, gotch.CPU)
		text, err := x.MustMean(gotch.Double, false).ToString(80)
		require.NoError(t, err)
		require.Contains(t, text, "3")
		y := ts.MustFull([]int64{50000}, ts.FloatScalar(3), gotch.Double, gotch.CPU)
		require.True(
			t,
			y.MustAllclose(ts.MustFull([]int64{50000}, ts.FloatScalar(3), gotch.Double, gotch.CPU), 0, 0, false, false),
		)
	}
	close(done)
	<-stopped
}

// Lists of tensors are made in the scope, and the array that carries them from libtorch is freed: 1000 of them, of 8 kB
// each, would be 8 MB.
func TestListsDoNotLeak(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := ts.MustOnes([]int64{1000, 1}, gotch.Double, gotch.CPU)
		empty := ts.MustOnes([]int64{0, 1}, gotch.Double, gotch.CPU)
		assert.Empty(t, empty.MustUnbind(0, false))
		lists := func(n int) {
			for range n {
				inScope(t, func(s *torch.Scope) {
					if got := x.MustUnbind(0, false); len(got) != 1000 || s.Owned() != 1000 {
						t.Fatalf("unbind made %d tensors, the scope owns %d", len(got), s.Owned())
					}
				})
			}
		}
		lists(100)
		before := testkit.Resident(t)
		lists(1000)
		testkit.Grown(t, before, 4<<20, "1000 lists of 8 kB are 8 MB")
	})
}
