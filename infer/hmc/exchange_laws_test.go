package hmc_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mathext"
)

// rungDraws are the draws of a site at a rung of interest or a hot one.
func rungDraws(t *testing.T, p *ppl.Program, r *infer.Result, rung int, site string) [][]float64 {
	t.Helper()
	at := r.Draws
	if rung > 0 {
		var err error
		at, err = p.Draws(detail(t, r).Hot[rung-1], p.Batch())
		require.NoError(t, err)
	}
	return element(t, at, site, 0)
}

// Tempered together, the prior and the likelihood of a Gamma(a, b) rate and n counts have at β the law of
// (rate^(a-1+Σy) e^(-(b+n) rate))^β, which is Gamma(β(a-1+Σy) + 1, β(b+n)), as a path and on a ladder of temperatures.
// The mean slope is that of log p(θ)p(y|θ) = (a-1+Σy) log θ - (b+n)θ + a log b - log Γ(a) - Σ log y!.
func TestExchangeTempersTheWhole(t *testing.T) {
	p, sum, n, factorials := counted(t)
	shape, rate := 2-1+sum, 0.5+n
	beta := []float64{1, 0.5, 0.2}
	for name, m := range map[string]hmc.Exchange{
		"path":         {Ladder: []float64{0.2, 0.5, 1}, Path: &path.Path{Full: true}, Every: 1, KeepHot: true},
		"temperatures": {Ladder: []float64{1, 2, 5}, Every: 1, KeepHot: true},
	} {
		r, err := infer.Run(ctx, p, m, infer.Options{Warmup: 300, Draws: 1500, Seed: 2})
		require.NoError(t, err)
		for rung, b := range beta {
			x := rungDraws(t, p, r, rung, "rate")
			k, c := b*shape+1, b*rate
			assert.InDelta(t, k/c, average(x), 4*diag.MCSEMean(x), "%s: mean at β = %v", name, b)
			square := make([][]float64, len(x))
			for i, chain := range x {
				for _, v := range chain {
					square[i] = append(square[i], v*v)
				}
			}
			assert.InDelta(t, k*(k+1)/(c*c), average(square), 4*diag.MCSEMean(square), "%s: square at β = %v", name, b)
			want := shape*(mathext.Digamma(k)-math.Log(c)) - rate*k/c + 2*math.Log(0.5) - factorials
			for chain, s := range detail(t, r).Swaps {
				se := math.Sqrt(3 * s.SlopeVariance(rung) / float64(s.Slopes[rung])) // correlated somewhat from swap to swap
				assert.InDelta(t, want, s.SlopeMean[rung], 4*se, "%s: slope of chain %d at β = %v", name, chain, b)
				assert.Positive(t, s.SamplingAccepted[min(rung, 1)])
			}
		}
	}
}

// On the observation path a datum of a logit θ has at β the probability σ(βθ) of a 1: p^β is normalized anew. With k
// ones of n and the prior N(0, 2²) the moments of θ are integrals over one dimension, here by the midpoint rule.
func TestExchangeOnTheObservationPath(t *testing.T) {
	y := []float64{1, 1, 1, 1, 1, 0}
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(0, 2))
		c.Plate("data", len(y), func(c *ppl.Ctx) { c.Observe("y", dist.BernoulliLogits(theta), c.Data("y")) })
	}, infer.Batch{"y": torch.New(y)})
	require.NoError(t, err)
	normalizer := func(q infer.Params, _ infer.Batch, beta torch.Tensor) torch.Tensor {
		theta := q.Get("theta")
		return theta.Mul(beta).Exp().Log1p().Sub(theta.Exp().Log1p().Mul(beta)).Mul(float64(len(y)))
	}
	r, err := infer.Run(ctx, p, hmc.Exchange{Ladder: []float64{0, 0.2, 0.5, 1}, Path: &path.Path{Normalizer: normalizer},
		Every: 1, KeepHot: true}, infer.Options{Warmup: 300, Draws: 1500, Seed: 2})
	require.NoError(t, err)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for rung, beta := range []float64{1, 0.5, 0.2, 0} {
		z, first, second := 0.0, 0.0, 0.0
		for i := range 40000 {
			theta := -20 + (float64(i)+0.5)/1000
			w := math.Exp(-theta * theta / 8)
			for _, v := range y {
				w *= sigmoid(beta * theta * (2*v - 1))
			}
			z, first, second = z+w, first+w*theta, second+w*theta*theta
		}
		x := rungDraws(t, p, r, rung, "theta")
		square := make([][]float64, len(x))
		for i, chain := range x {
			for _, v := range chain {
				square[i] = append(square[i], v*v)
			}
		}
		assert.InDelta(t, first/z, average(x), 4*diag.MCSEMean(x), "mean at β = %v", beta)
		assert.InDelta(t, second/z, average(square), 4*diag.MCSEMean(square), "square at β = %v", beta)
	}
	for _, s := range detail(t, r).Swaps {
		for pair := range 3 {
			assert.Positive(t, s.SamplingAccepted[pair])
		}
	}
	require.Nil(t, detail(t, r).LogZ0, "the slopes between rungs are not those at the rungs")
}
