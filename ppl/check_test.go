package ppl_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// scalarDraws are draws of one number, chain by chain.
func scalarDraws(t *testing.T, name string, chains ...[]float64) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: name, Size: 1}}, nil, len(chains))
	require.NoError(t, err)
	for c, chain := range chains {
		for _, v := range chain {
			require.NoError(t, d.AppendChain(c, []float64{v}, nil))
		}
	}
	return d
}

// The model, the data and the draws of the golden figures of package diag/loo: loo 2.5.1 in R 4.2.2, with
// relative_eff(exp(loglik), chain_id).
func TestLOOGolden(t *testing.T) {
	y := make([]float64, 12)
	for i := range y {
		y[i] = float64((7*i)%12)/3 - 1.8
	}
	y[11] = 4
	for scale, want := range map[float64][]float64{
		1:   {-27.512407071863628, 0.82162542045337394, 7.7151733884889593, 0.38277326248478155},
		1.5: {-23.13226524107521, 0.19179542524445825, 3.3795131739161675, 0.089975293236287474},
	} {
		model := func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(half(mu), scale), c.Data("y")) })
		}
		p, err := ppl.Compile(model, infer.Batch{"y": vec(y...)})
		require.NoError(t, err)
		seed := testkit.LCG(11)
		if scale != 1 {
			seed = 12
		}
		posterior := scalarDraws(t, "mu", testkit.GoldenAR(2, 100, 0.5, 0, seed)...)
		r, err := p.LOO(posterior)
		require.NoError(t, err)
		require.Len(t, r.Pointwise, 12)
		require.Equal(t, 200, r.Draws)
		require.InEpsilonSlice(t, want, []float64{r.ELPD, r.P, r.SE, r.SEP}, 1e-10)

		// What is stored is the log likelihood of each draw of each chain, without statistics.
		ll, err := p.LogLikelihood(posterior)
		require.NoError(t, err)
		require.Empty(t, ll.Stats())
		require.Equal(t, []draws.Site{{Name: "y", Shape: []int{12}, Size: 12}}, ll.Sites())
		require.Equal(t, 2, ll.Chains())
		for _, at := range [][2]int{{0, 0}, {1, 99}} {
			mu := posterior.Row(at[0], at[1])[0]
			for i, v := range ll.Row(at[0], at[1]) {
				require.InDelta(t, normal(y[i], 0.5*mu, scale), v, 1e-12)
			}
		}
		// What a mask leaves out is no observation; a chain that is longer is cut.
		posterior = scalarDraws(t, "mu", append(slices.Clone(posterior.Element(0, 0)), 5, 6), posterior.Element(1, 0))
		mask := vec(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0).T().MustGt(ts.FloatScalar(0.5), false)
		masked := func(c *ppl.Ctx) {
			mu := c.Sample("mu", dist.Normal(0, 10))
			c.Plate("data", 0, func(c *ppl.Ctx) {
				ppl.Mask(func(c *ppl.Ctx) { c.Observe("y", dist.Normal(half(mu), scale), c.Data("y")) }, torch.Of(mask))(c)
			})
		}
		p, err = ppl.Compile(masked, infer.Batch{"y": vec(y...)})
		require.NoError(t, err)
		most, err := p.LOO(posterior)
		require.NoError(t, err)
		require.Len(t, most.Pointwise, 11)
		require.InEpsilon(t, r.Pointwise[3].ELPD, most.Pointwise[3].ELPD, 1e-10)
	}
}

