package hmc_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schools is eight schools, not centred, compiled.
func schools(t *testing.T) *ppl.Program {
	t.Helper()
	m, err := models.EightSchools()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	return p
}

// element are the draws of one element of a site, chain by chain.
func element(t *testing.T, d *draws.Draws, site string, i int) [][]float64 {
	t.Helper()
	values, err := d.Values(site)
	require.NoError(t, err)
	out := make([][]float64, len(values))
	for c, chain := range values {
		for _, row := range chain {
			out[c] = append(out[c], row[i])
		}
	}
	return out
}

// matches compares the mean and the standard deviation of an element with what they should be, within four Monte-Carlo
// standard errors from the effective sample size, and the chains with each other.
func matches(t *testing.T, d *draws.Draws, site string, i int, mean, sd float64) {
	t.Helper()
	x := element(t, d, site, i)
	m, err := d.Mean(site)
	require.NoError(t, err)
	s, err := d.SD(site)
	require.NoError(t, err)
	assert.InDelta(t, mean, m[i], 4*diag.MCSEMean(x), "mean of %s[%d]", site, i)
	assert.InDelta(t, sd, s[i], 4*diag.MCSESD(x), "standard deviation of %s[%d]", site, i)
	assert.Less(t, diag.RHat(x), 1.02)
}

// layoutOf is a layout.
func layoutOf(t *testing.T, sites infer.Shapes) *infer.Layout {
	t.Helper()
	layout, err := infer.NewLayout(sites)
	require.NoError(t, err)
	return layout
}

// handwritten is a hand-written density, which leaves the start to the run.
func handwritten(t *testing.T, density infer.LogPosterior, sites infer.Shapes) infer.Program {
	t.Helper()
	return infer.Handwritten(infer.Sum(density, 1), infer.Params{Layout: layoutOf(t, sites)}, nil)
}

// gaussianDensity is N(0, Σ) in two dimensions with standard deviations 1 and 3 and correlation 0.8.
func gaussianDensity(t *testing.T) infer.LogPosterior {
	t.Helper()
	const rho = 0.8
	f := 1 / (1 - rho*rho)
	precision, err := torch.FromSlice([]float64{f, -rho * f / 3, -rho * f / 3, f / 9}, 2, 2)
	require.NoError(t, err)
	return func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return precision.MatMul(x).Mul(x).Sum().Mul(-0.5), nil
	}
}

var two = infer.Shapes{"x": {2}}

// gaussian is that as a program.
func gaussian(t *testing.T) infer.Program {
	t.Helper()
	return handwritten(t, gaussianDensity(t), two)
}

// detail is what a run tells besides its draws.
func detail(t *testing.T, r *infer.Result) *hmc.Detail {
	t.Helper()
	d, ok := r.Detail.(*hmc.Detail)
	require.True(t, ok, "%T", r.Detail)
	return d
}

// stat is the sum of a statistic over all draws, and the least of its sums over a chain.
func stat(t *testing.T, d *draws.Draws, name string) (sum, least float64) {
	t.Helper()
	least = math.Inf(1)
	for chain := range d.Chains() {
		v, err := d.Stat(name, chain)
		require.NoError(t, err)
		own := 0.0
		for _, x := range v {
			own += x
		}
		sum, least = sum+own, math.Min(least, own)
	}
	return sum, least
}

// sameDraws says whether two sets of draws are equal bit for bit, statistics included.
func sameDraws(t *testing.T, want, have *draws.Draws) {
	t.Helper()
	require.Equal(t, want.Chains(), have.Chains())
	for chain := range want.Chains() {
		require.Equal(t, want.Len(chain), have.Len(chain))
		for _, name := range want.Stats() {
			a, err := want.Stat(name, chain)
			require.NoError(t, err)
			b, err := have.Stat(name, chain)
			require.NoError(t, err)
			require.Equal(t, a, b, name)
		}
		for i := range want.Len(chain) {
			a, b := want.Row(chain, i), have.Row(chain, i)
			for j := range a {
				if math.Float64bits(a[j]) != math.Float64bits(b[j]) {
					t.Fatalf("chain %d, draw %d, number %d is %v, expected %v", chain, i, j, b[j], a[j])
				}
			}
		}
	}
}

// twoModes is the log density of an equal mixture of N(-4, 1) and N(4, 1), up to a constant: log cosh(4x) - x²/2,
// written so that nothing overflows.
func twoModes(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	x := p.Get("x")
	a := x.Abs().Mul(4)
	return a.Add(a.Mul(-2).Exp().Log1p()).Sub(x.Square().Mul(0.5)), nil
}
