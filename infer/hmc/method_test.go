package hmc_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updates makes n updates of a method from a point, and returns the draws after the first of them.
func updates(t *testing.T, m infer.Method, density infer.LogPosterior, p infer.Params, burn, n int) [][][]float64 {
	t.Helper()
	transform, err := m.Build(infer.Sum(density, 1))
	require.NoError(t, err)
	s, err := infer.Init(transform, p, 2)
	require.NoError(t, err)
	out := make([][][]float64, p.Chains())
	for i := range n {
		next, info, err := transform.Update(s, nil)
		require.NoError(t, err)
		require.Nil(t, info.Diverged)
		s = next
		if i < burn {
			continue
		}
		x, err := s.Position().Values()
		require.NoError(t, err)
		for k := range out {
			out[k] = append(out[k], x[2*k:2*k+2])
		}
	}
	return out
}

// Updated one by one, as any method can be, NUTS and HMC sample the same laws, tempered and not.
func TestUpdates(t *testing.T) {
	density := gaussianDensity(t)
	start, err := infer.Zeros(layoutOf(t, two))
	require.NoError(t, err)
	start, err = start.Repeat(3)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		method infer.Method
		burn   int
		scale  float64
	}{
		"NUTS":            {hmc.NUTS{Warmup: 300}, 300, 1},
		"HMC":             {hmc.HMC{Steps: 8, Jitter: 0.5, Warmup: 300}, 300, 1},
		"fixed step":      {hmc.NUTS{StepSize: infer.Constant(0.5)}, 20, 1},
		"temperature 4":   {hmc.NUTS{Warmup: 300, Temperature: infer.Constant(4)}, 300, 2},
		"steps that vary": {hmc.NUTS{StepSize: func(i int) float64 { return 0.3 + 0.4*float64(i%3) }}, 20, 1},
		"exchange":        {hmc.Exchange{Ladder: []float64{1, 3}, Kernel: hmc.NUTS{Warmup: 300}}, 300, 1},
	} {
		t.Run(name, func(t *testing.T) {
			made := updates(t, c.method, density, start, c.burn, c.burn+800)
			for i, sd := range []float64{1, 3} {
				var x [][]float64
				sum, square, n := 0., 0., 0.
				for k := range made {
					var chain []float64
					for _, p := range made[k] {
						chain = append(chain, p[i])
						sum, square, n = sum+p[i], square+p[i]*p[i], n+1
					}
					x = append(x, chain)
				}
				assert.InDelta(t, 0, sum/n, 4*diag.MCSEMean(x))
				assert.InDelta(t, c.scale*sd, math.Sqrt(square/n-sum*sum/n/n), 4*diag.MCSESD(x))
			}
		})
	}
}

// The updates of a method are those of its run: the same draws from the same start, seed and adaptation, to rounding.
func TestUpdatesAreTheRun(t *testing.T) {
	layout := layoutOf(t, two)
	start, err := infer.NewParams(layout, []float64{0, 0, 1, 1})
	require.NoError(t, err)
	direct, err := infer.Run(ctx, gaussian(t), hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 40, Draws: 20, Seed: 2,
		Start: start})
	require.NoError(t, err)
	made := updates(t, hmc.NUTS{Warmup: 40}, gaussianDensity(t), start, 40, 60)
	for chain := range 2 {
		for i := range 20 {
			assert.InDeltaSlice(t, direct.Unconstrained.Row(chain, i)[:2], made[chain][i], 1e-6, "draw %d", i)
		}
	}
}

// States are values: an update from an old state gives what it gave, also after it was saved and restored.
func TestOldStatesGoOn(t *testing.T) {
	layout := layoutOf(t, two)
	start, err := infer.NewParams(layout, []float64{0, 0, 1, 1, -1, 2})
	require.NoError(t, err)
	for name, m := range map[string]infer.Method{
		"NUTS": hmc.NUTS{Warmup: 30}, "HMC": hmc.HMC{Persistence: 0.5, Warmup: 30},
		"exchange": hmc.Exchange{Ladder: []float64{1, 2, 4}, Every: 3, Kernel: hmc.NUTS{Warmup: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			transform, err := m.Build(infer.Sum(gaussianDensity(t), 1))
			require.NoError(t, err)
			s, err := infer.Init(transform, start, 4)
			require.NoError(t, err)
			var states []infer.State
			var infos []infer.Info
			for range 40 {
				states = append(states, s)
				next, info, err := transform.Update(s, nil)
				require.NoError(t, err)
				s, infos = next, append(infos, info)
			}
			states = append(states, s)
			for _, i := range []int{39, 0, 29, 30, 7} {
				saved := states[i].Save()
				restored, err := transform.(infer.Restorer).Restore(layout, saved)
				require.NoError(t, err)
				for _, old := range []infer.State{states[i], restored} {
					again, info, err := transform.Update(old, nil)
					require.NoError(t, err)
					require.Equal(t, infos[i], info)
					want, err := states[i+1].Position().Values()
					require.NoError(t, err)
					have, err := again.Position().Values()
					require.NoError(t, err)
					require.Equal(t, want, have)
					require.Equal(t, states[i+1].Save().Extra, again.Save().Extra)
				}
			}
			_, err = transform.(infer.Restorer).Restore(layout, infer.Saved{Tensors: states[0].Save().Tensors,
				Extra: []byte("x")})
			require.ErrorIs(t, err, infer.ErrCheckpoint)
		})
	}
}

