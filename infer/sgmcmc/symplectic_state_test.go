package sgmcmc_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestNewcomersCanBeReplayed(t *testing.T) {
	q := newQuartic()
	for what, method := range newcomers() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, fitted(method, q.layout), q.logPosterior)
			batch := q.batch()
			states := []infer.State{begin[infer.State](t, transform, params(q.layout, spread(3*q.layout.Dim()), 3), 5)}
			for range 40 {
				next, _ := update(t, transform, states[len(states)-1], batch)
				states = append(states, next)
			}
			for i := len(states) - 2; i >= 0; i-- {
				next, _ := update(t, transform, states[i], batch)
				same(t, states[i+1], next, name("update %d", i))
			}
		})
	}
}

func TestNewcomersDoNotShareMemory(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	for what, m := range newcomers() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, fitted(m, q.layout), q.logPosterior)
			start := params(q.layout, spread(d), 0)
			a, b := begin[infer.State](t, transform, start, 5), begin[infer.State](t, transform, start, 5)
			same(t, a, b, "two states of one seed")
			infer.Free(b)
			require.NoError(t, torch.CopyFrom(start.Flat, make([]float64, d)))
			identical(t, spread(d), values(a.Position().Flat), "the state after the point was overwritten")
			other := begin[infer.State](t, transform, params(q.layout, spread(d), 0), 6)
			assert.NotEqual(t, values(a.Save().Tensors["momenta"]), values(other.Save().Tensors["momenta"]),
				"another seed is other momenta")

			// A state outlives the one that it came from, and the scope that it was made in.
			var next infer.State
			require.NoError(t, torch.Do(func(scope *torch.Scope) error {
				s := begin[infer.State](t, transform, params(q.layout, spread(d), 0), 7)
				next, _ = update(t, transform, s, q.batch())
				method.Keep(scope, next)
				infer.Free(s)
				return nil
			}))
			next, _ = update(t, transform, next, q.batch())
			assert.Equal(t, int64(2), next.Steps())
		})
	}
}

// A run that is cancelled and resumed from its checkpoint ends with the bits of the run that was not.
func TestNewcomersResumeBitForBit(t *testing.T) {
	q := newQuartic()
	for what, method := range newcomers() {
		for _, chains := range []int{0, 3} {
			t.Run(name("%s, %d chains", what, chains), func(t *testing.T) {
				start1 := func(ctx context.Context, dir string, observe func(infer.Progress)) (*infer.Result, error) {
					c := infer.Options{Warmup: 20, Draws: 13, Thin: 3, Seed: 6, Observer: infer.ObserverFunc(observe)}
					if dir != "" {
						c.Checkpoint = &infer.Checkpoint{Dir: dir, Every: 1000, Resume: true, Model: "quartic"}
					}
					return infertest.Run(ctx, build(t, fitted(method, q.layout), q.logPosterior),
						params(q.layout, spread(max(chains, 1)*q.layout.Dim()), chains), infer.Full(q.batch()), c)
				}
				quiet := func(infer.Progress) {}
				want, err := start1(context.Background(), "", quiet)
				require.NoError(t, err)
				for _, at := range []int64{1, 20, 34, 58} {
					dir := filepath.Join(t.TempDir(), "run")
					ctx, cancel := context.WithCancel(context.Background())
					_, err := start1(ctx, dir, func(p infer.Progress) {
						if p.Step == at {
							cancel()
						}
					})
					require.ErrorIs(t, err, context.Canceled)
					got, err := start1(context.Background(), dir, quiet)
					require.NoError(t, err)
					same(t, want.State, got.State, name("the state, cancelled at %d", at))
					require.Equal(t, 13, got.Draws.MinLen())
					assert.Equal(t, want.Draws.Stats(), got.Draws.Stats())
					for k := range got.Draws.Chains() {
						for i := range 13 {
							identical(t, want.Draws.Row(k, i), got.Draws.Row(k, i),
								name("draw %d of chain %d, cancelled at %d", i, k, at))
						}
					}
				}
			})
		}
	}
}

// A state that was saved without its momenta, or thermostat, is of another method.
func TestNewcomersRefuseOtherStates(t *testing.T) {
	q := newQuartic()
	start := params(q.layout, spread(q.layout.Dim()), 0)
	sgld := begin[infer.State](t, build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, q.logPosterior), start, 1)
	for what, method := range newcomers() {
		transform := build(t, fitted(method, q.layout), q.logPosterior)
		_, _, err := transform.Update(sgld, q.batch())
		require.ErrorContains(t, err, "the state is a sgmcmc.SGLDState, expected sgmcmc.", what)
		restorer := transform.(infer.Restorer)
		saved := begin[infer.State](t, transform, start, 1).Save()
		for missing := range saved.Tensors {
			part := infer.Saved{Tensors: infer.Tensors{}}
			for name, x := range saved.Tensors {
				if name != missing {
					part.Tensors[name] = x
				}
			}
			_, err := restorer.Restore(q.layout, part)
			require.ErrorIs(t, err, infer.ErrCheckpoint, "%s without %s", what, missing)
		}
		_, err = transform.(infer.Seeded).InitStreams(start, torch.NewStreams(0, 3))
		require.ErrorContains(t, err, ": 3 random streams for 1 chains: there must be one for each", what)
	}
}

