package ppl_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// line is linear regression through the data x, with a local effect for each of three groups.
func line(c *ppl.Ctx) {
	slope := c.Sample("slope", dist.Normal(1, 0.5))
	c.Plate("data", 4, func(c *ppl.Ctx) {
		mean := c.Deterministic("mean", c.Data("x").Mul(slope))
		c.Observe("y", dist.Normal(mean, 0.3), c.Data("y"))
	})
}

// withinErrors compares the mean and the variance of n independent normal draws with theirs,
// within four standard errors.
func withinErrors(t *testing.T, draws []float64, mean, sd float64) {
	t.Helper()
	n := float64(len(draws))
	m, v := stat.MeanVariance(draws, nil)
	require.InDelta(t, mean, m, 4*sd/math.Sqrt(n))
	require.InDelta(t, sd*sd, v, 4*sd*sd*math.Sqrt(2/(n-1)))
}

// column is one element of a tensor of shape [n, width], over n.
func column(flat []float64, width, j int) []float64 {
	var out []float64
	for i := j; i < len(flat); i += width {
		out = append(out, flat[i])
	}
	return out
}

// The prior predictive of y_j is N(x_j, 0.25 x_j² + 0.09), whatever y is, and needs no y.
func TestPriorPredictive(t *testing.T) {
	x := []float64{0, 1, -2, 3}
	for name, batch := range map[string]infer.Batch{
		"with y":    {"x": vec(x...), "y": vec(100, 100, 100, 100)},
		"without y": {"x": vec(x...)},
	} {
		values, err := ppl.Predictive{Model: line, Batch: batch, Seed: 4}.Prior(20000)
		require.NoError(t, err, name)
		y := floats(t, values["y"])
		require.Len(t, y, 80000)
		for j := range x {
			withinErrors(t, column(y, 4, j), x[j], math.Sqrt(0.25*x[j]*x[j]+0.09))
		}
		// One run has one slope: y − mean is only noise.
		mean := floats(t, values["mean"])
		noise := make([]float64, len(y))
		for i := range y {
			noise[i] = y[i] - mean[i]
		}
		withinErrors(t, noise, 0, 0.3)
	}
}

// exp(1e4 x) overflows for x above 0.071, which has probability 0.4717 under a standard normal. The count is within
// four standard errors of it. A deterministic value may be infinite.
func TestPriorPredictiveCountsWhatIsNotFinite(t *testing.T) {
	const n = 1000
	for name, m := range map[string]ppl.Model{
		"wide": func(c *ppl.Ctx) {
			x := c.Sample("x", dist.Normal(0, 1))
			c.Sample("wide", dist.Normal(x.Mul(1e4).Exp(), 1))
		},
		"log": func(c *ppl.Ctx) {
			x := c.Sample("x", dist.Normal(0, 1))
			c.Deterministic("log", torch.Where(x.Lt(-0.071), math.NaN(), x))
			c.Deterministic("low", torch.Of(0).Log())
		},
	} {
		values, err := ppl.Predictive{Model: m, Seed: 4}.Prior(n)
		require.ErrorIs(t, err, infer.ErrNonFinite)
		bad := 0
		for _, v := range floats(t, values[name]) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				bad++
			}
		}
		require.ErrorContains(t, err, fmt.Sprintf("site %q: %d of %d prior draws", name, bad, n))
		require.InDelta(t, 0.4717*n, bad, 4*math.Sqrt(n)/2)
	}
	_, err := ppl.Predictive{Seed: 4, Model: func(c *ppl.Ctx) {
		c.Deterministic("low", torch.Of(0).Log())
		c.Sample("x", dist.Normal(0, 1))
	}}.Prior(n)
	require.NoError(t, err)
}

func slopeDraws(t *testing.T, slopes ...float64) *draws.Draws {
	d, err := draws.New([]draws.Site{{Name: "slope", Shape: nil, Offset: 0, Size: 1}}, nil, 2)
	require.NoError(t, err)
	for i := 0; i < len(slopes); i += 2 {
		require.NoError(t, d.Append(slopes[i:i+2], nil))
	}
	return d
}

