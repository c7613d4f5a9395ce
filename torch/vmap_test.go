package torch_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// maps is a function of tensors without an error of its own.
func maps(f func(in []torch.Tensor) []torch.Tensor) func(in []torch.Tensor) ([]torch.Tensor, error) {
	return func(in []torch.Tensor) ([]torch.Tensor, error) { return f(in), nil }
}

// The function sees the shape of one row and the rows' common size nowhere; what it returns gets the dimension back.
func TestVmapShapes(t *testing.T) {
	inScope(t, func(s *torch.Scope) {
		x := vec(numbers(24, 0), 2, 3, 4)
		for _, c := range []struct {
			in, out   int
			row, back []int
		}{
			{0, 0, []int{3, 4}, []int{2, 3, 4}},
			{1, 0, []int{2, 4}, []int{3, 2, 4}},
			{2, 1, []int{2, 3}, []int{2, 4, 3}},
			{-1, 0, []int{2, 3}, []int{4, 2, 3}},
			{-3, 2, []int{3, 4}, []int{3, 4, 2}},
			{0, -1, []int{3, 4}, []int{3, 4, 2}},
			{1, -3, []int{2, 4}, []int{3, 2, 4}},
			{-2, 1, []int{2, 4}, []int{2, 3, 4}},
		} {
			var seen []int
			before := s.Owned()
			out, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
				seen = shapeOf(in[0])
				assert.Equal(t, c.row, in[0].Shape())
				assert.EqualValues(t, 2, in[0].T().Dim())
				in[0].T().MustExp(false) // freed with the map's own scope
				return []torch.Tensor{torch.Of(in[0].T().MustMulScalar(ts.FloatScalar(2), false))}
			}), []torch.Tensor{x}, &torch.VmapOptions{InDims: []int{c.in}, OutDims: []int{c.out}})
			require.NoError(t, err)
			assert.Equal(t, c.row, seen)
			require.Equal(t, c.back, shapeOf(out[0]))
			assert.Equal(t, before+1, s.Owned())
			// By hand: move the dimension from where it was to where it went, and double.
			in, to := c.in, c.out
			if in < 0 {
				in += 3
			}
			if to < 0 {
				to += 3
			}
			want := x.T().MustMovedim([]int64{int64(in)}, []int64{int64(to)}, false).MustMulScalar(ts.FloatScalar(2), false)
			assert.Equal(t, floats(torch.Of(want)), floats(out[0]))
			torch.Free(torch.Of(want), out[0])
		}
	})
}

// Inputs with mapped dimensions of their own, and one that all rows see whole: W x_k + b, for rows x_k and columns b_k.
func TestVmapNotMapped(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		w := torch.Must(torch.Leaf(vec(numbers(6, 0), 2, 3)))
		x, b := vec(numbers(12, 50), 4, 3), vec(numbers(8, 90), 2, 4)
		out, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
			assert.Equal(t, []int{2, 3}, shapeOf(in[0]))
			return []torch.Tensor{torch.Of(in[0].T().MustMv(in[1].T(), false).MustAdd(in[2].T(), false))}
		}), []torch.Tensor{w, x, b}, &torch.VmapOptions{InDims: []int{torch.NotMapped, 0, 1}})
		require.NoError(t, err)
		require.Equal(t, []int{4, 2}, shapeOf(out[0]))
		var want []float64
		wv, xv, bv := floats(w), floats(x), floats(b)
		for k := range 4 {
			for i := range 2 {
				v := bv[4*i+k]
				for j := range 3 {
					v += wv[3*i+j] * xv[3*k+j]
				}
				want = append(want, v)
			}
		}
		near(t, want, floats(out[0]), 1e-15)
		// The gradient of the sum in the shared W adds up over the rows: each of its rows is Σ_k x_k.
		grads := torch.Must(torch.Grad([]torch.Tensor{sum(out[0])}, []torch.Tensor{w}, nil))
		g := floats(torch.Of(x.T().MustSumDimIntlist([]int64{0}, false, gotch.Double, false)))
		near(t, append(g, g...), floats(grads[0]), 1e-15)
	})
}

