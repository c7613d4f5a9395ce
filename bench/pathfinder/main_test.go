package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// The needed length is the first from which on no cost is above the goal, not the first that is below it.
func TestNeeded(t *testing.T) {
	for want, effective := range map[int][]float64{
		0: {1, 1, 1, 1}, 1: {2, 1, 1, 1}, 2: {1, 2, 1, 1}, 3: {1, 1, 2, 1},
	} {
		var costs []cost
		for _, e := range effective {
			costs = append(costs, cost{effective: e})
		}
		require.Equal(t, want, needed(costs, 1.5), "%v", effective)
	}
	require.Equal(t, 1, needed([]cost{{effective: 9}, {effective: 9}}, 1), "the last where none is good enough")
}

// Gradients of a warm-up are those of a run less those of its draws, of a chain, on average over the seeds. With
// Pathfinder its own are in it, and the draws are of the same law, so that a draw costs about the same.
func TestMeasure(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Sample("x", dist.Normal(mu, 1))
	}, nil)
	require.NoError(t, err)
	ctx := context.Background()
	for _, with := range []bool{false, true} {
		method := hmc.NUTS{Pathfinder: with}
		got, err := measure(ctx, program, method, 100, 2)
		require.NoError(t, err)
		warmup, sampling := 0.0, 0.0
		for seed := range uint64(2) {
			r, err := infer.Run(ctx, program, method, infer.Options{Seed: seed, Warmup: 100, Observer: infer.Silent})
			require.NoError(t, err)
			own := 0.0
			for k := range r.Draws.Chains() {
				leapfrogs, err := r.Draws.Stat(draws.StatLeapfrog, k)
				require.NoError(t, err)
				for _, v := range leapfrogs {
					own += v
				}
			}
			sampling += own
			warmup += (float64(r.Gradients) - own) / 8
		}
		require.InDelta(t, warmup, got.warmup, 1e-9)
		require.Greater(t, got.warmup, 100.0, "a transition has a gradient at least")
		ess := sampling / got.effective // of two runs of 4000 draws
		require.Less(t, ess, 16000.0)
		require.Greater(t, ess, 800.0)
	}
}

// A flag that is wrong is an error that names it.
func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{`-only "b"`: {"-only", "b"}, "-seeds 0": {"-seeds", "0"}} {
		require.ErrorContains(t, run(context.Background(), args, &bytes.Buffer{}), want)
	}
}