// y_i ~ N(mu, 1) with mu ~ N(0, 10²): leave-one-out predictions, and predictions, in closed form.
func TestLOOAndPredictConjugate(t *testing.T) {
	const n, chains, length = 20, 4, 1000
	rng := rand.New(rand.NewPCG(1, 2))
	y, sum := make([]float64, n), 0.0
	for i := range y {
		y[i] = 1 + rng.NormFloat64()
		sum += y[i]
	}
	v := 1 / (n + 0.01)
	rows := make([][]float64, chains)
	for c := range rows {
		for range length {
			rows[c] = append(rows[c], v*sum+math.Sqrt(v)*rng.NormFloat64())
		}
	}
	posterior := scalarDraws(t, "mu", rows...)
	p, err := ppl.Compile(mean(0), infer.Batch{"y": vec(y...)})
	require.NoError(t, err)
	r, err := p.LOO(posterior)
	require.NoError(t, err)
	require.Zero(t, r.Unreliable)
	for i, point := range r.Pointwise {
		vi := 1 / (n - 1 + 0.01)
		require.InDelta(t, normal(y[i], vi*(sum-y[i]), math.Sqrt(1+vi)), point.ELPD, 5*point.MCSE)
	}

	predicted, err := p.Predict(posterior, 3)
	require.NoError(t, err)
	require.Equal(t, chains, predicted.Chains())
	require.Equal(t, length, predicted.Len(2))
	require.Equal(t, []draws.Site{{Name: "y", Shape: []int{n}, Size: n}}, predicted.Sites())
	for i := range 3 {
		withinErrors(t, predicted.Pooled(i), v*sum, math.Sqrt(1+v))
	}
	// Each draw has a stream of its own: one noise is not that of another chain.
	noise := predicted.Row(0, 5)[0] - rows[0][5]
	require.NotEqual(t, noise, predicted.Row(1, 5)[0]-rows[1][5])
	again, err := p.Predict(posterior, 3)
	require.NoError(t, err)
	require.Equal(t, predicted.Row(3, 999), again.Row(3, 999))

	// The model that made the data passes the check; one of far less noise does not.
	report, err := p.Check(posterior, 1)
	require.NoError(t, err)
	require.True(t, report.OK(), report.String())
	require.Contains(t, report.String(), "y: the data have mean")
	require.Contains(t, report.String(), "posterior_predictive")
	narrow := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 10))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 0.3), c.Data("y")) })
	}
	q, err := ppl.Compile(narrow, infer.Batch{"y": vec(y...)})
	require.NoError(t, err)
	report, err = q.Check(posterior, 1)
	require.NoError(t, err)
	found := report.Of("posterior_predictive")
	require.Equal(t, diag.Warning, found[0].Severity)
	require.Less(t, found[0].Figure, 0.01)
	require.Contains(t, report.String(), "y: the data have sd")
}

// Four draws of the right posterior lie on one side of the data with probability 2/5: their p-values are no sign. With
// points of an optimiser the check says so, however many.
func TestCheckOfFewDraws(t *testing.T) {
	p, err := ppl.Compile(mean(0), infer.Batch{"y": vec(9, 10, 11)})
	require.NoError(t, err)
	few := scalarDraws(t, "mu", []float64{0}, []float64{0.1}, []float64{0}, []float64{0.2}) // far from the data
	many := scalarDraws(t, "mu", make([]float64, 200))
	for _, c := range []struct {
		posterior  *draws.Draws
		method     string
		want       string
		statistics bool
	}{
		{few, "", "there are 4 draws, fewer than the 200", false},
		{few, "optim.LBFGS", "the draws are points of an optimiser", false},
		{many, "optim.LBFGS", "the draws are points of an optimiser", true},
		{many, "", "", true},
	} {
		c.posterior.SetAttr(draws.AttrMethod, c.method)
		report, err := p.Check(c.posterior, 1)
		require.NoError(t, err)
		require.False(t, report.OK())
		if c.want != "" {
			require.Contains(t, report.Findings[0].Message, c.want)
			require.NotEmpty(t, report.Findings[0].Advice)
		}
		warned := slices.ContainsFunc(report.Findings, func(f diag.Finding) bool {
			return f.Site == "y" && f.Severity == diag.Warning
		})
		require.Equal(t, c.statistics, warned, report.String())
	}
}

