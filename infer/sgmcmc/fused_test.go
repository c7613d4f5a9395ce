package sgmcmc_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// logistic is a logistic regression of 50 data with 5 coefficients, of prior N(0, 1), as a mean over the data.
func logistic(t testing.TB, chains int) (infer.Program, infer.Batch) {
	t.Helper()
	streams := torch.NewStreams(11, 1)
	x, err := streams.Normal([]int{50, 5}, torch.DTypeOf[float64](), torch.CPU)
	require.NoError(t, err)
	u, err := streams.Uniform([]int{50}, torch.DTypeOf[float64](), torch.CPU)
	require.NoError(t, err)
	flip := u.T().MustRound(false).MustReshape([]int64{50}, false)
	batch := infer.Batch{"x": x.Reshape(50, 5), "y": torch.Of(flip)}
	target := infer.Mean(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		theta := p.Get("theta")
		eta := b.Get("x").MatMul(theta)
		n, err := b.Size()
		torch.Must(n, err)
		fit := b.Get("y").Mul(eta).Sub(torch.Of(eta.T().MustSoftplus(false))).Sum().Mul(1 / float64(n))
		return fit.Sub(theta.Square().Sum().Mul(0.5 / 50)), nil
	}, 50)
	layout, err := infer.NewLayout(infer.Shapes{"theta": {5}})
	require.NoError(t, err)
	start, err := infer.NewParams(layout, spread(5*chains))
	require.NoError(t, err)
	return infer.Handwritten(target, start, batch), batch
}

// fusedMethods are those that make their updates without tensors where the state is small.
var fusedMethods = map[string]infer.Method{
	"SGLD":  sgmcmc.SGLD{LR: infer.Polynomial(0.3, 1, 0.3), Beta: 0.1},
	"SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.2), Alpha: infer.Linear(1, 2, 0, 100), Sigma: 1.5},
	"BAOA":  sgmcmc.BAOA{LR: infer.Constant(0.3), Sigma: 0.7},
	"symplectic": sgmcmc.SymplecticSGHMC{LR: infer.Constant(0.1), Momentum: infer.Constant(0.9),
		Cycle: infer.Cosine(1, 40)},
	"PSGLD": sgmcmc.PSGLD{LR: infer.Constant(0.01), Eps: 0.1},
	"ramp":  sgmcmc.SGHMC{LR: infer.Constant(0.2), Temperature: infer.Ramp(1, 90, 20)},
	"SGD":   optim.SGD{LR: infer.Constant(0.1), Momentum: 0.8, Nesterov: true, WeightDecay: 0.01},
	"Adam":  optim.Adam{LR: infer.Constant(0.01), WeightDecay: 0.01},
	"AdamW": optim.AdamW{LR: infer.Constant(0.01)},
}

// fusedRun is a short run whose gradients are of a tier.
func fusedRun(t *testing.T, m infer.Method, chains int, minibatches int, tier native.Tier,
	more infer.Options) *infer.Result {
	t.Helper()
	program, batch := logistic(t, chains)
	o := more
	o.Chains, o.Warmup, o.Draws, o.Thin, o.Seed, o.Native = chains, 20, 30, 5, 3, tier
	if minibatches > 0 {
		var err error
		o.Batches, err = infer.Minibatches(batch, infer.MinibatchOptions{Size: minibatches, Seed: 5})
		require.NoError(t, err)
	}
	r, err := infer.Run(context.Background(), program, m, o)
	require.NoError(t, err)
	return r
}

// Updates without tensors are those with tensors, up to rounding: 170 updates of a target that contracts, so that
// roundings of 1e-16 do not grow by more than their number.
func TestFusedUpdatesAreThoseWithTensors(t *testing.T) {
	for method, m := range fusedMethods {
		for _, chains := range []int{1, 3} {
			for _, size := range []int{0, 10, 16} { // 50 data: batches of 16 end with one of 2
				t.Run(name("%s, %d chains, batches of %d", method, chains, size), func(t *testing.T) {
					have := fusedRun(t, m, chains, size, native.Require, infer.Options{})
					want := fusedRun(t, m, chains, size, native.Eager, infer.Options{})
					assertSameDraws(t, want.Unconstrained, have.Unconstrained, 1e-11)
					within(t, values(want.Last.Flat.T()), values(have.Last.Flat.T()), 1e-11, "last")
					assert.Equal(t, want.Updates, have.Updates)
					assert.Equal(t, want.Gradients, have.Gradients)
					for part, tensor := range want.State.Save().Tensors {
						within(t, values(tensor.T()), values(have.State.Save().Tensors[part].T()), 1e-11, part)
					}
					assert.Equal(t, want.State.Save().Streams, have.State.Save().Streams)
					assert.Equal(t, want.State.Steps(), have.State.Steps())
				})
			}
		}
	}
}

func assertSameDraws(t *testing.T, want, have *draws.Draws, tolerance float64) {
	t.Helper()
	require.Equal(t, want.Chains(), have.Chains())
	for c := range want.Chains() {
		require.Equal(t, want.Len(c), have.Len(c))
		for i := range want.Len(c) {
			within(t, want.Row(c, i), have.Row(c, i), tolerance, "draw")
		}
		for _, stat := range want.Stats() {
			a, err := want.Stat(stat, c)
			require.NoError(t, err)
			b, err := have.Stat(stat, c)
			require.NoError(t, err)
			within(t, a, b, tolerance*math.Max(1, math.Abs(a[0])), stat)
		}
	}
}

// seldom is an observer that is never due.
type seldom struct{ asked int }

func (s *seldom) Due() bool              { s.asked++; return false }
func (*seldom) Observe(p infer.Progress) { panic("it was not due") }

