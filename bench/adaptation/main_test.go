package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/bench/internal/synthetic"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// A result that is made up: two chains of 50 draws, of 3 and 5 leapfrog steps each, one divergence, and 1000 gradients
// in all. So 400 are of the draws and 600 of the warm-up. The second element moves slowly and has the smaller ESS.
func TestCostOf(t *testing.T) {
	d := synthetic.Chains(t, []float64{3, 5}, 1, func(draw, chain int) bool { return draw == 7 && chain == 1 })
	c, err := costOf(&infer.Result{Draws: d, Unconstrained: d, Gradients: 1000})
	require.NoError(t, err)
	ess := diag.ESSBulk([][]float64{d.Element(0, 1), d.Element(1, 1)})
	require.Less(t, ess, diag.ESSBulk([][]float64{d.Element(0, 0), d.Element(1, 0)}))
	require.Equal(t, cost{warmup: 600, sampling: 400, draws: 100, ess: ess, divergent: 1}, c)
	require.Equal(t, 400/ess, c.effective())
	require.Equal(t, 1000/ess, c.all())
}

// Each schedule is what its name says, whatever a posterior asks for.
func TestSchedules(t *testing.T) {
	for _, s := range schedules {
		m := hmc.NUTS{Metric: hmc.Dense, TargetAccept: 0.9}
		s.apply(&m)
		require.Equal(t, 0.9, m.TargetAccept)
		want := map[string]hmc.NUTS{
			"windows":         {Windows: true, Metric: hmc.Diagonal},
			"windows-fisher":  {Windows: true, Metric: hmc.Diagonal, Fisher: true},
			"moving":          {Metric: hmc.Diagonal},
			"moving-0.8":      {Metric: hmc.Diagonal},
			"moving-0.9":      {Metric: hmc.Diagonal},
			"windows-lowrank": {Windows: true, Metric: hmc.LowRank},
			"moving-lowrank":  {Metric: hmc.LowRank},
		}[s.name]
		require.Equal(t, []any{want.Windows, want.Metric, want.Fisher}, []any{m.Windows, m.Metric, m.Fisher}, s.name)
	}
}

// A flag that is wrong is an error that names it.
func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"-chains 0":       {"-chains", "0"},
		`there is no "a"`: {"-schedules", "a"},
	} {
		require.ErrorContains(t, run(context.Background(), args, &bytes.Buffer{}), want)
	}
}
