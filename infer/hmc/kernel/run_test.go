package kernel

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// schools is the eight schools model (Rubin 1981), non-centred: θⱼ = μ + τzⱼ with z standard normal, yⱼ ~ N(θⱼ, σⱼ²),
// μ ~ N(0, 5²), τ half-Cauchy of scale 5, on x = (μ, log τ, z).
var schools = Func(10, func(x, grad []float64) float64 {
	y := [8]float64{28, 8, -3, 7, -1, 1, 18, 12}
	sigma := [8]float64{15, 10, 16, 11, 9, 11, 10, 18}
	mu, tau := x[0], math.Exp(x[1])
	c := tau * tau / 25
	lp := -mu*mu/50 - math.Log1p(c) + x[1]
	grad[0], grad[1] = -mu/25, 1-2*c/(1+c)
	for j, z := range x[2:] {
		r := (y[j] - mu - tau*z) / (sigma[j] * sigma[j])
		lp -= 0.5*z*z + 0.5*r*r*sigma[j]*sigma[j]
		grad[0] += r
		grad[1] += r * tau * z
		grad[2+j] = r*tau - z
	}
	return lp
})

// The gradient of schools, by central differences.
func TestSchoolsGradient(t *testing.T) {
	x := []float64{3, 1.2, 0.1, -0.5, 0.7, 1, -1, 0.3, 0.2, -0.9}
	g := gradientOf(schools)
	grad, scratch := make([]float64, 10), make([]float64, 10)
	_, err := g(x, grad)
	require.NoError(t, err)
	for i := range x {
		up, down := slices.Clone(x), slices.Clone(x)
		up[i] += 1e-5
		down[i] -= 1e-5
		a, _ := g(up, scratch)
		b, _ := g(down, scratch)
		assert.InDelta(t, (a-b)/2e-5, grad[i], 1e-7)
	}
}

// 64 chains on eight schools: while sampling the mean batch holds at least 95 % of the chains, because a chain waits
// for nobody's tree, and all have one step size. (What is missing is the end, when chains are finished one after
// another.)
func TestFill(t *testing.T) {
	r := run(t, schools, Options{Chains: 64, Warmup: 500, Draws: 1000, Seed: 1, Pooled: true})
	t.Logf("fill %.4f; %d batches", r.Fill(), r.Batches)
	assert.GreaterOrEqual(t, r.Fill(), 0.95)
	leapfrogs, gradients, least := 0, 0, math.MaxInt
	for k := range r.Chains {
		own := 0
		for _, l := range r.Chains[k].Leapfrogs {
			own += l
		}
		leapfrogs += own
		least = min(least, own)
		gradients += r.Chains[k].Gradients
		assert.Equal(t, r.Chains[0].StepSize[0], r.Chains[k].StepSize[0])
		assert.Equal(t, r.Chains[0].Metric, r.Chains[k].Metric)
	}
	assert.Equal(t, leapfrogs, r.SamplingRows)
	assert.Equal(t, least, r.FullBatches, "all are in every batch until the first is finished")
	assert.Equal(t, gradients, r.Rows)
	own := run(t, schools, Options{Chains: 64, Warmup: 500, Draws: 200, Seed: 1})
	t.Logf("with a step size for each chain: %.4f", own.Fill())
}

// mixes depends on the other rows of the batch in the last bits, as batched products do.
type mixes struct{ Density }

func (m mixes) ValueAndGrad(x, logp, grad []float64) error {
	err := m.Density.ValueAndGrad(x, logp, grad)
	s := 0.0
	for _, e := range x {
		s += e
	}
	for k := range logp {
		logp[k] *= 1 + 1e-15*math.Sin(s)
	}
	return err
}

var configurations = map[string]Options{
	"NUTS":            {},
	"NUTS, pooled":    {Pooled: true},
	"NUTS, low rank":  {Metric: LowRank, Pooled: true},
	"low rank":        {Metric: LowRank},
	"diagonal":        {Metric: Diagonal},
	"NUTS, dense":     {Metric: Dense, Thin: 2},
	"NUTS, tempered":  {Temperature: 0.5},
	"HMC, persistent": {Kernel: HMC{Length: 1, Jitter: 0.3, Persistence: 0.5}},
	"MALA":            {Kernel: HMC{Steps: 1}},
	"one chain":       {Chains: 1},
	"each for itself": {Parallel: true},
	"unit":            {Metric: Unit},
	"MAMS":            {Kernel: Microcanonical{}},
	"MCLMC":           {Kernel: Microcanonical{Unadjusted: true}},
}

