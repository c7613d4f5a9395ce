package hmc_test

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mathext"
	gonum "gonum.org/v1/gonum/stat"
)

// counted is a Gamma(2, 0.5) rate with five counts from Poisson(rate).
func counted(t *testing.T) (p *ppl.Program, sum, n, constant float64) {
	t.Helper()
	y := []float64{3, 7, 4, 6, 5}
	for _, e := range y {
		sum += e
		lg, _ := math.Lgamma(e + 1)
		constant += lg
	}
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		rate := c.Sample("rate", dist.Gamma(2, 0.5))
		c.Plate("data", 5, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate), c.Data("y")) })
	}, infer.Batch{"y": torch.New(y)})
	require.NoError(t, err)
	return p, sum, 5, constant
}

// average is the mean over chains of one length.
func average(x [][]float64) (mean float64) {
	for _, chain := range x {
		mean += gonum.Mean(chain, nil) / float64(len(x))
	}
	return mean
}

// spreadOf is the standard deviation of a single chain.
func spreadOf(x [][]float64) float64 { return gonum.StdDev(x[0], nil) }

// At β the likelihood-tempered posterior of a Gamma(a, b) rate and n counts is Gamma(a + βΣy, b + βn), from the prior
// at β = 0 to the posterior at 1. The mean log likelihood there is Σy (ψ(A) − log B) − n A/B − Σ log y!, with A and B
// those of the law at β. All rungs are drawn at once, by native code and by tensors.
func TestExchangeOnAPath(t *testing.T) {
	p, sum, n, constant := counted(t)
	for _, tier := range []native.Tier{native.Auto, native.Eager} {
		t.Run(string(tier), func(t *testing.T) {
			size := 1500
			if tier == native.Eager {
				size = 400
			}
			r, err := infer.Run(ctx, p, hmc.Exchange{Ladder: path.Power(5, 3), Path: &path.Path{}, KeepHot: true, Adapt: true},
				infer.Options{Chains: 4, Warmup: size, Draws: size, Seed: 3, Native: tier})
			require.NoError(t, err)
			d := detail(t, r)
			require.Len(t, d.Hot, 4)
			for rung := range 5 {
				at := r.Draws
				if rung > 0 {
					require.Equal(t, size, d.Hot[rung-1].Len(3))
					at, err = p.Draws(d.Hot[rung-1], p.Batch())
					require.NoError(t, err)
				}
				// Each chain has a ladder of its own, so that a rung has a β for each.
				x := element(t, at, "rate", 0)
				for c := range x {
					beta := d.Swaps[c].Ladder[rung]
					a, b := 2+beta*sum, 0.5+beta*n
					own := x[c : c+1]
					assert.InDelta(t, a/b, average(own), 4*diag.MCSEMean(own), "mean of chain %d at β = %.3g", c, beta)
					assert.InDelta(t, math.Sqrt(a)/b, spreadOf(own), 4*diag.MCSESD(own), "sd of chain %d at β = %.3g", c, beta)
					want := sum*(mathext.Digamma(a)-math.Log(b)) - n*a/b - constant
					s := &d.Swaps[c]
					se := math.Sqrt(3 * s.SlopeVariance(rung) / float64(s.Slopes[rung])) // correlated somewhat from swap to swap
					assert.InDelta(t, want, s.SlopeMean[rung], 4*se, "log likelihood of chain %d at β = %.3g", c, beta)
				}
			}
			require.Equal(t, 1.0, d.Swaps[0].Ladder[0], "the rung of interest is the first")
			require.Equal(t, 0.0, d.Swaps[0].Ladder[4])
			trips, _ := stat(t, r.Draws, "round_trips")
			assert.Positive(t, trips)
			for _, note := range r.Draws.Notes() {
				assert.NotEqual(t, "replicas_do_not_travel", note.Kind)
			}
		})
	}
}

// apart is 0.3 N(-10, 1) + 0.7 N(10, 1), as a likelihood under a prior N(0, 20²), which takes the same from both modes.
func apart(t *testing.T) *ppl.Program {
	t.Helper()
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("x", dist.Normal(0, 20))
		left := x.Add(10).Square().Mul(-0.5).Add(math.Log(0.3))
		right := x.Sub(10).Square().Mul(-0.5).Add(math.Log(0.7))
		top := torch.Where(left.Gt(right), left, right)
		c.Factor("mixture", top.Add(left.Sub(right).Abs().Neg().Exp().Log1p()))
	}, nil)
	require.NoError(t, err)
	return p
}

