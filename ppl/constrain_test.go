package ppl_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// many has a variable on every kind of support, and one whose support depends on another.
func many(c *ppl.Ctx) {
	a := c.Sample("real", dist.Normal(0, 1).Expand(2))
	high := c.Sample("positive", dist.Gamma(2, 1))
	c.Sample("unit", dist.Beta(2, 3))
	c.Sample("below", dist.Uniform(0, high))
	p := c.Sample("simplex", dist.Dirichlet(vec(1, 2, 3)))
	c.Sample("ordered", dist.ImproperUniform(support.Ordered, nil, []int{3}))
	c.Sample("corr", dist.LKJCholesky(3, 2))
	c.Deterministic("twice", a.Mul(2))
	c.Observe("y", dist.Categorical(p), vec(1))
}

func manyPoints(k int, dim int) []float64 {
	x := make([]float64, k*dim)
	for i := range x {
		x[i] = 1.5 * math.Sin(2.3*float64(i)+0.7)
	}
	return x
}

// A summary of the latent variables has them in the order of the model; without a choice sites are in that of
// their names.
func TestSummaryInModelOrder(t *testing.T) {
	p, _ := compiled(t, many, nil)
	dim := p.Layout().Dim()
	unconstrained, err := draws.New(p.Layout().Sites, nil, 1)
	require.NoError(t, err)
	x := manyPoints(8, dim)
	for i := range 8 {
		require.NoError(t, unconstrained.Append(x[i*dim:(i+1)*dim], nil))
	}
	posterior, err := p.Draws(unconstrained, nil)
	require.NoError(t, err)
	sites := func(o diag.SummaryOptions) (out []string) {
		table, err := diag.Summary(posterior, o)
		require.NoError(t, err)
		for _, r := range table.Rows {
			name, _, _ := strings.Cut(r.Name, "[")
			if len(out) == 0 || out[len(out)-1] != name {
				out = append(out, name)
			}
		}
		return out
	}
	require.Equal(t, []string{"real", "positive", "unit", "below", "simplex", "ordered", "corr"},
		sites(diag.SummaryOptions{Sites: p.Latents()}))
	require.Equal(t, []string{"below", "corr", "ordered", "positive", "real", "simplex", "twice", "unit"},
		sites(diag.SummaryOptions{}))
}

// Constrained values are on their supports, and unconstraining them gives the point back.
func TestConstrainRoundTrip(t *testing.T) {
	p, _ := compiled(t, many, nil)
	x := manyPoints(1, p.Layout().Dim())
	point, err := infer.NewParams(p.Layout(), x)
	require.NoError(t, err)
	values, err := p.Constrain(point, nil)
	require.NoError(t, err)
	names := []string{}
	for name := range values {
		names = append(names, name)
	}
	require.ElementsMatch(t, append(p.Latents(), "twice"), names)
	low, high := floats(t, values["below"])[0], floats(t, values["positive"])[0]
	require.True(t, 0 < low && low < high)
	real, twice := floats(t, values["real"]), floats(t, values["twice"])
	require.Equal(t, []float64{2 * real[0], 2 * real[1]}, twice)
	sum := 0.0
	for _, v := range floats(t, values["simplex"]) {
		require.Positive(t, v)
		sum += v
	}
	require.InDelta(t, 1, sum, 1e-14)
	o := floats(t, values["ordered"])
	require.True(t, o[0] < o[1] && o[1] < o[2])

	back, err := p.Unconstrain(values, nil)
	require.NoError(t, err)
	have, err := back.Values()
	require.NoError(t, err)
	require.InDeltaSlice(t, x, have, 1e-10)
}

// Named draws map back to the points that they were made of, whatever the supports. The length of a unit vector is
// lost, and so is the place of a number that was rounded to an end of its support.
func TestNamedDrawsMapBack(t *testing.T) {
	p, _ := compiled(t, many, nil)
	dim := p.Layout().Dim()
	x := manyPoints(6, dim)
	points, err := draws.New(p.Layout().Sites, []string{"lp"}, 2)
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, points.Append(x[2*i*dim:2*(i+1)*dim], []float64{1, 2}))
	}
	named, err := p.Draws(points, nil)
	require.NoError(t, err)
	back := func(p *ppl.Program, d *draws.Draws) (*draws.Draws, error) {
		return p.UnconstrainDraws(d, p.Batch())
	}
	have, err := back(p, named)
	require.NoError(t, err)
	for chain := range 2 {
		for i := range 3 {
			require.InDeltaSlice(t, points.Row(chain, i), have.Row(chain, i), 1e-10)
		}
	}
	_, err = p.Draws(have, nil)
	require.NoError(t, err, "they are marked as points")

	share, err := named.Select("real")
	require.NoError(t, err)
	_, err = back(p, share)
	require.ErrorIs(t, err, draws.ErrUnknownName)
	one := func(at ...float64) *draws.Draws {
		d, err := draws.New([]draws.Site{{Name: "x", Shape: []int{len(at)}, Size: len(at)}}, nil, 1)
		require.NoError(t, err)
		require.NoError(t, d.Append(at, nil))
		return d
	}
	p, _ = compiled(t, func(c *ppl.Ctx) { c.Sample("x", dist.Beta(1, 1).Expand(2)) }, nil)
	have, err = back(p, one(0.5, 0.75))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0, math.Log(3)}, have.Row(0, 0), 1e-15)
	_, err = back(p, one(0.5, 1))
	require.ErrorIs(t, err, infer.ErrNonFinite)
	require.ErrorContains(t, err, "draw 0 of chain 0: x[1] is outside its support, or at an end of it")
	p, _ = compiled(t, func(c *ppl.Ctx) { c.Sample("x", dist.ImproperUniform(support.UnitVector, nil, []int{2})) }, nil)
	_, err = back(p, one(0.6, 0.8))
	require.ErrorContains(t, err, `site "x" is a unit vector`)
}

