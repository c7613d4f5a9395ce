package ppl_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var silent = infer.Options{Seed: 1, Observer: infer.Silent}

func sampled(t *testing.T, m ppl.Model, b infer.Batch) (*ppl.Program, *draws.Draws) {
	p, err := ppl.Compile(m, b)
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), p, hmc.NUTS{}, silent)
	require.NoError(t, err)
	return p, d
}

// outlying is a normal mean whose data have an outlier; its leave-one-out densities have a closed form.
func outlying(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 10))
	c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
}

var outlyingData = []float64{0.3, -0.5, 1.1, 0.2, 14, -0.8}

// heldOut is the log density of datum i by the normal posterior of those that keep says.
func heldOut(i int, keep func(j int) bool) float64 {
	precision, sum := 0.01, 0.0
	for j, y := range outlyingData {
		if keep(j) {
			precision++
			sum += y
		}
	}
	return distuv.Normal{Mu: sum / precision, Sigma: math.Sqrt(1 + 1/precision)}.LogProb(outlyingData[i])
}

// Moment matching finds the closed form of the outlier, whose k is above the threshold, and so do a refit and folds of
// each datum; folds of groups and of the future have closed forms of their own. The densities' errors: of 4,000 draws
// the relative one of a mean of densities is below 0.1. Folds tell nothing of the outlier.
func TestRepairedLOO(t *testing.T) {
	p, d := sampled(t, outlying, infer.Batch{"y": torch.New(outlyingData)})
	plain, err := p.LOO(d)
	require.NoError(t, err)
	require.Greater(t, plain.Pointwise[4].K, loo.KThreshold(4000))
	others := func(i int) func(int) bool { return func(j int) bool { return j != i } }
	matched, err := p.RepairedLOO(context.Background(), d, nil, silent)
	require.NoError(t, err)
	require.Zero(t, matched.Unreliable)
	require.Less(t, matched.Pointwise[4].K, loo.KThreshold(4000))
	sum := 0.0
	for i, point := range matched.Pointwise {
		require.InDelta(t, heldOut(i, others(i)), point.ELPD, 0.1, i)
		sum += heldOut(i, others(i))
	}
	require.InDelta(t, sum, matched.ELPD, 0.1)
	folds, err := p.KFold(context.Background(), d, loo.Folds{K: 6}, hmc.NUTS{}, silent)
	require.NoError(t, err)
	for i, point := range folds.Pointwise {
		if i != 4 { // whose density is that of a tail which no draw reaches
			require.InDelta(t, heldOut(i, others(i)), point.ELPD, 0.1, i)
		}
	}
	groups := []int{0, 0, 1, 1, 2, 2}
	folds, err = p.KFold(context.Background(), d, loo.Folds{Groups: groups}, hmc.NUTS{}, silent)
	require.NoError(t, err)
	for i, point := range folds.Pointwise {
		want := heldOut(i, func(j int) bool { return groups[j] != groups[i] })
		if i != 4 {
			require.InDelta(t, want, point.ELPD, 0.1, i)
		}
	}
	future, err := p.KFold(context.Background(), d, loo.Folds{Past: 3}, hmc.NUTS{}, silent)
	require.NoError(t, err)
	require.Len(t, future.Pointwise, 3)
	for k, point := range future.Pointwise {
		if k != 1 {
			require.InDelta(t, heldOut(k+3, func(j int) bool { return j < k+3 }), point.ELPD, 0.1, k)
		}
	}
}

// refitted are the sums of plain and of repaired cross-validation, and how many points have a k above 0.7: none of
// those up to 0.5 is changed.
func refitted(t *testing.T, p *ppl.Program, d *draws.Draws, method infer.Method, o infer.Options) (bad int, plain,
	repaired *loo.Result) {
	plain, err := p.LOO(d)
	require.NoError(t, err)
	repaired, err = p.RepairedLOO(context.Background(), d, method, o)
	require.NoError(t, err)
	require.Zero(t, repaired.Unreliable)
	for i, point := range plain.Pointwise {
		if point.K <= 0.5 {
			require.Equal(t, point.ELPD, repaired.Pointwise[i].ELPD)
		}
		if point.K > 0.7 {
			bad++
		}
	}
	require.Positive(t, bad)
	return bad, plain, repaired
}

// Counts whose spread is far above Poisson's, as of the roaches in flats (Gelman and Hill 2007): a Poisson regression
// has points of high influence. Exact leave-one-out is by an independent sum over a grid of its one coefficient.
func TestRepairedLOOCounts(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 3))
	x, y := make([]float64, 40), make([]float64, 40)
	for i := range x {
		x[i] = source.NormFloat64()
		rate := math.Exp(1+0.8*x[i]) * distuv.Gamma{Alpha: 0.5, Beta: 0.5, Src: source}.Rand()
		y[i] = distuv.Poisson{Lambda: max(rate, 1e-9), Src: source}.Rand()
	}
	model := func(c *ppl.Ctx) {
		slope := c.Sample("slope", dist.Normal(0, 2))
		c.Observe("y", dist.PoissonLog(c.Data("x").Mul(slope).Add(1)), c.Data("y"))
	}
	p, d := sampled(t, model, infer.Batch{"x": torch.New(x), "y": torch.New(y)})
	bad, plain, repaired := refitted(t, p, d, hmc.NUTS{}, silent)
	exact := 0.0
	for i := range y {
		var top, bottom float64
		highest := math.Inf(-1)
		logs := func(b float64, left int) float64 {
			sum := -b * b / 8
			for j := range y {
				if j != left {
					sum += y[j]*(1+b*x[j]) - math.Exp(1+b*x[j])
				}
			}
			return sum
		}
		for b := -1.0; b < 3; b += 1e-3 {
			highest = max(highest, logs(b, i))
		}
		for b := -1.0; b < 3; b += 1e-3 {
			w := math.Exp(logs(b, i) - highest)
			bottom += w
			top += w * math.Exp(distuv.Poisson{Lambda: math.Exp(1 + b*x[i])}.LogProb(y[i]))
		}
		exact += math.Log(top / bottom)
	}
	t.Logf("%d of %d points with k above 0.7; elpd %.3f, repaired %.3f, exact %.3f", bad, len(y), plain.ELPD,
		repaired.ELPD, exact)
	require.InDelta(t, exact, repaired.ELPD, 0.1)
}

func TestFoldsErrors(t *testing.T) {
	p, d := sampled(t, outlying, infer.Batch{"y": torch.New(outlyingData)})
	for want, f := range map[string]loo.Folds{"Folds.K is 7": {K: 7}, "Folds.Groups has 2": {Groups: []int{1, 2}},
		"Folds.Past is 6": {Past: 6}} {
		_, err := p.KFold(context.Background(), d, f, hmc.NUTS{}, silent)
		require.ErrorContains(t, err, want)
	}
}
