package optim_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// An optimiser that stopped on its way says how far the mode is in standard deviations of the posterior, √(1/(Nλ)) at
// curvature λ of the mean log posterior; minibatches cannot tell.
func TestNotesOfOptimisersThatDidNotArrive(t *testing.T) {
	const n, lambda = 100, 4.0
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Mul(-0.5 * lambda), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"x": {}}))
	b := infer.Batch{"y": torch.Of(vector(make([]float64, n))), "scalar": torch.Of(vector([]float64{1})),
		"groups": torch.Of(vector(make([]float64, 3)))}
	for _, e := range []struct {
		at      float64
		part    bool
		text    string
		serious bool
	}{
		{0.5, false, "ended about 10 posterior standard deviations from the mode", true}, // 0.5·√(Nλ) = 10
		{-0.01, false, "ended about 0.2 posterior standard deviations", false},
		{0.001, false, "", false},
		{0.5, true, "", false},
	} {
		transform := must(optim.SGD{LR: infer.Constant(1e-12)}.Build(infer.Mean(f, n)))
		s, info := update(t, transform, begin(t, transform, params(l, []float64{0, e.at}, 2)), b)
		notes := transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: 1, Info: info, Layout: l, Batch: b, Part: e.part})
		if e.text == "" {
			assert.Empty(t, notes, "at %g", e.at)
			continue
		}
		require.Len(t, notes, 1)
		assert.Equal(t, "not_converged", notes[0].Kind)
		assert.Equal(t, e.serious, notes[0].Serious)
		assert.Contains(t, notes[0].Text, e.text)
		assert.Contains(t, notes[0].Advice, "Warmup")
		assert.Contains(t, notes[0].Advice, "let LR fall to 0")
		// LBFGS has no LR: the same state is as far from the mode, and so are its own that never moved.
		lbfgs := must(optim.LBFGS{Tolerance: 100}.Build(infer.Mean(f, n)))
		s, info = update(t, lbfgs, begin(t, lbfgs, params(l, []float64{0, e.at}, 2)), b)
		for _, held := range []int{0, 1} {
			run := infer.RunSummary{Updates: 1, Held: held, Info: info, Layout: l, Batch: b, Part: e.part}
			notes = lbfgs.(infer.Noter).Notes(s, run)
			require.Len(t, notes, 1+held)
			assert.Contains(t, notes[held].Text, e.text)
			for _, note := range notes {
				assert.NotContains(t, note.Advice, "LR", note.Kind)
			}
		}
	}
	// A start where the density is not concave, and where it is flat in rounding: the end of LBFGS is at the mode.
	wells := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x").Square()
		return x.Sub(x.Square().Mul(0.5)), nil
	}
	transform := must(optim.SGD{LR: infer.Constant(1e-12)}.Build(infer.Sum(wells, 1)))
	s, info := update(t, transform, begin(t, transform, params(l, []float64{0.1}, 0)), nil)
	notes := transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: 1, Info: info, Layout: l})
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0].Text, "at no mode")
	end, info := climb(t, optim.LBFGS{}, infer.Sum(wells, 1), params(l, []float64{0.1}, 0), nil, 40)
	transform = must(optim.LBFGS{}.Build(infer.Sum(wells, 1)))
	assert.Empty(t, transform.(infer.Noter).Notes(end, infer.RunSummary{Updates: 40, Info: info, Layout: l}))
}

// The density of the centred eight schools rises without end as tau goes to 0 with all effects at mu: per unit of log
// tau by 8, one for each effect, whatever else the batch has. LBFGS follows it until effects and mu are the same
// number, where the curvature of the effects, tau⁻², hides the slope in tau from the gradient as a whole. Non-centred
// the density has a mode, and the run nothing to say; nor does it ask for more draws of a point.
func TestNotesOfARunAway(t *testing.T) {
	schools := func(c *ppl.Ctx) {
		mu, tau := c.Sample("mu", dist.Normal(0, 5)), c.Sample("tau", dist.HalfCauchy(5))
		c.Plate("schools", 8, func(c *ppl.Ctx) {
			theta := c.Sample("theta", dist.Normal(mu, tau))
			c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
		})
	}
	data := infer.Batch{"y": torch.Of(vector([]float64{28, 8, -3, 7, -1, 1, 18, 12})),
		"sigma":  torch.Of(vector([]float64{15, 10, 16, 11, 9, 11, 10, 18})),
		"scalar": torch.Scalar(1), "regions": torch.Of(vector([]float64{1, 2, 3}))}
	report := func(m ppl.Model) *diag.Report {
		d := must(infer.Sample(context.Background(), must(ppl.Compile(m, data)), optim.LBFGS{},
			infer.Options{Seed: 1, Observer: infer.Silent}))
		return must(diag.Diagnose(d, diag.DiagnoseOptions{}))
	}
	centred := report(schools)
	found := centred.Of("not_converged")
	require.Len(t, found, 1)
	assert.Equal(t, diag.Serious, found[0].Severity)
	assert.Contains(t, found[0].Message, `at no mode: in "tau" the log posterior still rises, by 8 for a unit`)
	assert.Contains(t, found[0].Advice, "write it non-centred")

	r := report(ppl.Reparam(schools, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred}))
	assert.True(t, r.OK(), r.String())
	for _, r := range []*diag.Report{centred, r} {
		assert.NotContains(t, r.String(), "Draw more")
	}
}

