package diag_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// A density that jumps is hinted at, whatever its size beyond what the step size absorbs; smooth densities with light
// and heavy tails, of one and many dimensions and of unlike scales, are not.
func TestDensityThatJumps(t *testing.T) {
	normal := func(d int, scale, jump float64) kernel.Density {
		return kernel.Func(d, func(x, grad []float64) float64 {
			logp := 0.0
			for i := range x {
				s := math.Pow(scale, float64(i)/float64(d))
				grad[i] = -x[i] / (s * s)
				logp -= x[i] * x[i] / (2 * s * s)
			}
			if x[0] > 0.5 {
				logp -= jump
			}
			return logp
		})
	}
	cauchy := kernel.Func(3, func(x, grad []float64) float64 {
		logp := 0.0
		for i := range x {
			logp -= math.Log1p(x[i] * x[i])
			grad[i] = -2 * x[i] / (1 + x[i]*x[i])
		}
		return logp
	})
	laplace := kernel.Func(5, func(x, grad []float64) float64 { // continuous; its gradient jumps
		logp := 0.0
		for i := range x {
			logp -= math.Abs(x[i])
			grad[i] = -math.Copysign(1, x[i])
		}
		return logp
	})
	for name, c := range map[string]struct {
		density kernel.Density
		accept  float64
		jumps   bool
	}{
		"normal of 1":                    {normal(1, 1, 0), 0.8, false},
		"normal of 1, small steps":       {normal(1, 1, 0), 0.95, false},
		"normal of 10":                   {normal(10, 100, 0), 0.8, false},
		"normal of 100":                  {normal(100, 10, 0), 0.95, false},
		"Cauchy":                         {cauchy, 0.8, false},
		"Cauchy, small steps":            {cauchy, 0.95, false},
		"Laplace":                        {laplace, 0.8, false},
		"jump of 5 in 10":                {normal(10, 1, 5), 0.8, true},
		"truncated":                      {normal(5, 1, 100), 0.8, true},
		"jump of 0.5 in 10, small steps": {normal(10, 1, 0.5), 0.95, true},
	} {
		for method, moves := range map[string]kernel.Kernel{"hmc.NUTS": kernel.NUTS{}, "hmc.HMC": kernel.HMC{Steps: 16},
			"hmc.HMC, jittered": kernel.HMC{Steps: 20, Jitter: 0.5}} {
			t.Run(name+" "+method, func(t *testing.T) {
				d, err := draws.New([]draws.Site{{Name: "x", Shape: []int{c.density.Dim()}, Size: c.density.Dim()}},
					[]string{draws.StatAccept, draws.StatLeapfrog, draws.StatDivergent, draws.StatEnergy,
						draws.StatTreeDepth}, 4)
				require.NoError(t, err)
				name, _, _ := strings.Cut(method, ",")
				d.SetAttr(draws.AttrMethod, name)
				_, err = kernel.Run(context.Background(), c.density, kernel.Options{Kernel: moves, Warmup: 500, Draws: 500, Seed: 4,
					TargetAccept: c.accept, Record: func(chain, _ int, x []float64, info kernel.Info) error {
						if info.Warmup {
							return nil
						}
						diverged := 0.0
						if info.Divergent {
							diverged = 1
						}
						return d.AppendChain(chain, x, []float64{info.Accept, float64(info.Leapfrogs), diverged, info.Energy,
							float64(info.Depth)})
					}})
				require.NoError(t, err)
				report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
				require.NoError(t, err)
				found := report.Of("energy_jumps")
				if !c.jumps {
					assert.Empty(t, found)
					return
				}
				require.NotEmpty(t, found)
				assert.Equal(t, diag.Info, found[0].Severity)
				assert.Contains(t, found[0].Message, "without divergence: the log density may jump")
				assert.Contains(t, found[0].Advice, "Look for branches")
			})
		}
	}
	t.Log("seen: 3 densities with a jump hinted at, 7 without are not, by NUTS and HMC")
}