// A closure's tensor is the same for all rows, and so is a result that does not depend on the input: it is repeated, at
// the place that was asked for.
func TestVmapOutputsThatDoNotDepend(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x, c := vec(numbers(6, 0), 3, 2), vec([]float64{1, 2, 3, 4}, 2, 2)
		for dim, shape := range map[int][]int{0: {3, 2, 2}, 1: {2, 3, 2}, 2: {2, 2, 3}, -1: {2, 2, 3}, -3: {3, 2, 2}} {
			out, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
				return []torch.Tensor{c, torch.Of(c.T().MustMulScalar(ts.FloatScalar(3), false)), in[0]}
			}), []torch.Tensor{x}, &torch.VmapOptions{OutDims: []int{dim, dim, 0}})
			require.NoError(t, err)
			assert.Equal(t, shape, shapeOf(out[0]))
			for k := range 3 {
				assert.Equal(t, []float64{1, 2, 3, 4}, floats(torch.Of(out[0].T().MustSelect(int64(dim), int64(k), false))))
				assert.Equal(t, []float64{3, 6, 9, 12}, floats(torch.Of(out[1].T().MustSelect(int64(dim), int64(k), false))))
			}
			assert.Equal(t, floats(x), floats(out[2]))
		}
		assert.Equal(t, []float64{1, 2, 3, 4}, floats(c), "the tensor of the closure is not taken over")
	})
}

// net is a small network, tanh(x W1) w2, with its 6 weights in one vector; x has shape [2].
func net(w, x torch.Tensor) torch.Tensor {
	h := x.T().MustMatmul(w.T().MustNarrow(0, 0, 4, false).MustView([]int64{2, 2}, false), false).MustTanh(false)
	return torch.Of(h.MustDot(w.T().MustNarrow(0, 4, 2, false), false))
}

// Maps nest: per-sample gradients of each of several chains, from one call, equal the double loop over chains and
// samples of ordinary gradients. The gradients are those of the sum over everything in weights that were repeated for
// each sample.
func TestVmapNested(t *testing.T) {
	const chains, samples, dim = 3, 5, 6
	inScope(t, func(*torch.Scope) {
		w, x := vec(numbers(chains*dim, 0), chains, dim), vec(numbers(samples*2, 40), samples, 2)
		each := torch.Must(torch.Leaf(torch.Of(w.T().MustUnsqueeze(1, false).MustExpand([]int64{chains, samples, dim}, false,
			false))))
		out, err := torch.Vmap(func(chain []torch.Tensor) ([]torch.Tensor, error) {
			assert.Equal(t, []int{samples, dim}, shapeOf(chain[0]))
			return torch.Vmap(func(sample []torch.Tensor) ([]torch.Tensor, error) {
				assert.Equal(t, []int{dim}, shapeOf(sample[0]))
				assert.Equal(t, []int{2}, shapeOf(sample[1]))
				return []torch.Tensor{net(sample[0], sample[1])}, nil
			}, []torch.Tensor{chain[0], chain[1]}, nil)
		}, []torch.Tensor{each, x}, &torch.VmapOptions{InDims: []int{0, torch.NotMapped}})
		require.NoError(t, err)
		require.Equal(t, []int{chains, samples}, shapeOf(out[0]))
		grads := torch.Must(torch.Grad([]torch.Tensor{sum(out[0])}, []torch.Tensor{each}, nil))[0]
		for c := range int(chains) {
			for n := range int(samples) {
				row := x.T().MustSelect(0, int64(n), false)
				value, grad, err := torch.ValueAndGrad(
					func(w torch.Tensor) torch.Tensor { return net(w, torch.Of(row)) },
					torch.Of(w.T().MustSelect(0, int64(c), false)),
				)
				require.NoError(t, err)
				near(t, floats(value), floats(torch.Of(out[0].T().MustSelect(0, int64(c), false).MustSelect(0,
					int64(n), false))), 1e-14)
				near(t, floats(grad), floats(torch.Of(grads.T().MustSelect(0, int64(c), false).MustSelect(0,
					int64(n), false))), 1e-14)
			}
		}
	})
}

