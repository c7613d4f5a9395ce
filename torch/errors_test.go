package torch_test

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// here is the line that called it, as errors show it.
func here(below int) string {
	_, file, line, _ := runtime.Caller(1)
	parts := strings.Split(file, "/")
	return fmt.Sprintf("%s:%d", strings.Join(parts[len(parts)-2:], "/"), line+below)
}

// Shapes that do not fit: libtorch's message, the op, both operands with shape and type, and the line that asked for
// it, for the forms of gotch that return an error, that panic, and for a panic deep inside Kelvin's functions.
func TestErrorOfAWrongShape(t *testing.T) {
	var at string
	for name, multiply := range map[string]func(a, b torch.Tensor) error{
		"returned": func(a, b torch.Tensor) error {
			at = here(1)
			_, err := a.T().Matmul(b.T(), false)
			return err
		},
		"panic": func(a, b torch.Tensor) error {
			return torch.Do(func(*torch.Scope) error {
				at = here(1)
				a.T().MustMatmul(b.T(), false)
				return nil
			})
		},
		"in a gradient": func(a, b torch.Tensor) error {
			_, _, err := torch.ValueAndGrad(func(x torch.Tensor) torch.Tensor {
				at = here(1)
				return torch.Of(x.T().MustMatmul(b.T(), false))
			}, a)
			return err
		},
		"in a nested scope": func(a, b torch.Tensor) error {
			return torch.Do(func(*torch.Scope) error {
				return torch.NoGrad(func() error {
					at = here(1)
					_, err := a.T().Matmul(b.T(), false)
					return fmt.Errorf("site w: %w", err)
				})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inScope(t, func(*torch.Scope) {
				a := ts.MustOnes([]int64{3, 2}, gotch.Double, gotch.CPU)
				b := ts.MustOnes([]int64{4, 5}, gotch.Float, gotch.CPU)
				err := multiply(torch.Of(a), torch.Of(b))
				e := asError(t, err)
				assert.Equal(t, "Matmul", e.Op)
				assert.Equal(t, []string{"[3 2] Double", "[4 5] Float"}, e.Operands)
				assert.Equal(t, at, e.At)
				assert.False(t, e.Freed)
				assert.Contains(t, err.Error(), "libtorch: Matmul([3 2] Double, [4 5] Float): ")
				assert.Contains(t, err.Error(), "(at torch/errors_test.go:")
				// What libtorch says, without its stack of C++ frames.
				assert.Regexp(
					t,
					`mat1 and mat2 shapes cannot be multiplied \(3x2 and 4x5\)|expected .* same dtype|scalar type`,
					e.Message,
				)
				assert.NotContains(t, e.Message, "frame #")
				assert.NotContains(t, e.Message, "Exception raised from")
			})
		})
	}
}

// The same for operations on lists, for one that works in place, for one without operands, for gotch's hand-written
// ones and for its queries. The numbers are the ones that libtorch is asked for.
func TestErrorOfEveryForm(t *testing.T) {
	x := ts.MustOnes([]int64{2, 3}, gotch.Double, gotch.CPU)
	y := ts.MustOnes([]int64{4}, gotch.Int64, gotch.CPU)
	defer torch.Free(torch.Of(x), torch.Of(y))
	for _, c := range []struct {
		op       string
		f        func() error
		operands []string
		message  string
	}{
		{"Cat", func() error { return drop2(ts.Cat([]*ts.Tensor{x, y}, 5)) }, []string{"[2 3] Double", "[4] Int64"}, "5"},
		{"Add_", func() error { return x.Add_(y) }, []string{"[2 3] Double", "[4] Int64"}, "size of tensor a (3) must " +
			"match the size of tensor b (4)"},
		{"MaxDim", func() error { _, _, err := x.MaxDim(7, false, false); return err }, []string{"[2 3] Double"},
			"out of range"},
		{"Zeros", func() error { return drop2(ts.Zeros([]int64{-2}, gotch.Double, gotch.CPU)) }, nil,
			"negative"}, // of -2, or of "size must be non-negative" in newer versions of libtorch
		{"Get", func() error { return drop2(x.Get(9)) }, []string{"[2 3] Double"}, "index 9"},
		{"Split", func() error { return drop2(x.Split(1, 3)) }, []string{"[2 3] Double"}, "out of range"},
		{"TopK", func() error { _, _, err := x.TopK(8, 1, true, true); return err }, []string{"[2 3] Double"},
			"out of range"},
		{"Copy_", func() error { return torch.Do(func(*torch.Scope) error { x.Copy_(y); return nil }) },
			[]string{"[2 3] Double", "[4] Int64"}, "must match"},
		{"IsNonzero", func() error { return drop2(x.IsNonzero(false)) }, []string{"[2 3] Double"}, "more than one value"},
		{"Float64Value", func() error { return drop2(torch.Item(torch.Of(x))) }, []string{"[2 3] Double"}, "6 elements"},
		{"LinalgCholesky", func() error { return drop2(x.LinalgCholesky(false, false)) }, []string{"[2 3] Double"}, "square"},
		{"Leaf", func() error { return drop2(torch.Leaf(torch.Of(y))) }, []string{"[4] Int64"}, "floating point"},
		{"FromData", func() error { return drop2(torch.FromSliceOn(gotch.CPU, gotch.Invalid, []float64{1})) }, nil,
			"element type number -1"},
		{"Ones", func() error { return drop2(ts.Ones([]int64{2}, gotch.Invalid, gotch.CPU)) }, nil, "element type number -1"},
		{"Totype", func() error { return drop2(torch.To(torch.Of(x), torch.CPU, gotch.Invalid)) }, []string{"[2 3] Double"},
			"element type number -1"},
		{"Random", func() error {
			s := torch.NewStreams(0, 1)
			return drop2(s.Normal([]int{-4}, gotch.Double, gotch.CPU))
		}, nil, "negative dimension -4"},
	} {
		t.Run(c.op, func(t *testing.T) {
			e := asError(t, c.f())
			assert.Equal(t, c.op, e.Op)
			assert.Equal(t, c.operands, e.Operands)
			assert.Contains(t, e.Message, c.message)
			assert.Contains(t, e.At, "torch/errors_test.go:")
			assert.NotContains(t, e.Error(), "\nException raised")
		})
	}
	assert.Equal(t, []float64{1, 1, 1, 1, 1, 1}, floats(torch.Of(x)), "an operation that failed changes nothing")
}

// methodFor is the Must method of an operation of libtorch, which is named like it in camel case.
func methodFor(op string, x torch.Tensor) (reflect.Value, bool) {
	name := "Must"
	if strings.HasPrefix(op, "_") {
		name += "_"
	}
	for _, part := range strings.Split(strings.Trim(op, "_"), "_") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	if strings.HasSuffix(op, "_") {
		name += "_"
	}
	m := reflect.ValueOf(x.T()).MethodByName(name)
	return m, m.IsValid()
}

// The operations that this libtorch lacks say so, by the name under which Missing lists them. Those that are methods
// are called, with whatever operands: it must not matter.
func TestErrorOfAMissingOperation(t *testing.T) {
	missing := torch.Missing()
	if len(missing) == 0 {
		t.Skipf("libtorch %s has every operation of gotch", torch.Version())
	}
	assert.IsIncreasing(t, missing)
	x := ts.MustOnes([]int64{2, 2}, gotch.Double, gotch.CPU)
	defer torch.Free(torch.Of(x))
	called := 0
	for _, op := range missing {
		m, ok := methodFor(op, torch.Of(x))
		if !ok {
			continue // a function, which cannot be found by name
		}
		args := make([]reflect.Value, m.Type().NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type().In(i))
			switch m.Type().In(i) {
			case reflect.TypeOf((*ts.Tensor)(nil)):
				args[i] = reflect.ValueOf(x)
			case reflect.TypeOf((*ts.Scalar)(nil)):
				args[i] = reflect.ValueOf(ts.FloatScalar(1))
			}
		}
		e := asError(t, torch.Do(func(*torch.Scope) error { m.Call(args); return nil }))
		assert.Equal(t, fmt.Sprintf("the operation %s is not in this libtorch (%s)", op, torch.Version()), e.Message)
		assert.NotEmpty(t, e.Op)
		called++
	}
	assert.Positive(t, called)
	missing[0] = "changed"
	assert.NotEqual(t, "changed", torch.Missing()[0], "the list is a copy")
}

