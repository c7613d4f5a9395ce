package infer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Code is shared by what compiles on one layout, where the recordings give one plan. A number that the density captures
// and that has changed since makes another plan; a batch or a point that the code was not compared at is compared.
func TestCompiledCodeIsShared(t *testing.T) {
	for _, tier := range []native.Tier{native.C, native.VM} {
		t.Run(string(tier), func(t *testing.T) {
			factor, calls := 2.0, 0
			target := infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
				calls++
				return p.Get("x").Square().Mul(-factor).Add(b.Get("y")).Sum(), nil
			}, 1)
			layout := layoutOf(t, infer.Shapes{"x": {2}})
			batch := infer.Batch{"y": vec([]float64{1, 3})}
			// compile returns the value at (1, 2), -5·factor + Σ y, and how often the density was evaluated.
			compile := func(layout *infer.Layout, at float64, b infer.Batch) (value float64, evaluations int) {
				calls = 0
				f, report, err := infer.Compile(target, pointOf(t, layout, at, 0.2), b, native.Options{Tier: tier})
				require.NoError(t, err)
				require.Equal(t, tier, report.Tier)
				require.Less(t, report.Error, 1e-10)
				made := calls
				value, err = f.Eval([]float64{1, 2}, 0, make([]float64, 2))
				require.NoError(t, err)
				return value, made
			}
			const recordings, comparisons = 2, 3 // at two points, and at the first of them again

			value, made := compile(layout, 0.5, batch)
			assert.Equal(t, -6.0, value)
			assert.Equal(t, recordings+comparisons, made)
			value, made = compile(layout, 0.5, batch)
			assert.Equal(t, -6.0, value)
			assert.Equal(t, recordings, made, "all is known")
			_, made = compile(layout, 0.7, batch)
			assert.Equal(t, recordings+comparisons, made, "another point")
			_, made = compile(layout, 0.5, infer.Batch{"y": vec([]float64{1, 3})})
			assert.Equal(t, recordings, made, "another tensor of the same numbers")
			value, made = compile(layout, 0.5, infer.Batch{"y": vec([]float64{1, 4})})
			assert.Equal(t, -5.0, value)
			assert.Equal(t, recordings+comparisons, made, "another batch")
			_, made = compile(layoutOf(t, infer.Shapes{"x": {2}}), 0.5, batch)
			assert.Equal(t, recordings+comparisons, made, "another layout")
			factor = 3
			value, made = compile(layout, 0.5, batch)
			assert.Equal(t, -11.0, value)
			assert.Equal(t, recordings+comparisons, made, "another constant")
			for i := range 15 {
				_, made = compile(layout, 1+float64(i), batch)
				assert.Equal(t, recordings+comparisons, made, "another point")
			}
			_, made = compile(layout, 99, batch)
			assert.Equal(t, recordings, made, "it was right at sixteen points")
			_, made = compile(layout, 99, infer.Batch{"y": vec([]float64{1, 5})})
			assert.Equal(t, recordings+comparisons, made, "of another batch")
		})
	}
}

// A run has the same bits whether or not another one of its program came before.
func TestRunsAreTheSameWithSharedCode(t *testing.T) {
	sample := func(p infer.Program, seed uint64) *draws.Draws {
		d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Warmup: 50, Draws: 20, Seed: seed,
			Observer: infer.Silent})
		require.NoError(t, err)
		return d
	}
	program := func() infer.Program {
		start := pointOf(t, layoutOf(t, infer.Shapes{"x": {2}}), 0.5, -0.2)
		return infer.Handwritten(infer.Sum(cubic, 1), start, infer.Batch{"y": vec([]float64{1, 2, 3, 4, 5})})
	}
	p := program()
	first := sample(p, 1)
	sample(p, 2)
	again, alone := sample(p, 1), sample(program(), 1)
	for chain := range first.Chains() {
		for i := range first.Len(chain) {
			require.Equal(t, first.Row(chain, i), again.Row(chain, i))
			require.Equal(t, first.Row(chain, i), alone.Row(chain, i))
		}
	}
}
