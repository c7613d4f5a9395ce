package ode_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ode"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// noted is a short run, which starts at x in one chain, and how many solutions of the system failed in it.
func noted(t *testing.T, s *ode.System, model ppl.Model, x float64, tier native.Tier) (*draws.Draws, int) {
	t.Helper()
	program, err := ppl.Compile(model, nil)
	require.NoError(t, err)
	start, err := infer.NewParams(program.Layout(), []float64{x})
	require.NoError(t, err)
	before := s.Report()
	d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Chains: 1, Start: start,
		Warmup: 100, Draws: 100, Native: tier, Observer: infer.Silent})
	require.NoError(t, err)
	after := s.Report()
	return d, after.BlowUps + after.Limit - before.BlowUps - before.Limit
}

// stiff is dy/dt = −k (y − cos t), k = exp(x), seen at 1, where y is near cos 1 whatever k: x has about its prior, N(7,
// 1). An explicit method takes steps of at most some 3.3/k, more than 1000 for x beyond 8.1, of probability 0.13.
func stiff(s *ode.System) ppl.Model {
	return func(c *ppl.Ctx) {
		k := c.Sample("x", dist.Normal(7, 1)).Exp()
		y := ode.Solve(s, []float64{1}, 0, []float64{1}, k)
		c.Observe("y", dist.Normal(y.At(0).At(0), 1), math.Cos(1))
	}
}

// A run in which solutions fail says how many, and what to do. It counts its own alone, and a run without failures says
// nothing.
func TestNotes(t *testing.T) {
	relax := func(at, y torch.Tensor, p []torch.Tensor) torch.Tensor { return p[0].Neg().Mul(y.Sub(at.Cos())) }
	limit := ode.New(relax, ode.Options{MaxSteps: 1000})
	blow := ode.New(square, ode.Options{})
	exploding := func(c *ppl.Ctx) { // infinite at 1 from y0 = 1 on
		y0 := c.Sample("y0", dist.Normal(0, 1))
		y := ode.Solve(blow, torch.Stack(0, y0), 0, []float64{1})
		c.Observe("y", dist.Normal(y.At(0).At(0), 1), 0.3)
	}
	for _, tier := range []native.Tier{native.VM, native.Eager} {
		for _, c := range []struct {
			system *ode.System
			model  ppl.Model
			start  float64
			says   string
			advice string
		}{{limit, stiff(limit), 6, "are stiff and needed too many steps", "use ode.Options{Method: ode.SDIRK}"},
			{blow, exploding, 0.2, "blew up", "give the parameters priors"}} {
			d, failed := noted(t, c.system, c.model, c.start, tier)
			require.Positive(t, failed)
			notes := d.Notes()
			require.NotEmpty(t, notes)
			note := notes[len(notes)-1]
			require.Equal(t, "no_solution", note.Kind)
			var said int
			_, err := fmt.Sscanf(note.Text, "%d of ", &said)
			require.NoError(t, err)
			require.Positive(t, said)
			require.LessOrEqual(t, said, failed) // a look along the density, which is none of the run's, comes after
			require.Contains(t, note.Text, c.says)
			require.Contains(t, note.Advice, c.advice)

			report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
			require.NoError(t, err)
			require.Contains(t, report.String(), note.Text)
		}
	}
	implicit := ode.New(relax, ode.Options{Method: ode.SDIRK, MaxSteps: 200})
	d, _ := noted(t, implicit, stiff(implicit), 6, native.VM)
	for _, n := range d.Notes() {
		require.NotEqual(t, "no_solution", n.Kind)
	}
}