// A model that was compiled on a minibatch has no gradient of all data at hand: nothing is said of a mode.
func TestNotesOfAPartOfTheData(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("rows", 40, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) }, ppl.Minibatch)
	}
	y := make([]float64, 40)
	for i := range y {
		y[i] = 5
	}
	for size, found := range map[int]int{10: 0, 40: 1} {
		p := must(ppl.Compile(model, infer.Batch{"y": torch.Of(vector(y[:size]))}))
		batches := must(infer.Minibatches(infer.Batch{"y": torch.Of(vector(y))}, infer.MinibatchOptions{Size: 10}))
		d := must(infer.Sample(context.Background(), p, optim.Adam{LR: infer.Constant(1e-3)}, infer.Options{Seed: 1,
			Warmup: 10, Draws: 1, Batches: batches, Observer: infer.Silent}))
		assert.Len(t, must(diag.Diagnose(d, diag.DiagnoseOptions{})).Of("not_converged"), found, "%d rows", size)
	}
}

// A site whose gradient is 0.5 of its standard deviation away from its mode is named beside one that is at its mode and
// 10¹² times as stiff, which hides it: along the gradient as a whole the mode is nearer by √(λ₁/λ₂)·|g₂|/|g₁|.
func TestNotesOfOneSite(t *testing.T) {
	f := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("soft").Square().Mul(-0.5).Sub(p.Get("stiff").Square().Mul(0.5e12)), nil
	}
	l := must(infer.NewLayout(infer.Shapes{"soft": {}, "stiff": {}}))
	transform := must(optim.SGD{LR: infer.Constant(1e-20)}.Build(infer.Sum(f, 1)))
	s, info := update(t, transform, begin(t, transform, params(l, []float64{0.5, 1e-9}, 0)), nil)
	notes := transform.(infer.Noter).Notes(s, infer.RunSummary{Updates: 1, Info: info, Layout: l})
	require.Len(t, notes, 1)
	assert.False(t, notes[0].Serious)
	assert.Contains(t, notes[0].Text, "about 0.5 posterior standard deviations from the mode")
	assert.Contains(t, notes[0].Text, `in "soft" is 0.5, the curvature along it 1.`)
	end, info := climb(t, optim.LBFGS{}, infer.Sum(f, 1), params(l, []float64{0.5, 1e-9}, 0), nil, 40)
	transform = must(optim.LBFGS{}.Build(infer.Sum(f, 1)))
	assert.Empty(t, transform.(infer.Noter).Notes(end, infer.RunSummary{Updates: 40, Info: info, Layout: l}))
}

// The density exp(−N(x² − 1)²) has modes at ±1 of curvature 8N, so that they are 2√(8N)
// standard deviations apart, 28.3 for N = 25. Chains at one mode have nothing to say, nor have chains on a ridge, along
// which the density is the same.
func TestNotesOfDifferentModes(t *testing.T) {
	const n = 25
	l := must(infer.NewLayout(infer.Shapes{"x": {}, "y": {}}))
	wells := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sub(1).Square().Add(p.Get("y").Square()).Mul(-n), nil
	}
	ridge := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) { return p.Get("y").Square().Neg(), nil }
	notes := func(f infer.LogPosterior, starts ...float64) []draws.Note {
		end, info := climb(t, optim.LBFGS{}, infer.Sum(f, 1), params(l, starts, len(starts)/2), nil, 40)
		transform := must(optim.LBFGS{}.Build(infer.Sum(f, 1)))
		return transform.(infer.Noter).Notes(end, infer.RunSummary{Updates: 40, Info: info, Layout: l})
	}
	found := notes(wells, 0.8, 0, 1.2, 0, -0.9, 0, 0.9, 0)
	require.Len(t, found, 1)
	assert.Equal(t, "modes_differ", found[0].Kind)
	assert.False(t, found[0].Serious)
	assert.Contains(t, found[0].Text, "that of chain 2 is 28.3 posterior standard deviations from that of chain 0")
	assert.Empty(t, notes(wells, 0.8, 0, 1.2, 0.1))
	assert.Empty(t, notes(ridge, 0.8, 0, -0.9, 0))
}