// K points at once are the K points one by one: values, density and gradient.
func TestManyChainsAreTheLoop(t *testing.T) {
	p, f := compiled(t, many, nil)
	const k = 5
	d := p.Layout().Dim()
	x := manyPoints(k, d)
	all, grads := evaluate(t, p, whole(p), nil, x...)
	point, err := infer.NewParams(p.Layout(), x)
	require.NoError(t, err)
	together, err := p.Constrain(point, nil)
	require.NoError(t, err)
	for i := range k {
		row := x[i*d : (i+1)*d]
		require.InEpsilon(t, f(nil, row...), all[i], 1e-13)
		_, grad := evaluate(t, p, whole(p), nil, row...)
		require.InDeltaSlice(t, grad, grads[i*d:(i+1)*d], 1e-12)
		one, err := infer.NewParams(p.Layout(), row)
		require.NoError(t, err)
		values, err := p.Constrain(one, nil)
		require.NoError(t, err)
		for name, v := range values {
			want := floats(t, v)
			require.InDeltaSlice(t, want, floats(t, together[name])[i*len(want):(i+1)*len(want)], 1e-14, name)
		}
	}
}

// The log posterior of a target is without the Jacobian, which is apart.
func TestTargetLeavesTheJacobianOut(t *testing.T) {
	p, f := compiled(t, func(c *ppl.Ctx) { c.Sample("s", dist.Exponential(2)) }, nil)
	v, _ := evaluate(t, p, p.Target().LogPosterior, nil, 0.3)
	want := math.Log(2) - 2*math.Exp(0.3)
	require.InDelta(t, want, v[0], 1e-14)
	require.InDelta(t, want+0.3, f(nil, 0.3), 1e-14)
}

func TestUnconstrainRefuses(t *testing.T) {
	p, _ := compiled(t, chain, nil)
	_, err := p.Unconstrain(ppl.Values{"x": scalar(1), "y": scalar(1)}, nil)
	require.ErrorContains(t, err, `"z"`)
	require.ErrorContains(t, err, "no value was given")
	p, _ = compiled(t, func(c *ppl.Ctx) { c.Sample("s", dist.Exponential(2)) }, nil)
	_, err = p.Unconstrain(ppl.Values{"s": scalar(-1)}, nil)
	require.ErrorContains(t, err, "outside the support")
	_, err = p.Unconstrain(ppl.Values{"s": vec(1, 2)}, nil)
	require.Error(t, err)
}

// Draws of unconstrained numbers, as a run collects them, become draws of the named values; statistics stay.
func TestDrawsAreConstrained(t *testing.T) {
	p, _ := compiled(t, many, nil)
	var sites []draws.Site
	for _, s := range p.Layout().Sites {
		sites = append(sites, draws.Site(s))
	}
	in, err := draws.New(sites, []string{"lp"}, 2)
	require.NoError(t, err)
	d := p.Layout().Dim()
	x := manyPoints(6, d)
	for i := range 3 {
		require.NoError(t, in.Append(x[2*i*d:2*(i+1)*d], []float64{float64(i), -float64(i)}))
	}
	out, err := p.Draws(in, nil)
	require.NoError(t, err)
	require.Equal(t, 2, out.Chains())
	require.Equal(t, 3, out.Len(1))
	lp, err := out.Stat("lp", 1)
	require.NoError(t, err)
	require.Equal(t, []float64{0, -1, -2}, lp)
	for chain := range 2 {
		for i := range 3 {
			row := x[(2*i+chain)*d : (2*i+chain+1)*d]
			one, err := infer.NewParams(p.Layout(), row)
			require.NoError(t, err)
			values, err := p.Constrain(one, nil)
			require.NoError(t, err)
			for name, v := range values {
				site, err := out.Values(name)
				require.NoError(t, err)
				require.InDeltaSlice(t, floats(t, v), site[chain][i], 1e-13, name)
			}
		}
	}
	empty, err := draws.New(sites, nil, 1)
	require.NoError(t, err)
	_, err = p.Draws(empty, nil)
	require.ErrorIs(t, err, draws.ErrNoDraws)
	_, err = p.Draws(nil, nil)
	require.ErrorIs(t, err, draws.ErrNoDraws)
	// Draws that are constrained already, or another model's.
	_, err = p.Draws(out, nil)
	require.ErrorIs(t, err, draws.ErrLayout)
	require.ErrorContains(t, err, "constrained already")
	swapped := append([]draws.Site{}, sites...)
	swapped[0].Name = "rael"
	other, err := draws.New(swapped, nil, 1)
	require.NoError(t, err)
	_, err = p.Draws(other, nil)
	require.ErrorIs(t, err, draws.ErrLayout)
}

// Long chains are mapped in parts, and eight times the draws take about eight times the memory: a copy of the whole
// chain's statistics for each part would make it some thirty times.
func TestDrawsOfLongChains(t *testing.T) {
	p, _ := compiled(t, func(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, 1)) }, nil)
	bytes := func(n int) float64 {
		names := make([]string, 20)
		for i := range names {
			names[i] = fmt.Sprint("s", i)
		}
		in, err := draws.New([]draws.Site{draws.Site(p.Layout().Sites[0])}, names, 1)
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, in.Append([]float64{float64(i)}, make([]float64, len(names))))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = p.Draws(in, nil)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	require.Less(t, bytes(160_000)/bytes(20_000), 12.0) // containers grow by steps
}
