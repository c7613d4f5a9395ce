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

// adaptive are PSGLD and ATMC, whose states have more than a point and momenta.
func adaptive() map[string]infer.Method {
	lr, temperature := infer.Polynomial(0.2, 1, 0.33), infer.Linear(1, 0.5, 0, 10)
	return map[string]infer.Method{
		"PSGLD":             sgmcmc.PSGLD{LR: lr, Temperature: temperature, Decay: 0.9, Eps: 0.1},
		"ATMC":              sgmcmc.ATMC{LR: lr, Temperature: temperature, Friction: infer.Constant(0.8), Mass: 1.3},
		"ATMC relativistic": sgmcmc.ATMC{LR: lr, Temperature: temperature, Speed: 0.7, Xi: 0.2},
	}
}

func TestAdaptiveMethodsCanBeReplayed(t *testing.T) {
	q := newQuartic()
	for what, method := range adaptive() {
		transform := build(t, method, q.logPosterior)
		batch := q.batch()
		states := []infer.State{begin[infer.State](t, transform, params(q.layout, spread(3*q.layout.Dim()), 3), 5)}
		for range 30 {
			next, _ := update(t, transform, states[len(states)-1], batch)
			states = append(states, next)
		}
		for i := len(states) - 2; i >= 0; i-- {
			next, _ := update(t, transform, states[i], batch)
			same(t, states[i+1], next, name("%s, update %d", what, i))
		}
		other := begin[infer.State](t, transform, params(q.layout, spread(3*q.layout.Dim()), 3), 6)
		other, _ = update(t, transform, other, batch)
		other, _ = update(t, transform, other, batch)
		assert.NotEqual(t, values(states[2].Position().Flat), values(other.Position().Flat),
			"another seed is other noise")
	}
}

func TestAdaptiveMethodsRestore(t *testing.T) {
	q := newQuartic()
	for what, method := range adaptive() {
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
		same(t, s, restored, what)

		for name := range saved.Tensors {
			part := saved
			part.Tensors = infer.Tensors{}
			for other, x := range saved.Tensors {
				if other != name {
					part.Tensors[other] = x
				}
			}
			_, err := transform.(infer.Restorer).Restore(q.layout, part)
			require.ErrorIs(t, err, infer.ErrCheckpoint, what)
			require.ErrorContains(t, err, name)
		}
	}
}

// A chain of 64 is the same chain as one of 4, and as one alone.
func TestAdaptiveChainsDoNotDependOnTheOthers(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	for what, method := range adaptive() {
		transform := build(t, method, q.logPosterior)
		all := spread(64 * d)
		many, few := begin[infer.State](t, transform, params(q.layout, all, 64), 9), begin[infer.State](t, transform,
			params(q.layout, all[:4*d], 4), 9)
		alone, err := transform.(infer.Seeded).InitStreams(params(q.layout, all[3*d:4*d], 0), torch.Streams{Seed: 9,
			Chains: []uint64{3}})
		require.NoError(t, err)
		for range 20 {
			many, _ = update(t, transform, many, q.batch())
			few, _ = update(t, transform, few, q.batch())
			alone, _ = update(t, transform, alone, q.batch())
		}
		for name, x := range few.Save().Tensors {
			want := values(x)[3*d : 4*d]
			within(t, want, values(many.Save().Tensors[name])[3*d:4*d], 1e-11, what+": "+name+" of chain 3 of 64")
			within(t, want, values(alone.Save().Tensors[name]), 1e-11, what+": "+name+" of chain 3 alone")
		}
	}
}

// A chain whose density or gradient is not finite stays as it is, with all that it has learnt; the others go on.
func TestAdaptiveMethodsHoldChains(t *testing.T) {
	l := layout(infer.Shapes{"x": {2}})
	good := []float64{0.5, 2}
	for what, method := range adaptive() {
		for _, c := range []struct {
			f   infer.LogPosterior
			bad []float64
		}{{logarithms, []float64{-1, 2}}, {logarithms, []float64{0, 2}}, {roots, []float64{0, 2}}} {
			transform := build(t, method, c.f)
			healthy := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...), good...),
				good...), 3), 2)
			sick := begin[infer.State](t, transform, params(l, append(append(append([]float64{}, good...), c.bad...),
				good...), 3), 2)
			want, _ := update(t, transform, healthy, nil)
			got, info := update(t, transform, sick, nil)
			assert.Equal(t, []bool{false, true, false}, info.Diverged)
			for name, x := range got.Save().Tensors {
				identical(t, values(sick.Save().Tensors[name])[2:4], values(x)[2:4],
					what+": "+name+" of the chain that is held")
				healthy := values(want.Save().Tensors[name])
				within(t, healthy[:2], values(x)[:2], golden, what+": "+name+" of chain 0")
				within(t, healthy[4:], values(x)[4:], golden, what+": "+name+" of chain 2")
			}
			assert.NotEqual(t, values(sick.Position().Flat)[:2], values(got.Position().Flat)[:2], "chain 0 moves")
		}
	}
}

// States are in the type of the point, and outside any graph, also when the point and the momenta are in one.
func TestAdaptiveStatesKeepTypeAndNoGraph(t *testing.T) {
	q := newQuartic()
	all := adaptive()
	all["ATMC with given momenta"] = sgmcmc.ATMC{LR: infer.Constant(0.1),
		Momenta: must(torch.Leaf(vector(spread(q.layout.Dim()))))}
	batch := infer.Batch{"c": must(torch.To(q.batch()["c"], gotch.CPU, gotch.Float))}
	for what, method := range all {
		transform := build(t, method, q.logPosterior)
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
		for _, v := range values(s.Position().Flat) {
			assert.False(t, math.IsNaN(v))
		}
	}
}

func TestAdaptiveMethodsRefuse(t *testing.T) {
	q := newQuartic()
	d := q.layout.Dim()
	start := params(q.layout, spread(d), 0)
	foreign := begin[infer.State](t, build(t, sgmcmc.SGLD{LR: infer.Constant(0.1)}, q.logPosterior), start, 1)
	bad := spread(2 * d)
	bad[d+2] = nan
	for what, method := range adaptive() {
		prefix := "sgmcmc." + what
		if what != "PSGLD" {
			prefix = "sgmcmc.ATMC"
		}
		transform := build(t, method, q.logPosterior)
		_, _, err := transform.Update(foreign, q.batch())
		require.EqualError(t, err,
			prefix+": the state is a sgmcmc.SGLDState, expected "+prefix+"State: it was made by another method")
		_, err = transform.Init(params(q.layout, bad, 2))
		require.EqualError(t, err, prefix+": b of chain 1 is NaN at the start: not finite")
		_, err = transform.(infer.Seeded).InitStreams(params(q.layout, spread(2*d), 2), torch.NewStreams(0, 3))
		require.EqualError(t, err,
			prefix+": 3 random streams for 2 chains: there must be one for each: invalid configuration")
		_, err = method.Build(infer.Target{})
		require.EqualError(t, err, prefix+": the log posterior is nil: invalid configuration")
		s, err := transform.Init(start)
		require.NoError(t, err)
		_, _, err = transform.Update(s, nil)
		require.ErrorContains(t, err, prefix+
			`: log posterior: the model asked for batch tensor "c", which does not exist; there are: []`)
	}
}
