package approx

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
)

// normalFit are fits N(mean_k, sd²), of which the elements are independent, to a posterior N(0, 1).
func normalFit(t *testing.T, sd float64, means ...float64) Fit {
	t.Helper()
	layout, err := infer.NewLayout(infer.Shapes{"x": {2}})
	require.NoError(t, err)
	var flat []float64
	for _, m := range means {
		flat = append(flat, m, 0)
	}
	x, err := torch.FromSlice(flat, len(means), 2)
	require.NoError(t, err)
	normal := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Sum().Mul(-0.5 / 3), nil
	}
	return Fit{Name: "m.Fit", Target: infer.Mean(normal, 3), Temperature: 1,
		Mean: infer.Params{Layout: layout, Flat: x}, Width: 2, Advice: "do something.",
		Map: func(eps torch.Tensor) (deviations, logq torch.Tensor, err error) {
			return torch.Of(eps.T().MustMulScalar(ts.FloatScalar(sd), false)), Standard(eps, make([]float64, len(means))), nil
		}}
}

func notes(t *testing.T, sd float64, means ...float64) []draws.Note {
	t.Helper()
	return Closeness(normalFit(t, sd, means...))
}

// Means and standard deviations that are off by known factors. Weights are exp(½|ε|²(1 − s²)) for a fit of standard
// deviation s: of two elements, exactly Pareto with k = 1 − s², which importance sampling cannot bear below s = 0.55.
func TestNotesOfNormalFits(t *testing.T) {
	assert.Empty(t, notes(t, 1, 0, 0))
	assert.Empty(t, notes(t, 1, 0.2, 0.2))
	assert.Empty(t, notes(t, 0.95, 0, 0))

	r, err := check(normalFit(t, 1, -0.5, -0.5))
	require.NoError(t, err)
	assert.InDelta(t, 0.5, r.shift, 4*r.se)
	assert.Equal(t, 0, r.shifted)
	found := notes(t, 1, -0.5, -0.5)
	require.Len(t, found, 1)
	assert.Equal(t, FarFromPosterior, found[0].Kind)
	assert.False(t, found[0].Serious)
	assert.Regexp(t, `^By importance weights the mean of the posterior is 0\.\d+ standard deviations of the fit from the `+
		`fit's, for x\[0\] on unconstrained space\.$`, found[0].Text)
	assert.Equal(t, "m.Fit: do something.", found[0].Advice)

	for _, c := range []struct {
		sd      float64
		serious bool
	}{{0.7, false}, {1.5, false}, {2.5, true}} {
		r, err := check(normalFit(t, c.sd, 0, 0))
		require.NoError(t, err)
		// A normal's sample standard deviation has the relative error 1/√(2n), and the largest of two is looked at.
		assert.InDelta(t, -math.Log(c.sd), math.Log(r.scale), 4*r.se, "sd %g", c.sd)
		found := notes(t, c.sd, 0, 0)
		require.Len(t, found, 1, "sd %g", c.sd)
		assert.Equal(t, c.serious, found[0].Serious, "sd %g", c.sd)
		assert.Contains(t, found[0].Text,
			fmt.Sprintf("the standard deviation of the posterior is %.2g times the fit's", r.scale))
	}

	for _, means := range [][]float64{{0}, {0, 0}, {0, 0, 0, 0}} {
		found = notes(t, 0.1, means...)
		require.Len(t, found, 1)
		assert.True(t, found[0].Serious)
		assert.Contains(t, found[0].Text, "The fit is far from the posterior: by the ratios of their densities ")
	}

	// Of two fits one is right: of their draws half are where the posterior is not.
	found = notes(t, 1, 0, 6)
	require.Len(t, found, 1)
	assert.True(t, found[0].Serious)
}

// A check that would take long is left out: of many parameters, or of many data.
func TestNotesThatWouldBeExpensive(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	f := Fit{Temperature: 1, Mean: infer.Params{Layout: layout}, Map: func(torch.Tensor) (x, q torch.Tensor, err error) {
		t.Error("it was evaluated")
		return torch.Tensor{}, torch.Tensor{}, assert.AnError
	}}
	density := func(infer.Params, infer.Batch) (torch.Tensor, infer.Aux) { return torch.Tensor{}, nil }
	f.Mean.Flat, err = torch.FromSlice([]float64{0}, 1)
	require.NoError(t, err)
	f.Target = infer.Mean(density, 1e6)
	assert.Empty(t, Closeness(f))
	f.Target, f.Temperature = infer.Mean(density, 1), 0
	assert.Empty(t, Closeness(f), "there is no distribution at temperature 0")
}

// The rule of docs/vi.md: less than a tenth of the draws effective, or less than half where k is above its limit.
func TestFar(t *testing.T) {
	for _, c := range []struct {
		k, effective float64
		uneven, far  bool
	}{
		{0.5, 0.09, false, true}, {0.5, 0.11, false, false}, {0.9, 0.09, true, true}, {0.9, 0.49, true, true},
		{0.9, 0.51, false, false}, {math.Inf(1), 1, false, false}, {math.Inf(1), 0.4, true, true},
		{math.Inf(-1), 1, false, false},
	} {
		assert.Equal(t, c.uneven, Uneven(c.k, 0.7, c.effective), "%v", c)
		assert.Equal(t, c.far, Far(c.k, 0.7, c.effective), "%v", c)
	}
}