// A run has the same bits when it is watched, averaged, saved in small steps, or stopped and resumed: updates are fused
// the same whoever looks on, however many a call makes.
func TestFusedRunsDoNotDependOnWhoLooksOn(t *testing.T) {
	for _, method := range []string{"SGHMC", "ramp", "Adam"} {
		m := fusedMethods[method]
		for _, size := range []int{0, 16} {
			want := fusedRun(t, m, 2, size, native.Require, infer.Options{Observer: infer.Silent})
			same := func(what string, have *infer.Result) {
				t.Helper()
				for c := range 2 {
					for i := range want.Unconstrained.Len(c) {
						identical(t, want.Unconstrained.Row(c, i), have.Unconstrained.Row(c, i), what)
					}
					for _, stat := range want.Unconstrained.Stats() {
						identical(t, must(want.Unconstrained.Stat(stat, c)), must(have.Unconstrained.Stat(stat, c)), what+stat)
					}
				}
				identical(t, values(want.Last.Flat.T()), values(have.Last.Flat.T()), what)
			}
			var steps []int
			var lp []float64
			same("watched", fusedRun(t, m, 2, size, native.Require, infer.Options{
				Observer: infer.ObserverFunc(func(p infer.Progress) {
					steps = append(steps, p.State.Steps())
					lp = append(lp, p.Info.LogPosterior...)
				})}))
			require.Len(t, steps, 170)
			assert.Equal(t, 1, steps[0])
			assert.Equal(t, 170, steps[169])
			for _, v := range lp {
				require.Less(t, v, 0.0, "an observer is told the log posterior of every update")
			}
			asks := &seldom{}
			same("asked", fusedRun(t, m, 2, size, native.Require, infer.Options{Observer: asks}))
			assert.Positive(t, asks.asked)
			assert.Less(t, asks.asked, 170, "an observer that is not due does not stop the updates of a call")
			same("averaged", fusedRun(t, m, 2, size, native.Require, infer.Options{Average: true, Observer: infer.Silent}))
			same("saved", fusedRun(t, m, 2, size, native.Require, infer.Options{SaveEvery: 7, Observer: infer.Silent,
				Save: func(string, []int, *draws.Draws) error { return nil }}))

			dir := t.TempDir()
			program, batch := logistic(t, 2)
			o := infer.Options{Chains: 2, Warmup: 20, Draws: 30, Thin: 5, Seed: 3, Native: native.Require,
				Checkpoint: &infer.Checkpoint{Dir: dir, Every: 33}}
			again := o
			if size > 0 {
				o.Batches = must(infer.Minibatches(batch, infer.MinibatchOptions{Size: size, Seed: 5}))
				again.Batches = must(infer.Minibatches(batch, infer.MinibatchOptions{Size: size, Seed: 5}))
			}
			ctx, cancel := context.WithCancel(context.Background())
			o.Observer = infer.ObserverFunc(func(p infer.Progress) {
				if p.Step == 87 {
					cancel()
				}
			})
			_, err := infer.Run(ctx, program, m, o)
			require.ErrorIs(t, err, context.Canceled)
			again.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 33, Resume: true}
			resumed, err := infer.Run(context.Background(), program, m, again)
			require.NoError(t, err)
			same("resumed", resumed)
		}
	}
}

// A chain whose gradient is not finite is held where it is, and one that starts there ends the run.
func TestFusedHeldUpdates(t *testing.T) {
	// Below 0 the value of log θ − θ is NaN and its gradient finite.
	target := infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		theta := p.Get("theta")
		return theta.Log().Sub(theta).Sum(), nil
	}, 1)
	layout, err := infer.NewLayout(infer.Shapes{"theta": {1}})
	require.NoError(t, err)
	var last [][]float64
	for _, tier := range []native.Tier{native.Require, native.Eager} {
		start, err := infer.NewParams(layout, []float64{0.5, 1, 2})
		require.NoError(t, err)
		r, err := infer.Run(context.Background(), infer.Handwritten(target, start, nil), sgmcmc.SGLD{LR: infer.Constant(0.3)},
			infer.Options{Chains: 3, Warmup: infer.None, Draws: 1000, Thin: 1, Seed: 1, Native: tier})
		require.ErrorIs(t, err, infer.ErrNonFinite, "most updates are held")
		last = append(last, values(r.Last.Flat.T()))
		_, err = infer.Run(context.Background(), infer.Handwritten(target, start, nil), sgmcmc.SGLD{LR: infer.Constant(0.3)},
			infer.Options{Chains: 3, Warmup: infer.None, Draws: 1000, Thin: 5, Seed: 1, Native: tier})
		require.ErrorIs(t, err, infer.ErrNonFinite, "a chain that a draw finds there is held from then on")
		for c := range 3 {
			held := must(r.Unconstrained.Stat(draws.StatHeld, c))
			for i := 1; i < r.Unconstrained.Len(c); i++ {
				before, now := r.Unconstrained.Row(c, i-1)[0], r.Unconstrained.Row(c, i)[0]
				assert.Equal(t, before < 0, held[i] == 1, "chain %d, draw %d", c, i)
				assert.Equal(t, held[i] == 1, before == now)
			}
		}
		assert.Positive(t, r.Held)

		start, err = infer.NewParams(layout, []float64{0.5, -1, 2})
		require.NoError(t, err)
		_, err = infer.Run(context.Background(), infer.Handwritten(target, start, nil), sgmcmc.SGLD{LR: infer.Constant(0.3)},
			infer.Options{Chains: 3, Seed: 1, Native: tier})
		require.ErrorIs(t, err, infer.ErrNonFinite)
		assert.ErrorContains(t, err, "the log posterior of chain 1 is NaN")
	}
	within(t, last[1], last[0], 1e-12, "where the chains are held")
}