// Log likelihoods and predictions have the form of the groups of a store.
func TestChecksAreStored(t *testing.T) {
	p, err := ppl.Compile(mean(0), infer.Batch{"y": vec(1, 2, 3)})
	require.NoError(t, err)
	posterior := scalarDraws(t, "mu", []float64{1, 2, 3, 4}, []float64{2, 2.5, 1, 0})
	likelihood, err := p.LogLikelihood(posterior)
	require.NoError(t, err)
	predicted, err := p.Predict(posterior, 1)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "run.json")
	inf := &store.Inference{Posterior: posterior, LogLikelihood: likelihood, PosteriorPredictive: predicted}
	require.NoError(t, store.WriteJSON(path, inf))
	back, err := store.Open(path)
	require.NoError(t, err)
	require.Equal(t, likelihood.Row(1, 2), back.LogLikelihood.Row(1, 2))
	require.Equal(t, predicted.Row(0, 3), back.PosteriorPredictive.Row(0, 3))
}

// Long posteriors are evaluated in parts, and one predicted draw does not depend on where the parts end.
func TestPredictInParts(t *testing.T) {
	y := make([]float64, 700)
	p, err := ppl.Compile(mean(0), infer.Batch{"y": vec(y...)})
	require.NoError(t, err)
	chain := make([]float64, 2000) // parts of 2^20 / 700 = 1497 draws
	for i := range chain {
		chain[i] = float64(i)
	}
	all, err := p.Predict(scalarDraws(t, "mu", chain), 3)
	require.NoError(t, err)
	require.Equal(t, 2000, all.Total())
	one, err := p.Predict(scalarDraws(t, "mu", chain[:1400], chain[1400:]), 3)
	require.NoError(t, err)
	require.Equal(t, all.Row(0, 1399), one.Row(0, 1399))
	require.InDeltaSlice(t, all.Row(0, 1999), one.Row(1, 599), 1e-12)
}

// As many data as were observed are predicted, in a plate or not: the draws are the same, and so is the check. The
// distributions have one event, which all data share.
func TestPredictOutsidePlates(t *testing.T) {
	posterior := scalarDraws(t, "mu", []float64{0.1, -0.3, 0.5, 0.2}, []float64{0, 0.4, -0.2, 0.3})
	for name, c := range map[string]struct {
		of    func(mu torch.Tensor) dist.Distribution
		y     torch.Tensor
		shape []int
	}{
		"numbers": {func(mu torch.Tensor) dist.Distribution { return dist.Normal(mu, 2) }, vec(1.2, -2.5, 2.9, -0.3, 0.1),
			[]int{5}},
		"counts": {func(mu torch.Tensor) dist.Distribution { return dist.Poisson(mu.Exp()) }, vec(1, 0, 2, 1), []int{4}},
		"vectors": {func(mu torch.Tensor) dist.Distribution {
			return dist.Independent(dist.Normal(torch.Stack(0, mu, mu.Neg()), 1), 1)
		}, matrix(3, 2, 1, -1, 0.5, 0.2, -0.4, 0.3), []int{3, 2}},
		"parameters of each datum": {func(mu torch.Tensor) dist.Distribution { return dist.Normal(mu, vec(1, 2, 3)) },
			vec(1, -2, 3), []int{3}},
	} {
		var rows [2][][]float64
		var text [2]string
		for i, inside := range []bool{false, true} {
			p, err := ppl.Compile(func(m *ppl.Ctx) {
				d := c.of(m.Sample("mu", dist.Normal(0, 1)))
				observe := func(m *ppl.Ctx) { m.Observe("y", d, m.Data("y")) }
				if inside {
					m.Plate("data", 0, observe)
				} else {
					observe(m)
				}
			}, infer.Batch{"y": c.y})
			require.NoError(t, err, name)
			predicted, err := p.Predict(posterior, 3)
			require.NoError(t, err, name)
			require.Equal(t, c.shape, predicted.Sites()[0].Shape, name)
			rows[i] = predicted.Rows()
			report, err := p.Check(posterior, 3)
			require.NoError(t, err, name)
			text[i] = report.String()
			prior, err := ppl.Predictive{Model: p.Model(), Batch: p.Batch()}.Prior(2)
			require.NoError(t, err, name)
			require.Equal(t, append([]int{2}, c.shape...), prior["y"].Shape(), name)
		}
		require.Equal(t, rows[1], rows[0], name)
		require.Equal(t, text[1], text[0], name)
	}
}