// Modes 20 standard deviations apart have their weights, within three standard errors from eight independent ladders
// that all start in one of them, at full temperatures and from the prior. NUTS alone stays in it.
func TestExchangeOfModesFarApart(t *testing.T) {
	p := apart(t)
	start, err := infer.NewParams(p.Layout(), []float64{-10})
	require.NoError(t, err)
	o := infer.Options{Chains: 8, Warmup: 600, Draws: 3000, Seed: 1, Start: start}
	occupancy := func(m infer.Method) (mean, se float64, r *infer.Result) {
		r, err := infer.Run(ctx, p, m, o)
		require.NoError(t, err)
		var each []float64
		for _, chain := range element(t, r.Draws, "x", 0) {
			right := 0.0
			for _, x := range chain {
				if x > 0 {
					right += 1 / float64(len(chain))
				}
			}
			each = append(each, right)
			mean += right / float64(o.Chains)
		}
		for _, e := range each {
			se += (e - mean) * (e - mean) / float64(o.Chains*(o.Chains-1))
		}
		return mean, math.Sqrt(se), r
	}
	for name, m := range map[string]hmc.Exchange{
		"temperatures": {Ladder: hmc.GeometricLadder(1, 60, 6), Adapt: true},
		"from the prior": {Ladder: append([]float64{0}, hmc.GeometricLadder(0.003, 1, 6)...), Path: &path.Path{},
			Adapt: true},
	} {
		t.Run(name, func(t *testing.T) {
			mean, se, r := occupancy(m)
			s := detail(t, r).Swaps[0]
			t.Logf("%.4f, se %.4f; round trip rate %.3f, at best %.3f, barrier %.2f", mean, se, s.RoundTripRate(), s.BestRate(),
				s.Barrier())
			assert.InDelta(t, 0.7, mean, 3*se)
			assert.Less(t, se, 0.02)
		})
	}
	alone, _, _ := occupancy(hmc.NUTS{})
	assert.Zero(t, alone)
}

// A ladder that is too short for what lies between its ends says so, with what to set.
func TestReplicasThatDoNotTravel(t *testing.T) {
	p := apart(t)
	r, err := infer.Run(ctx, p, hmc.Exchange{Ladder: []float64{1e-7, 1}, Path: &path.Path{}},
		infer.Options{Chains: 2, Warmup: 200, Draws: 100, Seed: 1})
	require.NoError(t, err)
	report, err := diag.Diagnose(r.Draws, diag.DiagnoseOptions{})
	require.NoError(t, err)
	found := false
	for _, f := range report.Findings {
		if f.Code == "replicas_do_not_travel" {
			found = true
			assert.Contains(t, f.Message, "round trips")
			assert.Contains(t, f.Advice, "hmc.Exchange.Ladder more rungs")
		}
	}
	assert.True(t, found, report)
}

// A reference has walls: its box is the kernel's, and the replicas stay in it. With the precision 0 it is a uniform
// law, and the target a normal one cut at the walls: of N(0, 1) cut at ±1.5 the variance is 1 - 2·1.5 φ(1.5)/(2Φ(1.5) -
// 1).
func TestExchangeInABox(t *testing.T) {
	density := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Mul(-0.5).Sum(), nil
	}, 1)
	p := infer.Handwritten(density, infer.Params{Layout: layoutOf(t, infer.Shapes{"x": {}})}, nil)
	box := &path.Path{Reference: &path.Harmonic{Mean: []float64{0}, Precision: []float64{0}, Lower: []float64{-1.5},
		Upper: []float64{1.5}}}
	d, err := infer.Sample(ctx, p, hmc.Exchange{Ladder: []float64{0, 0.3, 1}, Path: box, Every: 1,
		Kernel: hmc.HMC{Steps: 2, Jitter: 0.5}}, infer.Options{Warmup: 500, Draws: 3000, Seed: 1,
		Start: torch.Must(infer.NewParams(layoutOf(t, infer.Shapes{"x": {}}), []float64{0.1}))})
	require.NoError(t, err)
	x := element(t, d, "x", 0)
	var square [][]float64
	for _, chain := range x {
		s := make([]float64, len(chain))
		for i, e := range chain {
			require.LessOrEqual(t, math.Abs(e), 1.5)
			s[i] = e * e
		}
		square = append(square, s)
	}
	phi := math.Exp(-1.125) / math.Sqrt(2*math.Pi)
	want := 1 - 3*phi/math.Erf(1.5/math.Sqrt2)
	assert.InDelta(t, want, average(square), 4*diag.MCSEMean(square))
	_, err = hmc.Exchange{Ladder: []float64{0, 1}, Path: box}.Build(density)
	require.ErrorContains(t, err, "hmc.Exchange: Kernel is a hmc.NUTS: the Reference has walls")
}