// The posterior predictive has the slope of each draw, chain after chain, and new covariates, more of them than the
// plate had.
func TestPosteriorPredictive(t *testing.T) {
	const n = 4000
	slopes := make([]float64, n)
	for i := range slopes {
		slopes[i] = float64(i % 2) // chain 0 has slope 0, chain 1 has 1
	}
	x := []float64{5, -5, 1, 2, 3, 4}
	values, err := ppl.Predictive{Model: line, Batch: infer.Batch{"x": vec(x...)}, Seed: 4,
		Sites: []string{"y"}}.Posterior(slopeDraws(t, slopes...))
	require.NoError(t, err)
	require.Len(t, values, 1)
	y := floats(t, values["y"])
	require.Len(t, y, n*len(x))
	half := len(y) / 2
	for j := range x {
		withinErrors(t, column(y[:half], len(x), j), 0, 0.3)
		withinErrors(t, column(y[half:], len(x), j), x[j], 0.3)
	}
	again, err := ppl.Predictive{Model: line, Batch: infer.Batch{"x": vec(x...)}, Seed: 4,
		Sites: []string{"y"}}.Posterior(slopeDraws(t, slopes...))
	require.NoError(t, err)
	require.Equal(t, y, floats(t, again["y"]), "the same seed gives the same predictions")
	// An intervention is kept.
	did, err := ppl.Predictive{Model: ppl.Do(line, ppl.Values{"slope": scalar(2)}),
		Batch: infer.Batch{"x": vec(x...)}}.Prior(3)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{10, -10, 2, 4, 6, 8}, floats(t, did["mean"])[:6], 1e-14)
}

// The pointwise log likelihood is the log density of each datum under each draw, unscaled.
func TestLogLikelihood(t *testing.T) {
	x, y := []float64{1, 2}, []float64{0.5, 2.5}
	batch := infer.Batch{"x": vec(x...), "y": vec(y...)} // 2 of the plate's 4
	values, err := ppl.Predictive{Model: line, Batch: batch}.LogLikelihood(slopeDraws(t, 0.1, 0.2, 0.3, 0.4))
	require.NoError(t, err)
	require.Len(t, values, 1)
	var want []float64
	for _, s := range []float64{0.1, 0.3, 0.2, 0.4} { // chain by chain
		for i := range x {
			want = append(want, normal(y[i], s*x[i], 0.3))
		}
	}
	require.InDeltaSlice(t, want, floats(t, values["y"]), 1e-13)
}

func TestPredictiveRefuses(t *testing.T) {
	batch := infer.Batch{"x": vec(1, 2, 3, 4), "y": vec(1, 2, 3, 4)}
	_, err := ppl.Predictive{Model: line, Batch: batch}.Prior(0)
	require.ErrorContains(t, err, "at least 1")
	_, err = ppl.Predictive{Model: line, Batch: batch, Sites: []string{"nope"}}.Prior(3)
	require.ErrorContains(t, err, `no site "nope"`)
	require.ErrorContains(t, err, `"slope"`)
	empty, err := draws.New([]draws.Site{{Name: "slope", Size: 1}}, nil, 1)
	require.NoError(t, err)
	_, err = ppl.Predictive{Model: line, Batch: batch}.Posterior(empty)
	require.ErrorIs(t, err, draws.ErrNoDraws)
	_, err = ppl.Predictive{Model: line, Batch: infer.Batch{"y": vec(1)}}.Prior(3)
	require.Error(t, err, "x is not only observed")
	_, err = ppl.Predictive{Model: line, Batch: infer.Batch{"x": vec(1)}}.LogLikelihood(slopeDraws(t, 1, 2))
	require.ErrorContains(t, err, `"y"`)

	// Draws on unconstrained space have the same names.
	positive := func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(0, c.Sample("slope", dist.HalfNormal(1))), c.Data("y"))
	}
	_, err = ppl.Predictive{Model: positive, Batch: batch}.Posterior(slopeDraws(t, -1, 2))
	require.ErrorContains(t, err, "outside the support")
	require.ErrorContains(t, err, "Program.Draws")
	// The first draw may look like a named one. An end of the support may come of rounding.
	_, err = ppl.Predictive{Model: positive, Batch: batch}.LogLikelihood(slopeDraws(t, 1, 2, 3, -1))
	require.ErrorContains(t, err, "a draw is outside the support")
	_, err = ppl.Predictive{Model: positive, Batch: batch}.LogLikelihood(slopeDraws(t, 1, 2, 3, 0))
	require.NoError(t, err)
}

