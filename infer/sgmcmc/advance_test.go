package sgmcmc_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// advanced makes updates from the start, by Update or by Advance, and gives the last state and what was told.
func advanced(t *testing.T, m infer.Method, target infer.Target, start infer.Params, advance bool,
	steps int) (state infer.State, infos []infer.Info) {
	t.Helper()
	transform := must(m.Build(target))
	state = must(infer.Init(transform, start, 4))
	n := 0.0
	next := func() (infer.Batch, error) {
		n++
		return infer.Batch{"s": torch.Of(vector([]float64{math.Sin(n)}))}, nil
	}
	if p, ok := transform.(infer.Preparer); ok && p.Due(state, true) {
		state = must(p.Prepare(state, true, next))
	}
	for range steps {
		update := transform.Update
		if advance {
			update = func(s infer.State, b infer.Batch) (infer.State, infer.Info, error) {
				return infer.Advance(transform, s, b)
			}
		}
		after, info, err := update(state, must(next()))
		require.NoError(t, err)
		owned, _ := state.Tensors()
		for part, tensor := range owned {
			assert.Equal(t, advance, torch.Freed(tensor), part)
		}
		state, infos = after, append(infos, info)
	}
	return state, infos
}

// Advance gives the bits of Update, and frees the state before. Chain 1 of three begins where the density is not
// finite.
func TestAdvanceIsUpdate(t *testing.T) {
	const d = 2065
	layout := must(infer.NewLayout(infer.Shapes{"a": {1029}, "b": {d - 1029}}))
	for _, dtype := range []gotch.DType{gotch.Double, gotch.Float} {
		target := walled(dtype, d)
		for _, chains := range []int{0, 2, 3} {
			x, shape := spread(max(chains, 1)*d), []int{d}
			if chains > 0 {
				shape = []int{chains, d}
			}
			if chains == 3 {
				x[d] = -21
			}
			flat := must(torch.FromSliceOn(torch.CPU, dtype, x, shape...))
			start := infer.Params{Layout: layout, Flat: flat}
			for method, m := range passMethods {
				t.Run(name("%s, %v, %d chains", method, dtype, chains), func(t *testing.T) {
					want, told := advanced(t, m, target, start, false, 4)
					have, also := advanced(t, m, target, start, true, 4)
					assert.Equal(t, fmt.Sprint(told), fmt.Sprint(also)) // as text: NaN is NaN
					assert.Equal(t, want.Steps(), have.Steps())
					assert.Equal(t, want.Save().Streams, have.Save().Streams)
					require.Len(t, have.Save().Tensors, len(want.Save().Tensors))
					for part, tensor := range want.Save().Tensors {
						identical(t, values(tensor.T()), values(have.Save().Tensors[part].T()), part)
					}
				})
			}
		}
	}
}

func address(t torch.Tensor) unsafe.Pointer {
	return must(ts.KelvinData(t.T(), int(gotch.Double.CInt())))
}

// A state that is advanced has the memory of the one before, unless something else has it too: that keeps its values.
func TestAdvanceUsesMemoryAgain(t *testing.T) {
	target := walled(gotch.Double, 100)
	transform := must(sgmcmc.SGHMC{LR: infer.Constant(0.1)}.Build(target))
	start := infer.Params{Layout: must(infer.NewLayout(infer.Shapes{"a": {100}})), Flat: torch.Of(vector(spread(100)))}
	batch := infer.Batch{"s": torch.Of(vector([]float64{0.5}))}
	state := must(infer.Init(transform, start, 4))
	advance := func() {
		var err error
		state, _, err = infer.Advance(transform, state, batch)
		require.NoError(t, err)
	}
	where, before := address(state.Position().Flat), values(state.Position().Flat.T())
	advance()
	assert.Equal(t, where, address(state.Position().Flat))
	assert.NotEqual(t, before, values(state.Position().Flat.T()))

	view := state.Position().Flat.T().MustView([]int64{10, 10}, false)
	before = values(view)
	advance()
	identical(t, before, values(view), "a view")
	assert.Equal(t, where, address(torch.Of(view)))
	assert.NotEqual(t, where, address(state.Position().Flat))

	kept := state // by its tensors alone, which are freed
	advance()
	_, err := torch.ToSlice[float64](kept.Position().Flat)
	assert.ErrorContains(t, err, "freed")
}

// Where an update fails the state is as it was.
func TestAdvanceThatFails(t *testing.T) {
	target := walled(gotch.Double, 100)
	alpha := func(step int) float64 {
		if step == 1 {
			return -1
		}
		return 1
	}
	transform := must(sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: alpha}.Build(target))
	start := infer.Params{Layout: must(infer.NewLayout(infer.Shapes{"a": {100}})), Flat: torch.Of(vector(spread(100)))}
	state := must(infer.Init(transform, start, 4))
	batch := infer.Batch{"s": torch.Of(vector([]float64{0.5}))}
	state, _, err := infer.Advance(transform, state, batch)
	require.NoError(t, err)
	want := map[string][]float64{}
	for part, tensor := range state.Save().Tensors {
		want[part] = values(tensor.T())
	}
	for text, b := range map[string]infer.Batch{"Alpha at update 1": batch, `"s"`: {}} {
		_, _, err := infer.Advance(transform, state, b)
		require.ErrorContains(t, err, text)
		for part, tensor := range state.Save().Tensors {
			identical(t, want[part], values(tensor.T()), part)
		}
	}
	_, _, err = infer.Advance(transform, nil, batch)
	require.ErrorContains(t, err, "expected sgmcmc.SGHMCState")
	_, _, err = infer.Advance(nil, state, batch)
	require.ErrorContains(t, err, "the transform is nil")
}
