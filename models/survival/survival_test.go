package survival_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models/survival"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

func TestLogLogistic(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		d := survival.LogLogistic(3, 2.5)
		require.NoError(t, d.Validate())
		for _, x := range []float64{0.1, 3, 40} {
			odds := math.Pow(x/3, 2.5)
			require.InEpsilon(t, -math.Log1p(odds), dist.LogSurvival(d, x).Item(), 1e-13)
			density := math.Log(2.5/3) + 1.5*math.Log(x/3) - 2*math.Log1p(odds)
			require.InEpsilon(t, density, d.LogProb(torch.Of(x)).Item(), 1e-13)
		}
		require.InEpsilon(t, -2.5e5*math.Log(2e100/3)/1e5, dist.LogSurvival(d, 2e100).Item(), 1e-13)
		return nil
	}))
}

// The cumulative hazard is 0.5 t to 2, then 1 + 0.1 (t − 2) to 5, and then 1.3 + 2 (t − 5).
func TestPiecewiseExponential(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		breaks := torch.New([]float64{2, 5})
		d := survival.PiecewiseExponential(breaks, torch.New([]float64{0.5, 0.1, 2}))
		require.NoError(t, d.Validate())
		x := torch.New([]float64{1, 2, 3, 5, 7, 5e5})
		h := []float64{0.5, 1, 1.1, 1.3, 5.3, 1.3 + 2*(5e5-5)}
		rate := []float64{0.5, 0.1, 0.1, 2, 2, 2}
		survived, density := dist.LogSurvival(d, x).Values(), d.LogProb(x).Values()
		for i := range h {
			require.InEpsilon(t, -h[i], survived[i], 1e-14)
			require.InEpsilon(t, math.Log(rate[i])-h[i], density[i], 1e-14)
		}
		const n = 40000
		draws := d.Sample(torch.NewSource(1, 0), n)
		for i, at := range []float64{1, 2, 3, 5, 7} {
			p := math.Exp(-h[i])
			share := torch.Where(draws.Gt(at), 1, 0).Mean().Item()
			require.InDelta(t, p, share, 4*math.Sqrt(p*(1-p)/n), "at %v", at)
		}
		many := survival.PiecewiseExponential(breaks, torch.New([]float64{0.5, 0.1, 2, 1, 1, 1}, 2, 3))
		require.InDeltaSlice(t, []float64{-1.1, -3}, dist.LogSurvival(many, 3).Values(), 1e-14)
		one := survival.PiecewiseExponential(torch.Zeros(0), torch.New([]float64{0.5}))
		require.InDelta(t, -1.5, dist.LogSurvival(one, 3).Item(), 1e-14)
		few := survival.PiecewiseExponential(breaks, torch.New([]float64{1, 2}))
		require.ErrorContains(t, few.Validate(), "dimension of 3")
		require.ErrorContains(t, survival.PiecewiseExponential(torch.New([]float64{2, 1}),
			torch.New([]float64{1, 2, 3})).Validate(), "breaks rise")
		return nil
	}))
}

// Five people, two of whom have an event at the same time: by hand.
func TestCoxByHand(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		m := survival.Cox{Time: []float64{4, 2, 2, 1, 2}, Event: []bool{true, true, false, true, true}}
		eta := []float64{0.3, -0.5, 1.2, 0.1, 0.7}
		w := make([]float64, 5)
		for i, v := range eta {
			w[i] = math.Exp(v)
		}
		two := w[0] + w[1] + w[2] + w[4]
		want := eta[3] - math.Log(two+w[3]) + eta[1] - math.Log(two) + eta[4] - math.Log(two-(w[1]+w[4])/2)
		require.InDelta(t, want, m.LogPartial(torch.New(eta)).Item(), 1e-13) // the last event has itself alone at risk
		// Who enters at 1 or later is not at risk at the event at 1.
		m.Entry = []float64{1, 0, 1.5, 0.5, 0}
		want += math.Log(two+w[3]) - math.Log(w[1]+w[3]+w[4])
		require.InDelta(t, want, m.LogPartial(torch.New(eta)).Item(), 1e-13)
		m.Entry[2] = 2
		require.PanicsWithError(t, "dist.Cox: Entry is [1 0 2 0.5 0]: there are 5, each below its time: that of 2 is 2",
			func() { m.LogPartial(torch.New(eta)) })
		return nil
	}))
}