// Lists of dimensions and shapes may be empty, whether nil or not. In libtorch a reduction over no named dimension is
// one over all, and a shape without sizes is that of a scalar.
func TestEmptyDimensions(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1, 2, 3, 4}, 2, 2)
		for _, none := range [][]int{nil, {}} {
			assert.Equal(t, 10.0, x.T().MustSumDimIntlist(torch.Int64s(none), false, gotch.Double,
				false).MustFloat64Value(torch.Int64s(none)))
			assert.Equal(t, 2.5, x.T().MustMeanDim(torch.Int64s(none), false, gotch.Double,
				false).MustFloat64Value(torch.Int64s(none)))
			assert.Equal(t, 4.0, x.T().MustAmax(torch.Int64s(none), false, false).MustFloat64Value(torch.Int64s(none)))
			assert.Equal(t, []int{}, shapeOf(torch.Of(sum(x).T().MustReshape(torch.Int64s(none), false))))
			assert.Equal(t, []int{}, shapeOf(torch.Of(ts.MustZeros(torch.Int64s(none), gotch.Float, gotch.CPU))))
			assert.Equal(t, []int{}, shapeOf(torch.Of(vec([]float64{7}, 1).T().MustView(torch.Int64s(none), false))))
			assert.Equal(t, []float64{7}, floats(torch.Of(vec([]float64{7}, 1).T().MustReshape(torch.Int64s(none), false))))
			assert.Equal(t, []int{}, shapeOf(torch.Of(scalar(3).T().MustPermute(torch.Int64s(none), false))))
			assert.Equal(t, floats(x), floats(torch.Of(x.T().MustFlip(torch.Int64s(none), false))))
			e := asError(t, drop2(x.T().Reshape(torch.Int64s(none), false)))
			assert.Contains(t, e.Message, "invalid for input of size 4")
			e = asError(t, drop2(ts.Cat(nil, 0)))
			assert.Contains(t, e.Message, "non-empty")
			e = asError(t, drop2(ts.Stack([]*ts.Tensor{}, 0)))
			assert.Contains(t, e.Message, "non-empty")
		}
		assert.Equal(t, []int{0, 3}, shapeOf(torch.Of(ts.MustZeros([]int64{0, 3}, gotch.Double, gotch.CPU))))
		v, err := sum(x).T().Int64Value([]int64{})
		require.NoError(t, err)
		assert.Equal(t, int64(10), v)
	})
}

