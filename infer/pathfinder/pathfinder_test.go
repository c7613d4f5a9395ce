package pathfinder_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/torch"
)

// gamma is the law of x = e^y with density x² e^-x/2, on the whole line of y: mean 3, variance 3. It is
// not normal in y.
func gamma(t *testing.T) infer.Program {
	t.Helper()
	l, err := infer.NewLayout(infer.Shapes{"y": {2}})
	require.NoError(t, err)
	return infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		y := p.Get("y")
		return y.Mul(3).Sub(y.Exp()).Sum(), nil
	}, 1), infer.Params{Layout: l}, nil)
}

// values are exp of an element of all draws, chain by chain.
func values(d *draws.Draws, i int) [][]float64 {
	out := make([][]float64, d.Chains())
	for c := range out {
		for _, v := range d.Element(c, i) {
			out[c] = append(out[c], math.Exp(v))
		}
	}
	return out
}

// The ratios take the approximation to the posterior: the means and second moments of exp(y), 3 and 12, are within four
// standard errors, sd/√ESS with the ESS of the weights; systematic resampling adds less than that. Those of the plain
// draws of one path are not: a normal law in y has another tail.
func TestRatiosRemoveTheError(t *testing.T) {
	run := func(m pathfinder.Pathfinder) (*infer.Result, *pathfinder.Detail) {
		r, err := infer.Run(context.Background(), gamma(t), m, infer.Options{Seed: 3, Draws: 20000})
		require.NoError(t, err)
		return r, r.Detail.(*pathfinder.Detail)
	}
	r, detail := run(pathfinder.Pathfinder{})
	plain, _ := run(pathfinder.Pathfinder{Paths: 1, Plain: true})
	ess := 0.0
	for c, v := range detail.ESS {
		ess += v
		require.Less(t, detail.ParetoK[c], loo.KThreshold(4*20000))
		require.Len(t, detail.Paths[c], 4)
	}
	moment := func(r *infer.Result, power float64) float64 {
		sum, n := 0.0, 0.0
		for i := range 2 {
			for _, chain := range values(r.Draws, i) {
				for _, v := range chain {
					sum, n = sum+math.Pow(v, power), n+1
				}
			}
		}
		return sum / n
	}
	// The variances of x and x² are 3 and E x⁴ − 144 = 3·4·5·6 − 144 = 216. The number of draws bounds the ESS.
	ess = 2 * math.Min(ess, 80000)
	require.InDelta(t, 3, moment(r, 1), 4*math.Sqrt(3/ess))
	require.InDelta(t, 12, moment(r, 2), 4*math.Sqrt(216/ess))
	require.Greater(t, math.Abs(moment(plain, 2)-12), 8*math.Sqrt(216/ess))
	require.Positive(t, r.Gradients)
	require.Empty(t, r.Draws.Notes())
}

// Draws are a function of seed and chain: they are the same again, with one chain alone, and in another tier but for
// rounding.
func TestDrawsAreOfSeedAndChain(t *testing.T) {
	run := func(o infer.Options) *draws.Draws {
		o.Seed, o.Draws = 5, 50
		d, err := infer.Sample(context.Background(), gamma(t), pathfinder.Pathfinder{}, o)
		require.NoError(t, err)
		return d
	}
	all := run(infer.Options{Chains: 3})
	require.Equal(t, all.Element(2, 1), run(infer.Options{Chains: 3}).Element(2, 1))
	require.Equal(t, all.Element(2, 1), run(infer.Options{Chains: 3, Group: 1}).Element(2, 1))
	require.InDeltaSlice(t, all.Element(1, 0), run(infer.Options{Chains: 3, Native: native.Eager}).Element(1, 0), 1e-6)
}

// A posterior whose tails the normal laws do not have is told of in a note: the ratios of a Cauchy law have infinite
// variance.
func TestHeavyTailsHaveANote(t *testing.T) {
	l, err := infer.NewLayout(infer.Shapes{"x": {3}})
	require.NoError(t, err)
	cauchy := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Add(1).Log().Sum().Neg(), nil
	}, 1), infer.Params{Layout: l}, nil)
	d, err := infer.Sample(context.Background(), cauchy, pathfinder.Pathfinder{}, infer.Options{})
	require.NoError(t, err)
	require.Len(t, d.Notes(), 1)
	require.Equal(t, "far_from_posterior", d.Notes()[0].Kind)
	require.True(t, d.Notes()[0].Serious)
	require.Regexp(t, `^By the ratios of the posterior to the approximation [0-9.]+ % of a path's draws are `+
		`effective, and the tail of the ratios has a Pareto k of \d\.\d\d, where 0\.70 is the limit`, d.Notes()[0].Text)
	require.Contains(t, d.Notes()[0].Advice, "hmc.NUTS{}")
}