func configured(o Options) Options {
	if o.Chains == 0 {
		o.Chains = 5
	}
	o.Warmup, o.Draws, o.Seed = 120, 60, 9
	return o
}

// The same run twice, with one and two threads, is the same bit for bit, also when rows depend on their neighbours.
func TestRepeats(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, o := range configurations {
		t.Run(name, func(t *testing.T) {
			d := Density(mixes{schools})
			if o.Parallel {
				d = schools
			}
			runtime.GOMAXPROCS(1)
			want := run(t, d, configured(o))
			for range 2 {
				runtime.GOMAXPROCS(2)
				sameDraws(t, want, run(t, d, configured(o)))
			}
			other := configured(o)
			other.Seed++
			require.NotEqual(t, want.Chains[0].Draws, run(t, d, other).Chains[0].Draws)
		})
	}
}

// A chain's draws do not depend on the chains beside it where the rows do not, nor on how gradients are evaluated.
func TestChainsAreIndependent(t *testing.T) {
	a := run(t, schools, configured(Options{Chains: 1}))
	b := run(t, schools, configured(Options{Chains: 6}))
	c := run(t, schools, configured(Options{Chains: 3, Parallel: true}))
	require.Equal(t, a.Chains[0].Draws, b.Chains[0].Draws)
	require.Equal(t, b.Chains[2].Draws, c.Chains[2].Draws)
}

// carry sends a snapshot through JSON or gob.
func carry(t *testing.T, s *Snapshot, how string) *Snapshot {
	t.Helper()
	var out Snapshot
	if how == "json" {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &out))
	} else {
		var b bytes.Buffer
		require.NoError(t, gob.NewEncoder(&b).Encode(s))
		require.NoError(t, gob.NewDecoder(&b).Decode(&out))
	}
	return &out
}

// joined compares a full run with what was drawn before (cut where the rest begins) and after.
func joined(t *testing.T, full, before, after *sampled) {
	t.Helper()
	for k := range full.Chains {
		f, a, b := &full.Chains[k], &before.Chains[k], &after.Chains[k]
		cut := b.First
		require.LessOrEqual(t, cut, a.Len())
		require.Equal(t, f.Len(), cut+b.Len())
		require.Equal(t, f.Draws, append(slices.Clone(a.Draws[:cut*full.Dim]), b.Draws...), "chain %d", k)
		require.Equal(t, f.Energy, append(slices.Clone(a.Energy[:cut]), b.Energy...))
		require.Equal(t, f.Gradients, b.Gradients)
		require.Equal(t, f.Metric, b.Metric)
	}
}

// Checkpoints in the middle of windows, at window ends, in the last part of the warm-up and while sampling: going on
// from each of them, through JSON and gob, gives the draws of the run that was not interrupted, bit for bit, also when
// rows depend on their neighbours. (Warm-up 120: windows end after 10, 20, ..., 50, 65 and 102.)
func TestResumeFromCheckpoints(t *testing.T) {
	for name, o := range configurations {
		t.Run(name, func(t *testing.T) {
			d := Density(mixes{schools})
			if o.Parallel {
				d = schools
			}
			var snapshots []*Snapshot
			o = configured(o)
			o.CheckpointEvery = 5
			o.Checkpoint = func(s *Snapshot) error { snapshots = append(snapshots, s); return nil }
			full := run(t, d, o)
			require.GreaterOrEqual(t, len(snapshots), 35)
			for i, s := range snapshots {
				for _, c := range s.Chains {
					require.Equal(t, 5*(i+1), c.Done)
				}
				how := []string{"json", "gob"}[i%2]
				o.Checkpoint = func(*Snapshot) error { return nil }
				rest, err := resume(d, o, carry(t, s, how))
				require.NoError(t, err)
				joined(t, full, full, rest)
			}
		})
	}
}