// An undefined tensor stands for an optional operand that is left out, and is an error where an operand is needed.
func TestUndefinedTensors(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1, 2, 3, 4}, 2, 2)
		w := vec([]float64{1, 0, 0, 1, 1, 1}, 3, 2)
		for _, none := range []torch.Tensor{torch.Of(ts.NewTensor()), torch.Of(ts.None)} {
			// x Wᵀ without a bias, by hand.
			assert.Equal(t, []float64{1, 2, 3, 3, 4, 7}, floats(torch.Of(ts.MustLinear(x.T(), w.T(), none.T()))))
			// The mean over the rows of log softmax at the target, both classes as likely: log 2.
			loss := ts.MustZeros([]int64{2, 2}, gotch.Double, gotch.CPU).
				MustCrossEntropyLoss(ints([]int{0, 1}).T(), none.T(), 1, -100, 0, false)
			near(t, []float64{0.69314718055994531}, floats(torch.Of(loss)), 1e-15)

			e := asError(t, drop2(x.T().Add(none.T(), false)))
			assert.Equal(t, []string{"[2 2] Double", "undefined"}, e.Operands)
			assert.False(t, e.Freed)
			e = asError(t, drop2(torch.Shape(none)))
			assert.Contains(t, e.Message, "undefined")
			asError(t, drop2(torch.ToSlice[float64](none)))
			asError(t, drop2(torch.Leaf(none)))
			asError(t, drop2(torch.Item(none)))
			asError(t, torch.CopyFrom(none, []float64{}))
			asError(t, torch.View(none, func([]float64) error { return nil }))
			asError(t, drop2(torch.Grad([]torch.Tensor{none}, []torch.Tensor{none}, nil)))
			asError(t, drop2(torch.Vmap(same, []torch.Tensor{none}, nil)))
			asError(
				t,
				drop2(
					torch.Vmap(func([]torch.Tensor) ([]torch.Tensor, error) { return []torch.Tensor{none}, nil }, []torch.Tensor{x},
						nil),
				),
			)
			defined, err := none.T().Defined()
			require.NoError(t, err)
			assert.False(t, defined)
			size, err := none.T().Size()
			require.NoError(t, err)
			assert.Equal(t, []int64{0}, size, "as gotch always had it")
		}
	})
	assert.False(t, torch.Freed(torch.Of(ts.None)), "it outlives every scope")
}

// Errors that libtorch leaves on the thread reach the goroutine whose call failed and no other, also outside any scope,
// where goroutines move between threads.
func TestErrorsOfManyGoroutines(t *testing.T) {
	x := ts.MustOnes([]int64{3}, gotch.Double, gotch.CPU)
	defer torch.Free(torch.Of(x))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 60 {
				index := 0
				if (i+g)%2 == 1 {
					index = 100 + g
				}
				y, err := x.Get(index)
				if index == 0 {
					if !assert.NoError(t, err) {
						return
					}
					torch.Free(torch.Of(y))
					continue
				}
				var e *torch.Error
				if !assert.ErrorAs(t, err, &e) || !assert.Contains(t, e.Message, fmt.Sprintf("index %d ", index)) {
					return
				}
			}
		}()
	}
	wg.Wait()
}

// A mistake in the arguments of this package's own functions is an error as well.
func TestErrorsOfArguments(t *testing.T) {
	assert.ErrorContains(t, torch.SetThreads(0), "0 threads")
	_, err := torch.CUDA(-1)
	assert.ErrorContains(t, err, "GPU -1")
	_, err = torch.CUDA(1000)
	assert.ErrorContains(t, err, "GPU 1000")
	_, err = torch.Grad(nil, nil, nil)
	assert.ErrorContains(t, err, "at least one output and one input")
	empty := torch.Streams{}
	_, err = empty.Normal(nil, gotch.Double, gotch.CPU)
	assert.ErrorContains(t, err, "no chains")
}