// Ladders and paths that mean nothing are errors that say so: ladders that do not increase, fewer than two rungs, a
// start that cannot be sampled.
func TestExchangeErrors(t *testing.T) {
	p, _, _, _ := counted(t)
	improper, err := ppl.Compile(func(c *ppl.Ctx) {
		x := c.Sample("flat", dist.Flat())
		c.Observe("y", dist.Normal(x, 1), c.Data("y"))
	}, infer.Batch{"y": torch.New([]float64{1}, 1)})
	require.NoError(t, err)
	whole := handwritten(t, twoModes, infer.Shapes{"x": {}})
	likelihood, full := &path.Path{}, &path.Path{Full: true}
	for _, c := range []struct {
		program infer.Program
		m       hmc.Exchange
		warmup  int
		says    string
	}{
		{p, hmc.Exchange{Path: likelihood, Ladder: []float64{1, 0.5, 0}}, 0,
			"Ladder[1] is 0.5 after 1: the ladder must increase"},
		{p, hmc.Exchange{Path: likelihood, Ladder: []float64{0, 0.5, 0.5, 1}}, 0, "Ladder[2]"},
		{p, hmc.Exchange{Path: likelihood, Ladder: []float64{1}}, 0, "it must have at least 2"},
		{p, hmc.Exchange{Path: likelihood}, 0, "it must have at least 2"},
		{p, hmc.Exchange{Path: likelihood, Ladder: []float64{0, 2}}, 0, "Ladder[1] is 2: it must be from 0 to 1"},
		{p, hmc.Exchange{Path: &path.Path{Full: true, Reference: &path.Harmonic{}}, Ladder: []float64{0, 1}}, 0,
			"at most one"},
		{p, hmc.Exchange{Path: full, Ladder: []float64{0, 1}}, 0, "the start of the path cannot be sampled"},
		{improper, hmc.Exchange{Path: likelihood, Ladder: []float64{0, 1}}, 0, `"flat"`},
		{whole, hmc.Exchange{Path: likelihood, Ladder: []float64{0.1, 1}}, 0, "cannot tell its prior and likelihood apart"},
		{p, hmc.Exchange{Ladder: []float64{1, 2}, Adapt: true, Every: 10}, 100,
			"Warmup is 100: with Adapt and swaps every 10"},
		{p, hmc.Exchange{Ladder: []float64{1, 2}, Minimise: -3}, 0, "hmc.Exchange: Minimise is -3"},
		{p, hmc.Exchange{Ladder: []float64{1, 2}, Trials: -3}, 0, "hmc.Exchange: Trials is -3"},
		{p, hmc.Exchange{Ladder: []float64{1, 2}, Trials: 3, TrialEvery: -1}, 0, "hmc.Exchange: TrialEvery is -1"},
	} {
		_, err := infer.Sample(ctx, c.program, c.m, infer.Options{Warmup: c.warmup, Draws: 10})
		require.ErrorContains(t, err, c.says)
		if c.program != infer.Program(improper) {
			require.ErrorIs(t, err, infer.ErrConfig, c.says)
		}
		transform, err := c.m.Build(c.program.Target())
		if err == nil && c.m.Path != nil {
			start, err := c.program.Start(c.program.Batch(), 1, 0)
			require.NoError(t, err)
			s, err := transform.Init(start)
			require.NoError(t, err)
			_, _, err = transform.Update(s, c.program.Batch())
			require.ErrorContains(t, err, c.says, "an update says so too")
		}
	}
}