func TestMethodsRefuse(t *testing.T) {
	target := infer.Sum(gaussianDensity(t), 1)
	for _, m := range []infer.Method{hmc.NUTS{}, hmc.HMC{}, hmc.Exchange{Ladder: []float64{1, 2}}} {
		_, err := m.Build(infer.Target{})
		require.ErrorContains(t, err, "log posterior is nil")
		require.ErrorContains(t, err, strings.TrimPrefix(fmt.Sprintf("%T", m), "*"))
	}
	transform, err := hmc.NUTS{}.Build(target)
	require.NoError(t, err)
	adam, err := optim.Adam{LR: infer.Constant(0.1)}.Build(target)
	require.NoError(t, err)
	start, err := infer.Zeros(layoutOf(t, two))
	require.NoError(t, err)
	other, err := adam.Init(start)
	require.NoError(t, err)
	_, _, err = transform.Update(other, nil)
	require.ErrorContains(t, err, "made by another method")
}

// A batch on which a point is not finite moves no chain, and says which.
func TestUpdatesHold(t *testing.T) {
	layout := layoutOf(t, two)
	start, err := infer.NewParams(layout, []float64{1, 1, -1, 1})
	require.NoError(t, err)
	transform, err := hmc.NUTS{}.Build(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Log().Sum(), nil
	}, 1))
	require.NoError(t, err)
	s, err := transform.Init(start)
	require.NoError(t, err)
	next, info, err := transform.Update(s, nil)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, info.Diverged)
	require.EqualValues(t, 1, next.Steps())
}

func TestGeometricLadder(t *testing.T) {
	for i, want := range []float64{0.01, 0.1, 1, 10, 100} {
		assert.InEpsilon(t, want, hmc.GeometricLadder(0.01, 100, 5)[i], 1e-12)
	}
	for _, l := range [][]float64{
		hmc.GeometricLadder(1, 2, 1), hmc.GeometricLadder(0, 1, 3), hmc.GeometricLadder(2, 1, 3),
		hmc.GeometricLadder(1, math.Inf(1), 3),
		hmc.GeometricLadder(1, 2, -1),
	} {
		_, err := hmc.Exchange{Ladder: l}.Build(infer.Sum(gaussianDensity(t), 1))
		require.ErrorContains(t, err, "hmc.Exchange: Ladder")
	}
}

// Two modes eight standard deviations apart: one chain stays in one, the ladders find both, with equal weights.
func TestExchangeFindsBothModes(t *testing.T) {
	p := handwritten(t, twoModes, infer.Shapes{"x": {}})
	r, err := infer.Run(ctx, p, hmc.Exchange{Ladder: hmc.GeometricLadder(1, 16, 5)},
		infer.Options{Chains: 2, Warmup: 300, Draws: 3000, Seed: 5})
	require.NoError(t, err)
	require.Equal(t, 2, r.Draws.Chains())
	equalWeights(t, element(t, r.Draws, "x", 0), 0)
	for _, swaps := range detail(t, r).Swaps {
		for pair := range 4 {
			assert.Greater(t, swaps.Rate(pair), 0.2, "pair %d", pair)
		}
	}
}

// equalWeights says that half of the draws are above a number, within four standard errors.
func equalWeights(t *testing.T, x [][]float64, middle float64) {
	t.Helper()
	right, mean, n := make([][]float64, len(x)), 0., 0.
	for k := range x {
		for _, e := range x[k] {
			v := 0.
			if e > middle {
				v = 1
			}
			right[k] = append(right[k], v)
			mean, n = mean+v, n+1
		}
	}
	assert.InDelta(t, 0.5, mean/n, 4*0.5/math.Sqrt(diag.ESSMean(right)))
}

// Draws say which target of the acceptance the user set, so that advice on them does not repeat it.
func TestDrawsHaveTheTarget(t *testing.T) {
	for target, want := range map[float64]string{0: "", 0.99: "0.99"} {
		d, err := infer.Sample(ctx, schools(t), hmc.NUTS{TargetAccept: target}, infer.Options{Chains: 1, Warmup: 20, Draws: 5,
			Observer: infer.Silent})
		require.NoError(t, err)
		require.Equal(t, want, d.Attrs()["target_accept"])
	}
}