func TestChecksRefuse(t *testing.T) {
	p, err := ppl.Compile(func(c *ppl.Ctx) { c.Factor("f", half(c.Sample("mu", dist.Normal(0, 1)))) }, nil)
	require.NoError(t, err)
	posterior := scalarDraws(t, "mu", []float64{1, 2, 3, 4})
	_, err = p.LOO(posterior)
	require.ErrorContains(t, err, "a Factor or a Density is not one of single observations; use Observe")
	_, err = p.Predict(posterior, 1)
	require.ErrorContains(t, err, "nothing to predict")
	q, err := ppl.Compile(mean(0), infer.Batch{"y": vec(1, 2)})
	require.NoError(t, err)
	for _, d := range []*draws.Draws{nil, scalarDraws(t, "mu", nil)} {
		_, err = q.LOO(d)
		require.ErrorIs(t, err, draws.ErrNoDraws)
		_, err = q.Check(d, 1)
		require.ErrorIs(t, err, draws.ErrNoDraws)
	}
	_, err = q.LOO(scalarDraws(t, "nu", []float64{1, 2, 3, 4}))
	require.ErrorContains(t, err, `"mu"`)
	require.ErrorContains(t, err, `["nu"]`)
}

// half is x/2.
func half(x torch.Tensor) torch.Tensor { return x.Mul(0.5) }

// A series of which three quarters are missing, by the law of the model itself: the statistics of the 8 numbers that
// are there have the ranks of chance among those of 200 predictions in the same places. Each of the four is beyond all
// of them, with a p-value below 0.01, in 2/201 of the data sets. Of 60 data sets that makes 2.4 warnings, and if the
// four agreed their standard deviation would be 4·√(60·0.01·0.99) = 3.1. The largest of 32 numbers instead of 8 would
// warn in a quarter of the data sets, and so would the smallest. Data three times as far from 0 have warnings.
func TestCheckOfMissingNumbers(t *testing.T) {
	const n, sets = 32, 60
	model := func(c *ppl.Ctx) {
		s := c.Sample("s", dist.HalfNormal(1))
		c.Observe("y", statespace.New(n, s, statespace.LocalLevel{Scale: 0.01, Mean: 0, Spread: 0.1}), c.Data("y"))
	}
	compile := func(y []float64) *ppl.Program {
		p, err := ppl.Compile(model, infer.Batch{"y": vec(y...)})
		require.NoError(t, err)
		return p
	}
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	posterior := scalarDraws(t, "s", ones(200))
	law, err := compile(make([]float64, n)).Predict(scalarDraws(t, "s", ones(sets)), 17)
	require.NoError(t, err)
	count := func(scale float64, sets int) (warnings int) {
		for i := range sets {
			y := slices.Clone(law.Row(0, i))
			for j := range y {
				if y[j] *= scale; j%4 != 1 {
					y[j] = math.NaN()
				}
			}
			report, err := compile(y).Check(posterior, uint64(i))
			require.NoError(t, err)
			for _, f := range report.Findings {
				require.Contains(t, f.Message, "y: the data, without 24 that are missing, have ")
				require.NotContains(t, f.Message, "NaN")
				if f.Severity == diag.Warning {
					warnings++
				}
			}
		}
		return warnings
	}
	require.LessOrEqual(t, float64(count(1, sets)), 2.4+4*3.1)
	require.GreaterOrEqual(t, count(3, 20), 10)

	report, err := compile(slices.Repeat([]float64{math.NaN()}, n)).Check(posterior, 1)
	require.NoError(t, err)
	require.Empty(t, report.Findings)
}
