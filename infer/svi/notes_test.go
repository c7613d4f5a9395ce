package svi_test

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
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

// A guide whose standard deviation is 1.5 times that of the posterior says so, also at temperature T, where the
// posterior's is √T, and one of the right width says nothing. Params of the model are points, and no draws.
func TestNotesOfAGuideOfAnotherWidth(t *testing.T) {
	model := func(c *ppl.Ctx) { c.Sample("x", dist.Normal(3, 1)) }
	withParam := func(c *ppl.Ctx) {
		model(c)
		c.Observe("y", dist.Normal(c.Param("m", 0, support.Real), 1), 0.5)
	}
	positive := func(c *ppl.Ctx) { c.Sample("x", dist.LogNormal(3, 1)) }
	wide := func(log bool, width float64) ppl.Model {
		return func(c *ppl.Ctx) {
			loc := c.Param("loc", 0, support.Real)
			if log {
				c.Sample("x", dist.LogNormal(loc, width))
			} else {
				c.Sample("x", dist.Normal(loc, width))
			}
		}
	}
	number := regexp.MustCompile(`^By importance weights the standard deviation of the posterior is ([0-9.]+) times the ` +
		`fit's, for x on unconstrained space\.$`)
	for what, c := range map[string]struct {
		model       ppl.Model
		log         bool
		temperature float64
		wide        float64
	}{
		"as wide": {model, false, 1, 1}, "wider at T = 3": {model, false, 3, 1.5},
		"as wide, with a Param": {withParam, false, 1, 1}, "wider, with a Param": {withParam, false, 1, 1.5},
		"wider, positive": {positive, true, 1, 1.5},
	} {
		q := wide(c.log, c.wide*math.Sqrt(c.temperature))
		d, err := infer.Sample(context.Background(), must(svi.Compile(c.model, q, nil)),
			svi.SVI{Temperature: infer.Constant(c.temperature)}, infer.Options{Draws: 10, Seed: 1, Observer: infer.Silent})
		require.NoError(t, err)
		notes := d.Notes()
		if c.wide == 1 {
			require.Empty(t, notes, what)
			continue
		}
		require.Len(t, notes, 1, what)
		require.Equal(t, "far_from_posterior", notes[0].Kind)
		require.False(t, notes[0].Serious)
		require.Contains(t, notes[0].Advice, "svi.SVI: compare with hmc.NUTS")
		m := number.FindStringSubmatch(notes[0].Text)
		require.NotNil(t, m, notes[0].Text)
		// The weights of x, in standard deviations of the posterior, have E[w²(x² − 1)²] = 1.147 under the guide, so that
		// the standard error of the ratio 2/3 is 2/3·½√(1.147/4000) = 0.0057. It is told in two digits.
		require.InDelta(t, 1/c.wide, must(strconv.ParseFloat(m[1], 64)), 4*0.0057+0.005, what)
	}
}
