package hmc_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As methods, driven by infer.Run like all others, NUTS and HMC sample the same laws, tempered and not.
func TestMethods(t *testing.T) {
	for name, c := range map[string]struct {
		method infer.Method
		burn   int64
		scale  float64
	}{
		"NUTS":            {hmc.NUTS{Adaptation: hmc.Adaptation{Warmup: 300}}, 300, 1},
		"HMC":             {hmc.HMC{HMC: kernel.HMC{Steps: 8, Jitter: 0.5}, Adaptation: hmc.Adaptation{Warmup: 300}}, 300, 1},
		"fixed step":      {hmc.NUTS{Adaptation: hmc.Adaptation{StepSize: infer.Constant(0.5)}}, 20, 1},
		"temperature 4":   {hmc.NUTS{Adaptation: hmc.Adaptation{Warmup: 300, Temperature: infer.Constant(4)}}, 300, 2},
		"steps that vary": {hmc.NUTS{Adaptation: hmc.Adaptation{StepSize: func(i int64) float64 { return 0.3 + 0.4*float64(i%3) }}}, 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := gaussian(t)
			transform, err := c.method.Build(infer.Sum(g.Density, 1))
			require.NoError(t, err)
			start, err := infer.Zeros(g.Sites)
			require.NoError(t, err)
			result, err := oldrun.Run(ctx, transform, start, infer.Full(nil), oldrun.Config{Steps: c.burn + 800, BurnIn: c.burn, Chains: 3, Seed: 2})
			require.NoError(t, err)
			matches(t, result.Draws, "x", 0, 0, c.scale)
			matches(t, result.Draws, "x", 1, 0, 3*c.scale)
			assert.Subset(t, result.Draws.Stats(), []string{"lp", "accept", "tree_depth", "n_leapfrog", "divergent", "energy"})
		})
	}
}

// The steps of a method are those of hmc.Run: the same draws from the same start, seed and adaptation, to rounding.
func TestMethodIsTheRun(t *testing.T) {
	g := gaussian(t)
	start, err := infer.Zeros(g.Sites)
	require.NoError(t, err)
	direct, err := hmc.Run(ctx, g, hmc.Options{Chains: 2, Warmup: 40, Draws: 20, Seed: 11, Init: start})
	require.NoError(t, err)
	transform, err := hmc.NUTS{Adaptation: hmc.Adaptation{Warmup: 40}}.Build(infer.Sum(g.Density, 1))
	require.NoError(t, err)
	result, err := oldrun.Run(ctx, transform, start, infer.Full(nil), oldrun.Config{Steps: 60, BurnIn: 40, Chains: 2, Seed: 11})
	require.NoError(t, err)
	for chain := range 2 {
		for i := range 20 {
			assert.InDeltaSlice(t, direct.Unconstrained.Row(chain, i)[:2], result.Draws.Row(chain, i)[:2], 1e-6, "draw %d", i)
		}
	}
}

// A run of a method that ends in mid-warm-up and is resumed from its checkpoint has the draws of the whole run, bit for bit.
func TestMethodResumes(t *testing.T) {
	g := gaussian(t)
	transform, err := hmc.NUTS{Adaptation: hmc.Adaptation{Warmup: 60}}.Build(infer.Sum(g.Density, 1))
	require.NoError(t, err)
	start, err := infer.Zeros(g.Sites)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	run := func(steps int64, c *infer.Checkpoint) *infer.Result {
		r, err := oldrun.Run(ctx, transform, start, infer.Full(nil), oldrun.Config{Steps: steps, Chains: 3, Seed: 4, Checkpoint: c})
		require.NoError(t, err)
		return r
	}
	want := run(90, nil)
	run(25, &infer.Checkpoint{Dir: dir, Every: 5})
	have := run(90, &infer.Checkpoint{Dir: dir, Every: 5, Resume: true})
	sameDraws(t, want.Draws, have.Draws)
}

func TestMethodsRefuse(t *testing.T) {
	g := gaussian(t)
	for want, m := range map[string]infer.Method{
		"MaxDepth is -1":       hmc.NUTS{NUTS: kernel.NUTS{MaxDepth: -1}},
		"Steps is -1":          hmc.HMC{HMC: kernel.HMC{Steps: -1}},
		"Temperature is 0":     hmc.NUTS{Adaptation: hmc.Adaptation{Temperature: infer.Constant(0)}},
		"hmc.NUTS: StepSize":   hmc.NUTS{Adaptation: hmc.Adaptation{StepSize: infer.Constant(-1)}},
		"log posterior is nil": nil,
	} {
		if m == nil {
			_, err := hmc.NUTS{}.Build(infer.Target{})
			require.ErrorContains(t, err, want)
			continue
		}
		_, err := m.Build(infer.Sum(g.Density, 1))
		require.ErrorContains(t, err, want)
	}
	transform, err := hmc.NUTS{}.Build(infer.Sum(g.Density, 1))
	require.NoError(t, err)
	adam, err := optim.Adam{LR: infer.Constant(0.1)}.Build(infer.Sum(g.Density, 1))
	require.NoError(t, err)
	start, err := infer.Zeros(g.Sites)
	require.NoError(t, err)
	other, err := adam.Init(start)
	require.NoError(t, err)
	_, _, err = transform.Update(other, nil)
	require.ErrorContains(t, err, "made by another method")
}

// Two modes eight standard deviations apart: one chain stays in one, the ladder finds both, with equal weights.
func TestExchangeFindsBothModes(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	p := hmc.Posterior{Sites: layout, Density: twoModes}
	ladder, err := kernel.GeometricLadder(1, 16, 5)
	require.NoError(t, err)
	r, err := hmc.Exchange(ctx, p, hmc.ExchangeOptions{Options: hmc.Options{Warmup: 300, Draws: 3000, Seed: 5}, Ladder: ladder})
	require.NoError(t, err)
	cold := element(t, r.Draws, "x", 0)[:1]
	right := make([]float64, len(cold[0]))
	for i, x := range cold[0] {
		if x > 0 {
			right[i] = 1
		}
	}
	mean := 0.0
	for _, v := range right {
		mean += v / float64(len(right))
	}
	assert.InDelta(t, 0.5, mean, 4*0.5/math.Sqrt(diag.ESSMean([][]float64{right})))
	for pair := range 4 {
		assert.Greater(t, r.Swaps.Rate(pair), 0.2, "pair %d", pair)
	}
	_, err = hmc.Exchange(ctx, p, hmc.ExchangeOptions{})
	require.ErrorContains(t, err, "Ladder")
}