// Gradients are taken outside of the map, as above; inside it is an error that says so, whatever form is used.
func TestGradientInsideVmap(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec(numbers(8, 3), 4, 2)
		for name, f := range map[string]func(x torch.Tensor) error{
			"Leaf":         func(x torch.Tensor) error { return drop2(torch.Leaf(x)) },
			"ValueAndGrad": func(x torch.Tensor) error { _, _, err := torch.ValueAndGrad(sum, x); return err },
			"VmapValueAndGrad": func(x torch.Tensor) error {
				_, _, err := torch.VmapValueAndGrad(sum, torch.Of(x.T().MustUnsqueeze(0, false)))
				return err
			},
		} {
			_, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { return in, f(in[0]) }, []torch.Tensor{x}, nil)
			assert.Contains(t, asError(t, err).Message, "gradients cannot be taken inside a vmapped function", name)
		}
	})
}

// A map over a dimension of a tensor that an outer map is over already: dimensions are those of what each level sees.
func TestVmapNestedDims(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		y := vec(numbers(24, 9), 2, 3, 4)
		nested, err := torch.Vmap(func(outer []torch.Tensor) ([]torch.Tensor, error) { // over 4: sees [2, 3]
			assert.Equal(t, []int{2, 3}, shapeOf(outer[0]))
			return torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor { // over 3: sees [2]
				assert.Equal(t, []int{2}, shapeOf(in[0]))
				return []torch.Tensor{torch.Of(in[0].T().MustCumsum(0, gotch.Double, false)), scalar(7),
					torch.Of(outer[0].T().MustMax(false))}
			}), outer, &torch.VmapOptions{InDims: []int{1}, OutDims: []int{-1, 0, 0}})
		}, []torch.Tensor{y}, &torch.VmapOptions{InDims: []int{-1}, OutDims: []int{2, 1, 0}})
		require.NoError(t, err)
		assert.Equal(t, []int{2, 3, 4}, shapeOf(nested[0]))
		near(t, floats(torch.Of(y.T().MustCumsum(0, gotch.Double, false))), floats(nested[0]), 1e-15)
		assert.Equal(t, []int{3, 4}, shapeOf(nested[1]), "depends on neither level")
		assert.Equal(t, []int{4, 3}, shapeOf(nested[2]), "depends on the outer level alone")
		largest := y.T().MustAmax([]int64{0, 1}, false, false)
		for k := range 3 {
			assert.Equal(t, floats(torch.Of(largest)), floats(torch.Of(nested[2].T().MustSelect(1, int64(k), false))))
		}
	})
}

