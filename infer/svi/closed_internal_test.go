package svi

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Closed forms against sums of the densities themselves: over the values of discrete variables, and by the midpoint
// rule over an interval that holds all but 1e-9 of q, in which errors of the rule are below 1e-6.
func TestClosedForms(t *testing.T) {
	vector := func(v ...float64) any { return infertest.Vector(v) }
	for _, c := range []struct {
		what     string
		q, p     dist.Distribution
		from, to float64 // of the interval; equal for 0 and 1
	}{
		{"Normal", dist.Normal(0.3, 0.8), dist.Normal(-1, 2), -6, 7},
		{"LogNormal", dist.LogNormal(0.3, 0.4), dist.LogNormal(-1, 2), 1e-9, 25},
		{"Gamma", dist.Gamma(3, 2), dist.Gamma(1.5, 0.7), 0, 20},
		{"Exponential", dist.Exponential(vector(2)), dist.Exponential(vector(0.7)), 0, 15},
		{"Beta", dist.Beta(3, 2.5), dist.Beta(1.5, 4), 0, 1},
		{"Bernoulli", dist.Bernoulli(0.3), dist.Bernoulli(0.8), 0, 0},
		{"Bernoulli of log-odds", dist.BernoulliLogits(0.3), dist.Bernoulli(0.8), 0, 0},
		{"Bernoulli by log-odds", dist.Bernoulli(0.3), dist.BernoulliLogits(-1.2), 0, 0},
		{"Categorical", dist.Categorical(vector(0.3, 0.7)), dist.CategoricalLogits(vector(-0.4, 1)), 0, 0},
		{"Categorical of logits", dist.CategoricalLogits(vector(-0.4, 1)), dist.Categorical(vector(0.6, 0.4)), 0, 0},
	} {
		for _, w := range []weights{{1, 1}, {0.3, 0}, {1, 0.4}} {
			value, ok := expectation(c.q, c.p, w)
			require.True(t, ok, c.what)
			x, width := []float64{0, 1}, 1.0
			if c.to > c.from {
				const n = 200_000
				width = (c.to - c.from) / n
				x = make([]float64, n)
				for i := range x {
					x[i] = c.from + (float64(i)+0.5)*width
				}
			}
			at := torch.Of(infertest.Vector(x))
			q, p := infertest.Values(c.q.LogProb(at).T()), infertest.Values(c.p.LogProb(at).T())
			want := 0.0
			for i := range x {
				if q[i] > math.Inf(-1) {
					want += math.Exp(q[i]) * (w.prior*p[i] - w.guide*q[i]) * width
				}
			}
			require.InDelta(t, want, infertest.Values(value.T())[0], 1e-5, "%s, %v", c.what, w)
		}
	}
	// A Dirichlet distribution of two numbers is a beta distribution of the first.
	one, _ := expectation(dist.Dirichlet(vector(3, 2.5)), dist.Dirichlet(vector(1.5, 4)), weights{1, 0.4})
	two, _ := expectation(dist.Beta(3, 2.5), dist.Beta(1.5, 4), weights{1, 0.4})
	require.InDelta(t, infertest.Values(two.T())[0], infertest.Values(one.T())[0], 1e-12)
	// Plates stay, what is part of the event is added up.
	q := dist.Independent(dist.Normal(infertest.Vector(infertest.Spread(6), 2, 3), 0.5), 1)
	p := dist.Independent(dist.Normal(0, 1).Expand(3), 1).Expand(2)
	value, ok := expectation(q, p, weights{1, 1})
	require.True(t, ok)
	require.Equal(t, []int{2}, value.T().MustSize())
	_, ok = expectation(dist.Normal(0, 1), dist.Cauchy(0, 1), weights{1, 1})
	require.False(t, ok)
}