// Cancelled after any number of gradients, wherever the chains then are, a run returns what it has and a snapshot, from
// which it goes on to the same draws.
func TestResumeAfterCancel(t *testing.T) {
	for name, o := range configurations {
		t.Run(name, func(t *testing.T) {
			o = configured(o)
			full := run(t, schools, o)
			total := 0
			for _, c := range full.Chains {
				total += c.Gradients
			}
			for _, part := range []float64{0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.95} {
				leak := goroutines(t)
				ctx, cancel := context.WithCancel(context.Background())
				stop, n := int(part*float64(total)), atomic.Int64{}
				r, err := sample(ctx, Func(10, func(x, grad []float64) float64 {
					if int(n.Add(1)) >= stop {
						cancel()
					}
					return schools.(funcDensity).f(x, grad)
				}), o)
				cancel()
				leak()
				require.ErrorIs(t, err, context.Canceled)
				require.NotNil(t, r)
				rest, err := resume(schools, o, carry(t, r.Snapshot, "json"))
				require.NoError(t, err)
				joined(t, full, r, rest)
			}
			// From the end, with more draws asked for, it goes on.
			more := o
			more.Draws += 20
			rest, err := resume(schools, more, full.Snapshot)
			require.NoError(t, err)
			joined(t, run(t, schools, more), full, rest)
		})
	}
}

func TestResumeErrors(t *testing.T) {
	o := configured(Options{})
	s := run(t, schools, o).Snapshot
	for name, change := range map[string]func(o *Options, s *Snapshot){
		"seed":        func(o *Options, _ *Snapshot) { o.Seed++ },
		"kernel":      func(o *Options, _ *Snapshot) { o.Kernel = NUTS{MaxDepth: 5} },
		"warmup":      func(o *Options, _ *Snapshot) { o.Warmup++ },
		"fewer draws": func(o *Options, _ *Snapshot) { o.Draws-- },
		"temperature": func(o *Options, _ *Snapshot) { o.Temperature = 2 },
		"chains":      func(_ *Options, s *Snapshot) { s.Chains = s.Chains[1:] },
		"point":       func(_ *Options, s *Snapshot) { s.Chains[1].Point.X = []float64{1} },
		"metric":      func(_ *Options, s *Snapshot) { s.Chains[0].Metric.Diag[3] = -1 },
		"mass":        func(_ *Options, s *Snapshot) { s.Chains[0].Mass.Kind = Dense },
	} {
		o, s := o, carry(t, s, "json")
		change(&o, s)
		_, err := resume(schools, o, s)
		assert.ErrorIs(t, err, errSnapshot, name)
	}
}

// A region of NaN is a divergence: the half line x > 1 is never entered, and what is left is the normal law cut at 1,
// whose mean is -φ(1)/Φ(1).
func TestNaNRegion(t *testing.T) {
	for _, kernel := range []Kernel{NUTS{}, HMC{Steps: 3, Jitter: 0.5}} {
		r := run(t, Func(1, func(x, grad []float64) float64 {
			if grad[0] = -x[0]; x[0] > 1 {
				return math.NaN()
			}
			return -x[0] * x[0] / 2
		}), Options{Kernel: kernel, Chains: 2, Warmup: None, StepSize: 0.4, Draws: 10000, Init: [][]float64{{0}, {0.5}}})
		phi := math.Exp(-0.5) / math.Sqrt(2*math.Pi)
		check(t, r, "cut normal", -phi/(0.5*math.Erfc(-1/math.Sqrt2)), func(x []float64) float64 { return x[0] })
		divergent := 0
		for i, v := range r.Chains[0].Draws {
			require.LessOrEqual(t, v, 1.0)
			if r.Chains[0].Divergent[i] {
				divergent++
			}
		}
		assert.Positive(t, divergent)
	}
}

// Starts that are not finite, without end or as given, are errors that name the chain; the others end.
func TestNonFiniteStart(t *testing.T) {
	nan := Func(2, func(_, _ []float64) float64 { return math.NaN() })
	for _, chains := range []int{1, 3} {
		leak := goroutines(t)
		r, err := sample(context.Background(), nan, Options{Chains: chains})
		leak()
		var chain *chainError
		require.ErrorAs(t, err, &chain)
		require.ErrorIs(t, err, ErrNonFinite)
		require.Contains(t, err.Error(), fmt.Sprintf("chain %d", chain.Chain))
		require.Len(t, r.Chains, chains)
	}
	half := Func(1, func(x, grad []float64) float64 {
		if grad[0] = -x[0]; x[0] > 3 {
			return math.Inf(-1)
		}
		return -x[0] * x[0] / 2
	})
	_, err := sample(context.Background(), half, Options{Chains: 3, Init: [][]float64{{0}, {4}, {1}}})
	var chain *chainError
	require.ErrorAs(t, err, &chain)
	require.Equal(t, 1, chain.Chain)
	require.ErrorIs(t, err, ErrNonFinite)
}