// Wrong arguments, and errors of the function.
func TestVmapErrors(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x, y, none := vec(numbers(6, 0), 3, 2), vec(numbers(4, 0), 2, 2), vec(nil, 0, 2)
		for _, c := range []struct {
			message string
			inputs  []torch.Tensor
			o       *torch.VmapOptions
		}{
			{"no input is mapped", nil, nil},
			{"no input is mapped", []torch.Tensor{x}, &torch.VmapOptions{InDims: []int{torch.NotMapped}}},
			{"input 1 has size 2 in the mapped dimension, earlier inputs 3", []torch.Tensor{x, y}, nil},
			{"input 2 has size 2 in the mapped dimension, earlier inputs 3", []torch.Tensor{x, x, x},
				&torch.VmapOptions{InDims: []int{0, torch.NotMapped, 1}}},
			{"the mapped dimension has size 0", []torch.Tensor{none}, nil},
			{"input 0 has shape [3 2], without dimension 2 to map over", []torch.Tensor{x},
				&torch.VmapOptions{InDims: []int{2}}},
			{"input 0 has shape [3 2], without dimension -3 to map over", []torch.Tensor{x},
				&torch.VmapOptions{InDims: []int{-3}}},
			{"input 1 has shape [], without dimension 0 to map over", []torch.Tensor{x, scalar(1)}, nil},
			{"2 input dimensions for 1 inputs", []torch.Tensor{x}, &torch.VmapOptions{InDims: []int{0, 0}}},
			{"2 output dimensions for 1 outputs", []torch.Tensor{x}, &torch.VmapOptions{OutDims: []int{0, 0}}},
			{"output dimension 2 is out of range: the result has 2", []torch.Tensor{x}, &torch.VmapOptions{OutDims: []int{2}}},
			{"output dimension -3 is out of range: the result has 2", []torch.Tensor{x},
				&torch.VmapOptions{OutDims: []int{-3}}},
		} {
			_, err := torch.Vmap(same, c.inputs, c.o)
			assert.ErrorContains(t, err, c.message)
		}
		for _, dim := range []int{2, -3, 1 << 40, math.MinInt64} {
			_, err := torch.Vmap(maps(func([]torch.Tensor) []torch.Tensor { return []torch.Tensor{vec([]float64{1})} }),
				[]torch.Tensor{x}, &torch.VmapOptions{OutDims: []int{dim}})
			assert.ErrorContains(t, err, fmt.Sprintf("output dimension %d is out of range: the result has 2", dim))
		}
		ours := errors.New("ours")
		_, err := torch.Vmap(func([]torch.Tensor) ([]torch.Tensor, error) { return nil, ours }, []torch.Tensor{x}, nil)
		assert.Same(t, ours, err)
		_, err = torch.Vmap(
			maps(func(in []torch.Tensor) []torch.Tensor {
				return []torch.Tensor{torch.Of(in[0].T().MustView([]int64{7}, false))}
			}),
			[]torch.Tensor{x},
			nil,
		)
		e := asError(t, err)
		assert.Equal(t, "View", e.Op)
		assert.Equal(t, []string{"[2] Double"}, e.Operands, "the shape of a row")
		same, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor { return []torch.Tensor{torch.Of(7)} }),
			[]torch.Tensor{x}, nil)
		assert.NoError(t, err)
		for _, v := range same[0].Values() {
			assert.Equal(t, 7.0, v, "a number is that of all evaluations")
		}
		_, _, err = torch.VmapValueAndGrad(sum, scalar(1))
		assert.ErrorContains(t, err, "without dimension 0")
		// No outputs are no error.
		out, err := torch.Vmap(func([]torch.Tensor) ([]torch.Tensor, error) { return nil, nil }, []torch.Tensor{x}, nil)
		require.NoError(t, err)
		assert.Empty(t, out)
	})
}

// Values cannot be read inside, whichever way is tried, and the error says so: a number that stood for all rows would
// be wrong for all but one. What does not depend on the mapped input can be read.
func TestVmapReadingValuesInside(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec([]float64{1, 2, 3}, 3)
		for name, read := range map[string]func(x torch.Tensor) error{
			"Item":         func(x torch.Tensor) error { return drop2(torch.Item(x)) },
			"Float64Value": func(x torch.Tensor) error { return drop2(x.T().Float64Value(nil)) },
			"Int64Value":   func(x torch.Tensor) error { return drop2(x.T().Int64Value([]int64{})) },
			"ToSlice":      func(x torch.Tensor) error { return drop2(torch.ToSlice[float64](x)) },
			"CopyTo":       func(x torch.Tensor) error { return torch.CopyTo(make([]float64, 1), x) },
			"View":         func(x torch.Tensor) error { return torch.View(x, func([]float64) error { return nil }) },
			"CopyData":     func(x torch.Tensor) error { return x.T().CopyData(make([]float64, 1), 1) },
			"IsNonzero":    func(x torch.Tensor) error { return drop2(x.T().IsNonzero(false)) },
			"Equal":        func(x torch.Tensor) error { return drop2(x.T().Equal(x.T(), false)) },
			"Vals": func(x torch.Tensor) error {
				return torch.Do(func(*torch.Scope) error { x.T().Vals(); return nil })
			},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) { return in, read(in[0]) }, []torch.Tensor{x},
					nil)
				e := asError(t, err)
				assert.Regexp(t, `(?i)vmap|inside a mapped|batch`, e.Message)
				assert.NotContains(t, e.Message, "undefined")
			})
		}
		_, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
			whole := vec([]float64{7, 8})
			assert.Equal(t, []float64{7, 8}, floats(whole))
			assert.Equal(t, 3.0, x.T().MustMax(false).MustFloat64Value(nil))
			return in
		}), []torch.Tensor{x}, nil)
		assert.NoError(t, err)
	})
}