// The maxima of the likelihoods are the published estimates of Gehan's data: those of survreg and coxph of R's
// survival, as in Venables and Ripley, Modern Applied Statistics with S (2002), section 13.
func TestPublishedEstimates(t *testing.T) {
	batch, followed := remission()
	flat := func(likelihood func(c *ppl.Ctx, intercept, effect, sigma torch.Tensor)) ppl.Model {
		return func(c *ppl.Ctx) {
			likelihood(c, c.Sample("intercept", dist.Flat()), c.Sample("effect", dist.Flat()),
				c.Sample("sigma", dist.FlatPositive()))
		}
	}
	for _, m := range []struct {
		name  string
		model ppl.Model
		want  map[string]float64
	}{
		{"weibull", flat(func(c *ppl.Ctx, intercept, effect, sigma torch.Tensor) {
			law := dist.Weibull(intercept.Add(effect.Mul(c.Data("control"))).Exp(), sigma.Reciprocal())
			c.Observe("time", dist.Censored(law, 0, c.Data("cut")), c.Data("time"))
		}), map[string]float64{"intercept": 3.516, "effect": -1.267, "sigma": 0.732}},
		{"cox", func(c *ppl.Ctx) {
			effect := c.Sample("effect", dist.Flat())
			c.Factor("time", followed.LogPartial(effect.Mul(c.Data("control"))))
		}, map[string]float64{"effect": 1.572}},
	} {
		program, err := ppl.Compile(m.model, batch)
		require.NoError(t, err)
		mode, err := infer.Sample(context.Background(), program, optim.LBFGS{}, infer.Options{Seed: 1})
		require.NoError(t, err)
		for name, want := range m.want {
			values, err := mode.Values(name)
			require.NoError(t, err)
			last := values[0][len(values[0])-1]
			require.InDelta(t, want, last[0], 6e-4, "%s %s", m.name, name) // the figures are rounded
		}
	}
}

// Predictions are cut off where the data are, the log likelihood has a term for each datum, and the check finds
// nothing.
func TestCensoredSites(t *testing.T) {
	batch, _ := remission()
	program, err := ppl.Compile(weibull, batch)
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Draws: 500})
	require.NoError(t, err)
	require.NotContains(t, posterior.Attrs()["gradient"], "eager")

	predicted, err := program.Predict(posterior, 1)
	require.NoError(t, err)
	cut := batch["cut"].Values()
	atBound := 0
	for _, row := range predicted.Rows() {
		for i, v := range row {
			require.LessOrEqual(t, v, cut[i])
			if v == cut[i] {
				atBound++
			}
		}
	}
	require.Positive(t, atBound)
	result, err := program.LOO(posterior)
	require.NoError(t, err)
	require.Len(t, result.Pointwise, 42)
	report, err := program.Check(posterior, 1)
	require.NoError(t, err)
	for _, f := range report.Findings {
		require.Zero(t, f.Severity, f.Message)
	}
}

// A censored number is no latent variable, also within another distribution.
func TestCensoredIsObserved(t *testing.T) {
	_, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("x", dist.Censored(dist.Normal(0, 1), -1, 1)) }, nil)
	require.ErrorContains(t, err, "dist.Truncated")
	_, err = ppl.Compile(func(c *ppl.Ctx) {
		c.Sample("x", dist.Independent(dist.Censored(dist.Normal(torch.Zeros(3), 1), -1, 1), 1))
	}, nil)
	require.ErrorContains(t, err, "is for Observe")
}
