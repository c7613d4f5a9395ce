package svi_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A fit that ends on its way up is a serious finding of the run's diagnosis, and one that has settled has none. A
// checkpoint keeps what they are made of.
func TestNotesOfAFitThatHasNotSettled(t *testing.T) {
	far := func(c *ppl.Ctx) { // ten standard deviations from the start
		c.Sample("x", dist.Normal(10, 1))
	}
	program := must(ppl.Compile(far, nil))
	for _, c := range []struct {
		method  svi.SVI
		updates int
		text    string
	}{
		{svi.SVI{Optimizer: optim.Adam{LR: infer.Constant(0.01)}}, 300, "The ELBO of 2 of 2 chains still climbs: by "},
		{svi.SVI{}, 5, "The fit made 5 updates, too few to tell whether the ELBO has settled."},
		{svi.SVI{}, 4000, ""},
	} {
		r, err := infer.Run(context.Background(), program, c.method, infer.Options{Chains: 2, Warmup: c.updates,
			Draws: 100, Seed: 1, Observer: infer.Silent})
		require.NoError(t, err)
		found := r.Draws.Notes()
		transform, err := c.method.Build(program.Target())
		require.NoError(t, err)
		restored, err := transform.(infer.Restorer).Restore(program.Layout(), r.State.Save())
		require.NoError(t, err)
		run := infer.RunSummary{Info: infer.Info{Temperature: 1}}
		require.Equal(t, found, transform.(infer.Noter).Notes(restored, run))
		if c.text == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Contains(t, found[0].Text, c.text)
		require.Contains(t, found[0].Advice, "infer.Options.Warmup")
		report, err := diag.Diagnose(r.Draws, diag.DiagnoseOptions{})
		require.NoError(t, err)
		require.Contains(t, report.String(), c.text)
		require.Contains(t, report.String(), "svi.SVI")
	}
}