// Draws of a run say which of the two they are: none of them is taken for the other, though sites and signs agree.
func TestDrawsOfTheOtherSpaceAreRefused(t *testing.T) {
	y := make([]float64, 30)
	for i := range y {
		y[i] = 20 * math.Cos(2*float64(i)) // of a scale near 14, whose logarithm, 2.6, is positive in every draw
	}
	p, _ := compiled(t, func(c *ppl.Ctx) {
		scale := c.Sample("scale", dist.HalfNormal(20))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(0, scale), c.Data("y")) })
	}, infer.Batch{"y": vec(y...)})
	r, err := infer.Run(context.Background(), p, hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 200, Draws: 200, Seed: 1,
		Observer: infer.Silent})
	require.NoError(t, err)
	for _, row := range r.Unconstrained.Rows() {
		require.Positive(t, row[0])
	}
	q := ppl.Predictive{Model: p.Model(), Batch: p.Batch()}
	thinned, err := r.Unconstrained.Thin(2)
	require.NoError(t, err)
	for name, use := range map[string]func(*draws.Draws) error{
		"LOO":           func(d *draws.Draws) error { _, err := p.LOO(d); return err },
		"Check":         func(d *draws.Draws) error { _, err := p.Check(d, 1); return err },
		"Predict":       func(d *draws.Draws) error { _, err := p.Predict(d, 1); return err },
		"PowerScaling":  func(d *draws.Draws) error { _, err := p.PowerScaling(d); return err },
		"Posterior":     func(d *draws.Draws) error { _, err := q.Posterior(d); return err },
		"LogLikelihood": func(d *draws.Draws) error { _, err := q.LogLikelihood(d); return err },
	} {
		require.NoError(t, use(r.Draws), name)
		for _, d := range []*draws.Draws{r.Unconstrained, thinned} {
			err := use(d)
			require.ErrorIs(t, err, draws.ErrLayout, name)
			require.ErrorContains(t, err, "give the named ones, Draws of an infer.Result", name)
		}
	}
	_, err = p.Draws(r.Draws, p.Batch())
	require.ErrorIs(t, err, draws.ErrLayout)
	require.ErrorContains(t, err, "Unconstrained of an infer.Result")
	again, err := p.Draws(thinned, p.Batch())
	require.NoError(t, err)
	_, err = p.Draws(again, p.Batch())
	require.ErrorIs(t, err, draws.ErrLayout)
	_, err = r.Draws.Merge(r.Unconstrained)
	require.ErrorIs(t, err, draws.ErrLayout)
}

// Counts are predicted as counts.
func TestPredictiveOfCounts(t *testing.T) {
	m := func(c *ppl.Ctx) { c.Observe("k", dist.Poisson(3), c.Data("k")) }
	values, err := ppl.Predictive{Model: m, Batch: infer.Batch{}, Seed: 2}.Prior(5000)
	require.NoError(t, err)
	k := floats(t, values["k"])
	mean, variance := stat.MeanVariance(k, nil)
	require.InDelta(t, 3, mean, 4*math.Sqrt(3./5000))
	require.InDelta(t, 3, variance, 4*math.Sqrt((3+2*9)/5000.)) // Var s² = (μ4 − σ⁴)/n, μ4 = λ + 3λ²
	require.False(t, slices.ContainsFunc(k, func(v float64) bool { return v != math.Floor(v) || v < 0 }))
}

// A latent variable may have the name of a tensor of the batch.
func TestPredictiveKeepsData(t *testing.T) {
	m := func(c *ppl.Ctx) {
		slope := c.Sample("slope", dist.Normal(0, 1))
		c.Deterministic("mean", c.Data("slope").Mul(slope))
	}
	values, err := ppl.Predictive{Model: m, Batch: infer.Batch{"slope": vec(1, 2, 3)}}.Posterior(slopeDraws(t, 10, 20))
	require.NoError(t, err)
	require.Equal(t, []float64{10, 20, 30, 20, 40, 60}, floats(t, values["mean"]))
}