// After a panic or an error at whichever depth no level is left open: rows are not mistaken for others, and maps work.
func TestVmapCleansUp(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := vec(numbers(6, 0), 3, 2)
		fail := func(depth int, how func()) {
			var f func(in []torch.Tensor) ([]torch.Tensor, error)
			f = func(in []torch.Tensor) ([]torch.Tensor, error) {
				if depth--; depth < 0 {
					how()
				}
				return torch.Vmap(f, in, nil)
			}
			_, _ = torch.Vmap(f, []torch.Tensor{vec(numbers(16, 0), 2, 2, 2, 2)}, nil)
		}
		for depth := range 3 {
			assert.Panics(t, func() { fail(depth, func() { panic("other") }) })
			fail(depth, func() { panic(&torch.Error{Message: "ours"}) })
			fail(depth, func() { x.T().MustView([]int64{7}, false) })
			out, err := torch.Vmap(
				maps(func(in []torch.Tensor) []torch.Tensor { return []torch.Tensor{sum(in[0])} }),
				[]torch.Tensor{x},
				nil,
			)
			require.NoError(t, err)
			assert.Equal(t, floats(torch.Of(x.T().MustSumDimIntlist([]int64{1}, false, gotch.Double, false))), floats(out[0]))
			assert.Equal(t, []int{3, 2}, shapeOf(x), "no level is open: all of x is seen")
		}
	})
}

// A mapped tensor that leaves its function by another way is of no use, but no crash either.
func TestVmapEscapedTensor(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		var escaped torch.Tensor
		_, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
			escaped = torch.Of(in[0].T().MustMulScalar(ts.FloatScalar(2), false))
			torch.Detach(escaped)
			return in
		}), []torch.Tensor{vec([]float64{1, 2})}, nil)
		require.NoError(t, err)
		asError(t, drop2(torch.ToSlice[float64](escaped)))
		asError(t, drop2(torch.Item(escaped)))
		torch.Free(escaped)
	})
}

// libtorch's own random numbers inside a map are an error, unless it is said whether the rows share them.
func TestVmapRandomness(t *testing.T) {
	inScope(t, func(*torch.Scope) {
		x := ts.MustZeros([]int64{4, 100}, gotch.Double, gotch.CPU)
		draw := maps(func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Of(in[0].T().MustRandnLike(false))}
		})
		rows := func(r torch.Randomness) ([][]float64, error) {
			out, err := torch.Vmap(draw, []torch.Tensor{torch.Of(x)}, &torch.VmapOptions{Randomness: r})
			if err != nil {
				return nil, err
			}
			require.Equal(t, []int{4, 100}, shapeOf(out[0]))
			var list [][]float64
			for k := range 4 {
				list = append(list, floats(torch.Of(out[0].T().MustSelect(0, int64(k), false))))
			}
			return list, nil
		}
		_, err := torch.Vmap(draw, []torch.Tensor{torch.Of(x)}, nil)
		assert.Contains(t, asError(t, err).Message, "randomness")
		_, err = rows(torch.RandomError)
		assert.Contains(t, asError(t, err).Message, "randomness")
		shared, err := rows(torch.RandomSame)
		require.NoError(t, err)
		own, err := rows(torch.RandomDifferent)
		require.NoError(t, err)
		for k := 1; k < 4; k++ {
			assert.Equal(t, shared[0], shared[k])
			assert.NotEqual(t, own[0], own[k])
		}
		// Streams are drawn outside, or inside: then all rows see the whole draw.
		s := torch.NewStreams(1, 4)
		out, err := torch.Vmap(maps(func(in []torch.Tensor) []torch.Tensor {
			return []torch.Tensor{torch.Must(s.Normal([]int{2}, gotch.Double, gotch.CPU))}
		}), []torch.Tensor{torch.Of(x)}, nil)
		require.NoError(t, err)
		assert.Equal(t, []int{4, 4, 2}, shapeOf(out[0]))
	})
}