// An error or panic of the density, the observer or the hook ends the run with it and the draws so far.
func TestFailures(t *testing.T) {
	bad := errors.New("bad")
	whole := run(t, schools, configured(Options{Chains: 3}))
	total := 0
	for _, c := range whole.Chains {
		total += c.Gradients
	}
	for _, chains := range []int{1, 3} {
		for name, fail := range map[string]func(){"panic": func() { panic(bad) }, "panic with text": func() { panic("no") },
			"goexit": runtime.Goexit} {
			n := 0
			leak := goroutines(t)
			r, err := sample(context.Background(), Func(10, func(x, grad []float64) float64 {
				if n++; n > total*chains*9/30 {
					fail()
				}
				return schools.(funcDensity).f(x, grad)
			}), configured(Options{Chains: chains}))
			leak()
			require.Error(t, err, name)
			if name != "goexit" {
				var p *PanicError
				require.ErrorAs(t, err, &p)
				require.Contains(t, p.Stack, "run_test.go")
			}
			if name == "panic" {
				require.ErrorIs(t, err, bad)
			}
			drawn := 0
			for k := range r.Chains {
				c := &r.Chains[k]
				require.Positive(t, c.Len())
				drawn += c.Len()
				require.Equal(t, whole.Chains[k].Draws[:len(c.Draws)], c.Draws)
			}
			require.Less(t, drawn, 60*chains)
		}
		o := configured(Options{Chains: chains})
		o.Record = func(_, draw int, _ []float64, info Info) error {
			if !info.Warmup && draw == 10 {
				panic(bad)
			}
			return nil
		}
		r, err := sample(context.Background(), schools, o)
		require.ErrorIs(t, err, bad)
		most := 0
		for k := range r.Chains {
			most = max(most, r.Chains[k].Len())
		}
		require.GreaterOrEqual(t, most, 11)
		require.Less(t, most, 60)
		o = configured(Options{Chains: chains})
		o.Checkpoint = func(*Snapshot) error { return bad }
		r, err = sample(context.Background(), schools, o)
		require.ErrorIs(t, err, bad)
		require.Equal(t, 100, r.Snapshot.Chains[0].Done)
	}
}

// The observer sees each warm-up transition and each kept draw, in order.
func TestRecord(t *testing.T) {
	o := configured(Options{Chains: 2, Thin: 3})
	next, seen := map[[2]int]int{}, map[int][]float64{}
	o.Record = func(chain, draw int, x []float64, info Info) error {
		key := [2]int{chain, 0}
		if info.Warmup {
			key[1] = 1
		} else {
			seen[chain] = append(seen[chain], x...)
		}
		require.Equal(t, next[key], draw)
		next[key]++
		return nil
	}
	r := run(t, schools, o)
	for k := range 2 {
		require.Equal(t, 60, next[[2]int{k, 0}])
		require.Equal(t, 120, next[[2]int{k, 1}])
		require.Equal(t, r.Chains[k].Draws, seen[k])
	}
}

func TestOptionErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"Chains": {Chains: -1}, "Draws": {Draws: -1}, "Thin": {Thin: -1}, "Warmup": {Warmup: -2},
		"Temperature": {Temperature: -1},
		"StepSize":    {StepSize: math.NaN()}, "Metric": {Metric: "round"}, "TargetAccept": {TargetAccept: 2},
		"MaxDepth": {Kernel: NUTS{MaxDepth: 99}}, "InitialMetric.Dim": {InitialMetric: &Metric{Kind: Unit, Dim: 3}},
		"Diag": {InitialMetric: &Metric{Kind: Diagonal, Dim: 10}},
		"Init": {Init: [][]float64{{1}}}, "Init[0]": {Chains: 1, Init: [][]float64{{1}}}, "Cutoff": {Cutoff: 0.1},
		"CheckpointEvery": {CheckpointEvery: -1},
	} {
		r, err := sample(context.Background(), schools, o)
		var field *FieldError
		require.ErrorAs(t, err, &field, name)
		assert.Equal(t, name, field.Field)
		assert.ErrorIs(t, err, errConfig)
		assert.Nil(t, r)
	}
	_, err := sample(context.Background(), nil, Options{})
	assert.ErrorIs(t, err, errConfig)
	_, err = sample(context.Background(), gaussian(), Options{})
	assert.ErrorIs(t, err, errConfig)
}