// Interventions and conditions on a fitted model are kept in all kinds of prediction; what Observe takes is drawn anew.
func TestPredictiveKeepsInterventions(t *testing.T) {
	m := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		tau := c.Sample("tau", dist.HalfNormal(1))
		c.Observe("y", dist.Normal(c.Deterministic("mean", mu.Mul(tau)), 0.1), c.Data("y"))
	}
	d, err := draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "tau", Offset: 1, Size: 1}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, d.Append([]float64{1, 2}, nil))
	require.NoError(t, d.Append([]float64{3, 4}, nil))
	batch := infer.Batch{"y": scalar(0)}
	for name, c := range map[string]struct {
		model ppl.Model
		want  []float64
	}{
		"as fitted":  {m, []float64{2, 12}},
		"do":         {ppl.Do(m, ppl.Values{"mu": scalar(100)}), []float64{200, 400}},
		"condition":  {ppl.Condition(m, ppl.Values{"tau": scalar(5)}), []float64{5, 15}},
		"substitute": {ppl.Substitute(m, ppl.Values{"tau": scalar(7)}), []float64{7, 21}},
	} {
		values, err := ppl.Predictive{Model: c.model, Batch: batch}.Posterior(d)
		require.NoError(t, err, name)
		require.Equal(t, c.want, floats(t, values["mean"]), name)
		require.NotEqual(t, []float64{0, 0}, floats(t, values["y"]), name)
		ll, err := ppl.Predictive{Model: c.model, Batch: batch}.LogLikelihood(d)
		require.NoError(t, err, name)
		require.InDelta(t, normal(0, c.want[1], 0.1), floats(t, ll["y"])[1], 1e-9*c.want[1]*c.want[1]*100, name)
	}
}

// Draws of another model are refused instead of a prediction from the prior.
func TestPredictiveRefusesOtherDraws(t *testing.T) {
	batch := infer.Batch{"x": vec(1, 2, 3, 4), "y": vec(1, 2, 3, 4)}
	wrong, err := draws.New([]draws.Site{{Name: "slop", Size: 1}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, wrong.Append([]float64{1}, nil))
	for _, f := range []func(*draws.Draws) (ppl.Values, error){
		ppl.Predictive{Model: line, Batch: batch}.Posterior, ppl.Predictive{Model: line, Batch: batch}.LogLikelihood,
	} {
		_, err = f(wrong)
		require.ErrorContains(t, err, `"slope"`)
		require.ErrorContains(t, err, `["slop"]`)
		_, err = f(nil)
		require.ErrorIs(t, err, draws.ErrNoDraws)
	}
	shape, err := draws.New([]draws.Site{{Name: "slope", Shape: []int{3}, Size: 3}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, shape.Append([]float64{1, 2, 3}, nil))
	_, err = ppl.Predictive{Model: line, Batch: batch}.Posterior(shape)
	require.ErrorContains(t, err, "shape [3]")

	// Draws of the centred model in the other one.
	centred, err := draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "tau", Offset: 1, Size: 1}, {Name: "theta",
		Shape: []int{8}, Offset: 2, Size: 8}}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, centred.Append([]float64{1, 2, 1, 2, 3, 4, 5, 6, 7, 8}, nil))
	free := ppl.Reparam(schools, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})
	_, err = ppl.Predictive{Model: free, Batch: schoolData(t)}.Posterior(centred)
	require.ErrorContains(t, err, `"theta_decentred"`)
	require.ErrorContains(t, err, "stands for")
	_, err = ppl.Predictive{Model: schools, Batch: schoolData(t)}.Posterior(centred)
	require.NoError(t, err)
}

