package sgmcmc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// methods are the methods of the tests of what they have in common.
func methods() map[string]infer.Method {
	lr, temperature := infer.Polynomial(0.2, 1, 0.33), infer.Linear(1, 0.5, 0, 10)
	return map[string]infer.Method{
		"SGLD":  sgmcmc.SGLD{LR: lr, Temperature: temperature, Beta: 0.3},
		"SGHMC": sgmcmc.SGHMC{LR: lr, Temperature: temperature, Beta: 0.3, Sigma: 1.3, Alpha: infer.Constant(1.5)},
	}
}

// same asserts that two states have the same bits in all that the next update depends on.
func same(t testing.TB, want, got infer.State, what string) {
	t.Helper()
	a, b := want.Save(), got.Save()
	assert.Equal(t, a.Steps, b.Steps, what)
	assert.Equal(t, a.Streams, b.Streams, what)
	require.Len(t, b.Tensors, len(a.Tensors), what)
	for name, x := range a.Tensors {
		identical(t, values(x), values(b.Tensors[name]), what+": "+name)
	}
}

// An update changes nothing that it is given: replayed from old states it gives the same bits, in any order.
func TestUpdatesCanBeReplayed(t *testing.T) {
	q := newQuartic()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, q.logPosterior)
			batch := q.batch()
			states := []infer.State{begin[infer.State](t, transform, params(q.layout, spread(3*q.layout.Dim()), 3), 5)}
			for range 60 {
				next, _ := update(t, transform, states[len(states)-1], batch)
				states = append(states, next)
			}
			for i := len(states) - 2; i >= 0; i-- {
				next, _ := update(t, transform, states[i], batch)
				same(t, states[i+1], next, name("update %d", i))
			}
			identical(t, q.c, values(batch["c"]), "the batch")
		})
	}
}

// Two states at one point have nothing in common, with each other or with the point.
func TestStatesDoNotShareMemory(t *testing.T) {
	q := newQuartic()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, q.logPosterior)
			start := params(q.layout, spread(q.layout.Dim()), 0)
			a, b := begin[infer.State](t, transform, start, 5), begin[infer.State](t, transform, start, 5)
			same(t, a, b, "two states of one seed")
			for _, x := range b.Save().Tensors {
				require.NoError(t, torch.CopyFrom(x, make([]float64, q.layout.Dim())))
			}
			identical(t, spread(q.layout.Dim()), values(start.Flat), "the point after the other state was overwritten")
			infer.Free(b)
			require.NoError(t, torch.CopyFrom(start.Flat, make([]float64, q.layout.Dim())))
			identical(t, spread(q.layout.Dim()), values(a.Position().Flat), "the state after the point was overwritten")
			assert.Zero(t, a.Steps())

			other := begin[infer.State](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 6)
			x, _ := update(t, transform, a, q.batch())
			y, _ := update(t, transform, other, q.batch())
			if what == "SGLD" {
				assert.NotEqual(t, values(x.Position().Flat), values(y.Position().Flat), "another seed is other noise")
			} else {
				assert.NotEqual(t, values(a.Save().Tensors["momenta"]), values(other.Save().Tensors["momenta"]),
					"another seed is other momenta")
			}
		})
	}
}

// A saved state goes on with the same bits.
func TestRestoredStatesGoOn(t *testing.T) {
	q := newQuartic()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, q.logPosterior)
			s, batch := begin[infer.State](t, transform, params(q.layout, spread(2*q.layout.Dim()), 2), 5), q.batch()
			for range 7 {
				s, _ = update(t, transform, s, batch)
			}
			saved := infer.Saved{Steps: s.Save().Steps, Streams: s.Save().Streams, Tensors: infer.Tensors{}}
			for name, x := range s.Save().Tensors {
				saved.Tensors[name] = vector(values(x), 2, int64(q.layout.Dim()))
			}
			restored, err := build(t, method, q.logPosterior).(infer.Restorer).Restore(q.layout, saved)
			require.NoError(t, err)
			for range 7 {
				s, _ = update(t, transform, s, batch)
				restored, _ = update(t, transform, restored, batch)
			}
			same(t, s, restored, "after 7 more updates")
		})
	}
}

// A chain's noise depends on (seed, chain) alone, so that chain 3 of 64 and chain 3 of 4 are the same chain. Only the
// sums of a batched gradient may be rounded otherwise.
func TestAChainDoesNotDependOnTheOthers(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, q.logPosterior)
			all := spread(64 * d)
			many, few := begin[infer.State](t, transform, params(q.layout, all, 64), 9), begin[infer.State](t,
				transform, params(q.layout, all[:4*d], 4), 9)
			alone, err := transform.(infer.Seeded).InitStreams(params(q.layout, all[3*d:4*d], 0), torch.Streams{Seed: 9,
				Chains: []uint64{3}})
			require.NoError(t, err)
			for step := range 20 {
				for name, x := range few.Save().Tensors {
					want := values(x)[3*d : 4*d]
					within(t, want, values(many.Save().Tensors[name])[3*d:4*d], golden, name+" of chain 3 of 64")
					if !within(t, want, values(alone.Save().Tensors[name]), golden, name+" of chain 3 alone") {
						t.Fatalf("before update %d", step)
					}
				}
				many, _ = update(t, transform, many, q.batch())
				few, _ = update(t, transform, few, q.batch())
				alone, _ = update(t, transform, alone, q.batch())
			}
		})
	}
}

// logarithms has a density that is not a number where an element is negative, and of −∞ where one is 0.
func logarithms(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return torch.Of(p.Flat.MustLog(false).MustSum(gotch.Double, false)), nil
}