// Where the approximation is the posterior, the ratios are equal but for rounding, and the Pareto k of their tail is
// noise: a quarter of the runs and more have one above the limit. Their draws are right, means are within five standard
// errors 1/√(n·4000), and no run has a note. The density sums squares of 2000 data, for rounding as a model has it. The
// last bits of a machine decide where a path goes, and an ELBO of five draws may take a wrong point of it for the best:
// then less than half of a chain's candidates are effective, in at most one of twenty chains.
func TestGaussianPosteriorsHaveNoNote(t *testing.T) {
	const n, runs = 2000, 20
	y := make([]float64, n)
	for i := range y {
		y[i] = math.Sin(float64(i))
	}
	data := torch.New(y, n, 1)
	l, err := infer.NewLayout(infer.Shapes{"x": {3}})
	require.NoError(t, err)
	normal := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return data.Sub(p.Get("x")).Square().Sum().Mul(-0.5), nil
	}, 1), infer.Params{Layout: l}, nil)
	mean := 0.0
	for _, v := range y {
		mean += v / n
	}
	noise, wrong := 0, 0
	for seed := range uint64(runs) {
		r, err := infer.Run(context.Background(), normal, pathfinder.Pathfinder{}, infer.Options{Seed: seed,
			Observer: infer.Silent})
		require.NoError(t, err)
		require.Empty(t, r.Draws.Notes(), "seed %d", seed)
		detail := r.Detail.(*pathfinder.Detail)
		if slices.Max(detail.ParetoK) > loo.KThreshold(4000) {
			noise++
		}
		for _, ess := range detail.ESS {
			if ess <= 0.5*4000 {
				wrong++
			}
		}
		for i := range 3 {
			sum := 0.0
			for c := range 4 {
				for _, v := range r.Draws.Element(c, i) {
					sum += v / 4000
				}
			}
			require.InDelta(t, mean, sum, 5/math.Sqrt(n*4000))
		}
	}
	require.GreaterOrEqual(t, noise, runs/4)
	require.LessOrEqual(t, wrong, runs*4/20)
}

// Two modes of weights 0.95 and 0.05, each a normal law. The ratios give each path the weight of its mode, so that less
// than half of all candidates are effective where most paths end at the lesser mode, and the draws are right. Those of
// Plain are not, and have the note.
func TestPathsOfLittleWeightHaveNoNote(t *testing.T) {
	l, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	modes := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		x := p.Get("x")
		return torch.Stack(0, x.Sub(8).Square().Mul(-0.5).Add(math.Log(0.95)),
			x.Add(8).Square().Mul(-0.5).Add(math.Log(0.05))).LogSumExp(0), nil
	}, 1), infer.Params{Layout: l}, nil)
	few, plain := 0, 0
	for seed := range uint64(10) {
		o := infer.Options{Seed: seed, Chains: 8, Observer: infer.Silent}
		r, err := infer.Run(context.Background(), modes, pathfinder.Pathfinder{}, o)
		require.NoError(t, err)
		require.Empty(t, r.Draws.Notes(), "seed %d", seed)
		detail := r.Detail.(*pathfinder.Detail)
		for c, ess := range detail.ESS {
			if ess < 2000 && detail.ParetoK[c] > 0.7 {
				few++
			}
		}
		p, err := infer.Sample(context.Background(), modes, pathfinder.Pathfinder{Plain: true}, o)
		require.NoError(t, err)
		plain += len(p.Notes())
	}
	require.Positive(t, few)
	require.Positive(t, plain)
}

func TestBadConfigurations(t *testing.T) {
	ctx := context.Background()
	for want, m := range map[string]infer.Method{
		"pathfinder.Pathfinder: Paths is -1":        pathfinder.Pathfinder{Paths: -1},
		"pathfinder.Pathfinder: History is -2":      pathfinder.Pathfinder{History: -2},
		"pathfinder.Pathfinder: Tolerance is 1":     pathfinder.Pathfinder{Tolerance: 1},
		"pathfinder.Pathfinder: Candidates is 1000": pathfinder.Pathfinder{Candidates: 1000000, Paths: 1 << 20},
	} {
		_, err := infer.Sample(ctx, gamma(t), m, infer.Options{})
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
	_, err := pathfinder.Pathfinder{}.Build(infer.Target{})
	require.ErrorIs(t, err, infer.ErrConfig)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = infer.Sample(cancelled, gamma(t), pathfinder.Pathfinder{}, infer.Options{})
	require.ErrorIs(t, err, context.Canceled)
	l, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	flat := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Mul(0), nil
	}, 1), infer.Params{Layout: l}, nil)
	_, err = infer.Sample(ctx, flat, pathfinder.Pathfinder{}, infer.Options{})
	require.ErrorContains(t, err, "none of 4 paths has an approximation")
}