// One new datum gives one prediction, nine give nine.
func TestPredictiveOfNewSizes(t *testing.T) {
	for _, x := range [][]float64{{5}, {5, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		values, err := ppl.Predictive{Model: line, Batch: infer.Batch{"x": vec(x...)},
			Sites: []string{"y"}}.Posterior(slopeDraws(t, 1, 2))
		require.NoError(t, err)
		require.Len(t, floats(t, values["y"]), 2*len(x))
	}
}

// A covariate that is misspelt is named.
func TestPredictiveNamesMissingData(t *testing.T) {
	_, err := ppl.Predictive{Model: line, Batch: infer.Batch{"X": vec(1)}}.Prior(3)
	require.ErrorContains(t, err, `"x"`)
	require.ErrorContains(t, err, `["X"]`)
	_, err = ppl.Predictive{Model: func(c *ppl.Ctx) {
		c.Sample("a", dist.Normal(0, 1))
		c.Sample("a", dist.Normal(0, 1))
	}}.Prior(2)
	require.ErrorContains(t, err, "two sites of that name")
}

// Draws of four groups do not fit seven: the error says that variables of groups have to be left out of the draws, and
// without them seven groups are drawn.
func TestPredictForOtherGroups(t *testing.T) {
	model := func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, 1))
		c.Plate("groups", 0, func(c *ppl.Ctx) {
			theta := c.Sample("theta", dist.Normal(mu, 1))
			c.Plate("rows", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(theta, 1), c.Data("y")) })
		})
	}
	p, err := ppl.Compile(model, infer.Batch{"y": matrix(2, 4, 1, 2, 3, 4, 5, 6, 7, 8)})
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), p, hmc.NUTS{}, infer.Options{Draws: 20, Warmup: 50})
	require.NoError(t, err)
	others := ppl.Predictive{Model: model, Batch: infer.Batch{"y": matrix(1, 7, 1, 2, 3, 4, 5, 6, 7)}}
	_, err = others.Posterior(posterior)
	require.ErrorContains(t, err, `the draws have the variables in plate "groups" for 4`)
	require.ErrorContains(t, err, "Draws.Select")
	mu, err := posterior.Select("mu")
	require.NoError(t, err)
	values, err := others.Posterior(mu)
	require.NoError(t, err)
	require.Equal(t, []int{80, 1, 7}, values["y"].T().MustSize())
}

// Draws that hold a deterministic value and lack the variable that it is made of predict with the value; where it does
// not fit the prediction, that is an error which names both. With the variable it is computed, from new covariates too.
func TestPredictiveUsesStoredValues(t *testing.T) {
	model := func(groups int) ppl.Model {
		return func(c *ppl.Ctx) {
			sd := c.Sample("sd", dist.HalfNormal(1))
			var b torch.Tensor
			c.Plate("groups", groups, func(c *ppl.Ctx) {
				z := c.Sample("z", dist.Normal(0, 1))
				b = c.Deterministic("b", z.Mul(sd))
			})
			c.Plate("rows", 0, func(c *ppl.Ctx) {
				mean := c.Deterministic("mean", b.Take(c.Data("group")).Mul(c.Data("x")))
				c.Observe("y", dist.Normal(mean, 1e-9), c.Data("y"))
			})
		}
	}
	all, err := draws.New([]draws.Site{{Name: "sd", Size: 1}, {Name: "z", Shape: []int{2}, Offset: 1, Size: 2},
		{Name: "b", Shape: []int{2}, Offset: 3, Size: 2}}, nil, 1)
	require.NoError(t, err)
	for i := range 5 {
		sd, z := 0.5+float64(i), []float64{1, -2}
		require.NoError(t, all.Append([]float64{sd, z[0], z[1], sd * z[0], sd * z[1]}, nil))
	}
	fewer, err := all.Select("sd", "b")
	require.NoError(t, err)
	batch := infer.Batch{"group": torch.New([]int{1, 0, 1}), "x": vec(1, 2, 3)}
	for name, d := range map[string]*draws.Draws{"all": all, "without z": fewer} {
		v, err := ppl.Predictive{Model: model(2), Batch: batch}.Posterior(d)
		require.NoError(t, err, name)
		got := v["y"].Values()
		for i := range 5 {
			sd := 0.5 + float64(i)
			require.InDeltaSlice(t, []float64{-2 * sd, 2 * sd, -6 * sd}, got[3*i:3*i+3], 1e-7, name)
		}
	}
	_, err = ppl.Predictive{Model: model(3), Batch: batch}.Posterior(fewer)
	require.ErrorContains(t, err, `site "b"`)
	require.ErrorContains(t, err,
		`the draws have it with shape [2], and lack ["z"], from which the model makes one of shape [3]`)
	alone, err := all.Select("sd")
	require.NoError(t, err)
	_, err = ppl.Predictive{Model: model(3), Batch: batch}.Posterior(alone) // new groups
	require.NoError(t, err)
}