// A chain's noise depends on (seed, chain) alone.
func TestNewcomersChainsDoNotDependOnTheOthers(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	for what, method := range newcomers() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, fitted(method, q.layout), q.logPosterior)
			all := spread(16 * d)
			many := begin[infer.State](t, transform, params(q.layout, all, 16), 9)
			alone, err := transform.(infer.Seeded).InitStreams(params(q.layout, all[3*d:4*d], 0), torch.Streams{Seed: 9,
				Chains: []uint64{3}})
			require.NoError(t, err)
			for range 20 {
				for name, x := range alone.Save().Tensors {
					v := values(x)
					n := len(v)
					within(t, v, values(many.Save().Tensors[name])[3*n:4*n], golden, name+" of chain 3 of 16")
				}
				many, _ = update(t, transform, many, q.batch())
				alone, _ = update(t, transform, alone, q.batch())
			}
		})
	}
}

// A chain whose density or gradient is not finite stays where it is, momenta and thermostat too, and is flagged.
func TestNewcomersHoldChainsThatAreNotFinite(t *testing.T) {
	l := layout(infer.Shapes{"x": {2}})
	good, bad := []float64{0.5, 2}, []float64{-1, 2}
	for what, method := range newcomers() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, fitted(method, l), logarithms)
			healthy := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...), good...),
				good...), 3), 2)
			sick := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...), bad...),
				good...), 3), 2)
			want, info := update(t, transform, healthy, nil)
			require.Nil(t, info.Diverged)
			got, info := update(t, transform, sick, nil)
			assert.Equal(t, []bool{false, true, false}, info.Diverged)
			assert.True(t, math.IsNaN(info.LogPosterior[1]))
			for name, x := range got.Save().Tensors {
				n := len(values(x)) / 3
				identical(t, values(sick.Save().Tensors[name])[n:2*n], values(x)[n:2*n],
					name+" of the chain that is held")
				within(t, values(want.Save().Tensors[name])[:n], values(x)[:n], golden, name+" of chain 0")
				within(t, values(want.Save().Tensors[name])[2*n:], values(x)[2*n:], golden, name+" of chain 2")
			}
			single := begin[infer.State](t, transform, params(l, bad, 0), 2)
			after, info := update(t, transform, single, nil)
			assert.Equal(t, []bool{true}, info.Diverged)
			for name, x := range after.Save().Tensors {
				identical(t, values(single.Save().Tensors[name]), values(x), name+" of a single point")
			}
		})
	}
}

// States are in the type of the point, and not parts of a graph.
func TestNewcomersKeepTheTypeOfThePoint(t *testing.T) {
	q := newQuartic()
	batch := infer.Batch{"c": must(torch.To(q.batch()["c"], gotch.CPU, gotch.Float))}
	for what, method := range newcomers() {
		transform := build(t, fitted(method, q.layout), q.logPosterior)
		start := must(params(q.layout, spread(3*q.layout.Dim()), 3).To(gotch.CPU, gotch.Float))
		start.Flat = must(torch.Leaf(start.Flat))
		s := begin[infer.State](t, transform, start, 2)
		for range 3 {
			for name, x := range s.Save().Tensors {
				assert.Equal(t, gotch.Float, must(torch.DTypeOfTensor(x)), "%s of %s", name, what)
				recorded, err := x.RequiresGrad()
				require.NoError(t, err)
				assert.False(t, recorded, "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, batch)
		}
	}
}

// Momenta that are given are taken as they are, for one chain or all; what does not fit is an error that says so.
func TestNewcomersTakeGivenMomenta(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	lr, row, all := infer.Constant(0.1), scaled(3, spread(d)), scaled(2, spread(4*d))
	var repeated []float64
	for range 4 {
		repeated = append(repeated, row...)
	}
	for prefix, with := range map[string]func(flat []float64, shape ...int64) infer.Method{
		"sgmcmc.SGNHT": func(flat []float64, shape ...int64) infer.Method {
			return sgmcmc.SGNHT{LR: lr, Momenta: vector(flat, shape...)}
		},
		"sgmcmc.BAOA": func(flat []float64, shape ...int64) infer.Method {
			return sgmcmc.BAOA{LR: lr, Momenta: vector(flat, shape...)}
		},
		"sgmcmc.SymplecticSGHMC": func(flat []float64, shape ...int64) infer.Method {
			return sgmcmc.SymplecticSGHMC{LR: lr, Momenta: vector(flat, shape...)}
		},
	} {
		start := params(q.layout, spread(4*d), 4)
		s := begin[infer.State](t, build(t, with(row, int64(d)), q.logPosterior), start, 1)
		identical(t, repeated, values(s.Save().Tensors["momenta"]), prefix)
		s = begin[infer.State](t, build(t, with(all, 4, int64(d)), q.logPosterior), start, 1)
		identical(t, all, values(s.Save().Tensors["momenta"]), prefix)
		assert.Zero(t, s.Save().Streams.Offset, "nothing is drawn for given momenta")

		_, err := build(t, with(all[:2*d], 2, int64(d)), q.logPosterior).Init(start)
		field(t, err, "Momenta", prefix+": Momenta is of shape [2 9]: it must be of the params' shape, [4 9], or "+
			"of shape [9] for all chains alike")
		_, err = build(t, with(spread(8), 8), q.logPosterior).Init(params(q.layout, spread(d), 0))
		field(t, err, "Momenta", prefix+": Momenta is of shape [8]: it must be of the params' shape, [9]")
		wrong := spread(d)
		wrong[4] = math.Inf(-1)
		_, err = build(t, with(wrong, int64(d)), q.logPosterior).Init(params(q.layout, spread(d), 0))
		require.EqualError(t, err, prefix+": Momenta: w[0,1] of chain 0 is -Inf at the start: not finite")
	}
}
