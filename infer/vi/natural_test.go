package vi_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// rotated is a normal distribution whose principal standard deviations go from least to most as a geometric sequence,
// in random directions.
func rotated(d int, least, most float64, seed uint64) normal {
	r := rand.New(rand.NewPCG(seed, 1))
	a, scales, m := mat.NewDense(d, d, nil), make([]float64, d), make([]float64, d)
	for i := range d {
		for j := range d {
			a.Set(i, j, r.NormFloat64())
		}
		scales[i] = least * math.Pow(most/least, float64(i)/float64(max(d-1, 1)))
		m[i] = 3 * r.NormFloat64()
	}
	var qr mat.QR
	qr.Factorize(a)
	var q, half mat.Dense
	qr.QTo(&q)
	half.Apply(func(_, j int, v float64) float64 { return v / scales[j] }, &q)
	p := mat.NewSymDense(d, nil)
	p.SymOuterK(1, &half)
	return normal{m: m, precision: p}
}

// gaussian is a distribution that vi.Dense has to find.
type gaussian struct {
	d           int
	least, most float64 // standard deviations of the principal directions
	method      vi.Dense
	temperature float64
}

// found asserts that a fit at the defaults has every standard deviation within 5 %, every correlation within 0.05 and
// every mean within a tenth of a standard deviation.
func (g gaussian) found(t *testing.T, seed uint64) {
	t.Helper()
	n := rotated(g.d, g.least, g.most, seed)
	if g.temperature == 0 {
		g.temperature = 1
	}
	g.method.Temperature = infer.Constant(g.temperature)
	steps := g.method.Defaults().Warmup
	s := fitted(t, build(t, g.method, n.logPosterior()), params(n.layout(), make([]float64, g.d), 0), nil, steps, seed)
	want, got, mean := n.covariance(g.temperature), values(must(s.Covariance()).T()), values(s.Mean.Flat.T())
	sd := func(x []float64, i int) float64 { return math.Sqrt(x[i*g.d+i]) }
	for i := range g.d {
		require.InEpsilon(t, sd(want, i), sd(got, i), 0.05, "standard deviation %d of %+v", i, g)
		require.InDelta(t, n.m[i], mean[i], 0.1*sd(want, i), "mean %d of %+v", i, g)
		for j := range i {
			require.InDelta(t, want[i*g.d+j]/sd(want, i)/sd(want, j), got[i*g.d+j]/sd(got, i)/sd(got, j), 0.05,
				"correlation of %d and %d of %+v", i, j, g)
		}
	}
}

// Normal distributions of any dimension, scale, condition and temperature are found at the defaults.
func TestDenseFindsGaussians(t *testing.T) {
	no := false
	for _, g := range []gaussian{
		{d: 1, least: 3, most: 3}, {d: 5, least: 0.7, most: 0.7}, {d: 20, least: 0.7, most: 0.7},
		{d: 50, least: 0.7, most: 0.7}, {d: 100, least: 0.7, most: 0.7},
		{d: 2, least: 0.01, most: 1}, {d: 20, least: 0.01, most: 1}, {d: 20, least: 0.1, most: 10},
		{d: 100, least: 0.1, most: 10}, {d: 100, least: 1, most: 100}, {d: 100, least: 0.01, most: 1},
		{d: 10, least: 1e-4, most: 1e-2}, {d: 10, least: 100, most: 1e4},
		{d: 10, least: 0.1, most: 10, temperature: 0.01}, {d: 10, least: 0.1, most: 10, temperature: 4},
		{d: 10, least: 0.1, most: 10, method: vi.Dense{InitScale: 100}},
		{d: 10, least: 0.1, most: 10, method: vi.Dense{Samples: 1}},
		{d: 10, least: 0.1, most: 10, method: vi.Dense{Antithetic: true}},
		{d: 5, least: 0.5, most: 2, method: vi.Dense{StickTheLanding: &no, Samples: 64}},
	} {
		if g.d >= 50 && g.most != 10 && !testkit.Slow { // one of 100 dimensions is enough
			continue
		}
		g.found(t, uint64(g.d))
	}
}

// A prior weight changes what the step has to find, and so does one that grows from 0.
func TestDenseFindsWeightedPriors(t *testing.T) {
	c := newConjugate()
	for _, k := range []struct {
		weight infer.Schedule
		last   float64
	}{{infer.Constant(0.3), 0.3}, {infer.Constant(2), 2}, {infer.Linear(0, 1, 0, 500), 1}} {
		want := c.posterior(1, 1/k.last)
		transform, err := vi.Dense{KLWeight: k.weight}.Build(c.target())
		require.NoError(t, err)
		s := fitted(t, transform, params(want.layout(), make([]float64, 3), 0), nil, 1000, 1)
		matched(t, want.covariance(1), values(must(s.Covariance()).T()), name("λ = %g", k.last))
		within(t, want.m, must(s.Mean.Values()), 0.01, "mean")
	}
}

// A fit that is too short for its distance says so, and the field that it names helps.
func TestMoreSamplesMakeLongerSteps(t *testing.T) {
	n := rotated(60, 1e4, 1e6, 1)
	start := params(n.layout(), make([]float64, 60), 1)
	found := notes(t, build(t, vi.Dense{}, n.logPosterior()), start, 100)
	require.Len(t, found, 1)
	assert.Equal(t, "elbo_not_settled", found[0].Kind)
	assert.Contains(t, found[0].Advice, "Set vi.Dense.Samples to 64 or more")
	assert.Empty(t, kinds(notes(t, build(t, vi.Dense{Samples: 64}, n.logPosterior()), start, 100)))
}

func kinds(notes []draws.Note) (kinds []string) {
	for _, n := range notes {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}