// roots is −√(x²), whose value is finite everywhere and whose gradient is 0/0 at 0.
func roots(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
	return torch.Of(p.Flat.MustSquare(false).MustSqrt(false).MustNeg(false).MustSum(gotch.Double, false)), nil
}

// A chain whose density or gradient is not finite stays where it is and is flagged. The others move as if
// it were not there.
func TestChainsThatAreNotFiniteAreHeld(t *testing.T) {
	l := layout(infer.Shapes{"x": {2}})
	good := []float64{0.5, 2}
	for _, c := range []struct {
		what    string
		f       infer.LogPosterior
		bad     []float64
		density float64
		norm    float64
	}{
		{"the density is NaN", logarithms, []float64{-1, 2}, nan, math.Sqrt(1 + 0.25)},
		{"the density is infinite", logarithms, []float64{0, 2}, math.Inf(-1), math.Inf(1)},
		{"only the gradient is NaN", roots, []float64{0, 2}, -2, nan},
	} {
		for what, method := range methods() {
			t.Run(what+", "+c.what, func(t *testing.T) {
				transform := build(t, method, c.f)
				healthy := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...),
					good...), good...), 3), 2)
				sick := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...),
					c.bad...), good...), 3), 2)
				want, info := update(t, transform, healthy, nil)
				require.Nil(t, info.Diverged)
				got, info := update(t, transform, sick, nil)
				assert.Equal(t, []bool{false, true, false}, info.Diverged)
				for what, v := range map[string][2]float64{"density": {c.density, info.LogPosterior[1]},
					"norm": {c.norm, info.GradNorm[1]}} {
					assert.Truef(t, v[0] == v[1] || math.IsNaN(v[0]) && math.IsNaN(v[1]) ||
						math.Abs(v[0]-v[1]) < golden, "%s: want %v, got %v", what, v[0], v[1])
				}
				for name, x := range got.Save().Tensors {
					identical(t, values(sick.Save().Tensors[name])[2:4], values(x)[2:4],
						name+" of the chain that is held")
					healthy := values(want.Save().Tensors[name])
					within(t, healthy[:2], values(x)[:2], golden, name+" of chain 0")
					within(t, healthy[4:], values(x)[4:], golden, name+" of chain 2")
				}
				assert.NotEqual(t, values(sick.Position().Flat)[:2], values(got.Position().Flat)[:2], "chain 0 moves")
				assert.Equal(t, int64(1), got.Steps())

				single := begin[infer.State](t, transform, params(l, c.bad, 0), 2)
				after, info := update(t, transform, single, nil)
				assert.Equal(t, []bool{true}, info.Diverged)
				for name, x := range after.Save().Tensors {
					identical(t, values(single.Save().Tensors[name]), values(x), name+" of a single point")
				}
			})
		}
	}
}

// A chain that was held goes on when its density is finite again, here with the next batch.
func TestAHeldChainGoesOn(t *testing.T) {
	q := newQuartic()
	for what, method := range methods() {
		t.Run(what, func(t *testing.T) {
			transform := build(t, method, q.logPosterior)
			s := begin[infer.State](t, transform, params(q.layout, spread(2*q.layout.Dim()), 2), 2)
			held, info := update(t, transform, s, infer.Batch{"c": vector([]float64{1, 1, nan, 1, 1, 1}, 2, 3)})
			assert.Equal(t, []bool{true, true}, info.Diverged)
			identical(t, values(s.Position().Flat), values(held.Position().Flat), "the held chains")
			next, info := update(t, transform, held, q.batch())
			assert.Nil(t, info.Diverged)
			// SGHMC's momenta move the point, SGLD's gradient: either way it is somewhere else.
			assert.NotEqual(t, values(held.Position().Flat), values(next.Position().Flat))
			for _, v := range values(next.Position().Flat) {
				assert.False(t, math.IsNaN(v))
			}
		})
	}
}

// States are in the type of the point.
func TestStatesKeepTheTypeOfThePoint(t *testing.T) {
	q := newQuartic()
	batch := infer.Batch{"c": must(torch.To(q.batch()["c"], gotch.CPU, gotch.Float))}
	for what, method := range methods() {
		transform := build(t, method, q.logPosterior)
		start := must(params(q.layout, spread(3*q.layout.Dim()), 3).To(gotch.CPU, gotch.Float))
		s := begin[infer.State](t, transform, start, 2)
		for range 3 {
			for name, x := range s.Save().Tensors {
				assert.Equal(t, gotch.Float, must(torch.DTypeOfTensor(x)), "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, batch)
		}
	}
}

// A point, or momenta, that gradients are recorded for must not make the states parts of a graph: it would grow with
// every update and hold all states in memory.
func TestStatesAreNotPartOfAGraph(t *testing.T) {
	q := newQuartic()
	start := params(q.layout, spread(q.layout.Dim()), 0)
	start.Flat = must(torch.Leaf(start.Flat))
	all := methods()
	all["SGHMC with given momenta"] = sgmcmc.SGHMC{LR: infer.Constant(0.1), Momenta: must(torch.Leaf(start.Flat))}
	for what, method := range all {
		transform := build(t, method, q.logPosterior)
		s := begin[infer.State](t, transform, start, 2)
		for range 2 {
			for name, x := range s.Save().Tensors {
				recorded, err := x.RequiresGrad()
				require.NoError(t, err)
				assert.False(t, recorded, "%s of %s", name, what)
			}
			s, _ = update(t, transform, s, q.batch())
		}
	}
}
