package infer_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// methods are the methods of the other rooms, with everything switched on that has a state.
var methods = map[string]infer.Method{
	"SGLD": sgmcmc.SGLD{LR: infer.Polynomial(0.3, 1, 0.3), Temperature: infer.Constant(0.02), Beta: 0.1},
	"SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: infer.Constant(0.6), Temperature: infer.Linear(0, 0.02, 5, 15),
		Sigma: 1.5},
	"SGD":   optim.SGD{LR: infer.Cosine(0.3, 7), Momentum: 0.9, Nesterov: true, WeightDecay: 0.01},
	"Adam":  optim.Adam{LR: infer.Constant(0.05).Warmup(10)},
	"AdamW": optim.AdamW{LR: infer.Constant(0.05)},
}

// Two runs with the same arguments are bit-identical; with another seed they are not, where there are random numbers.
func TestRunIsRepeatable(t *testing.T) {
	m := newLogistic(30, 3)
	for name, method := range methods {
		t.Run(name, func(t *testing.T) {
			run := func(seed uint64, data infer.Batch, k int) *infer.Result {
				return ran(t, build(t, method, m.logPosterior), pointOf(t, m.layout(t), numbers(4*k, 0)...),
					minibatches(t, data, infer.MinibatchOptions{Size: 8, Seed: 5}),
					infer.Options{Warmup: 5, Draws: 10, Thin: 2, Seed: seed})
			}
			for _, k := range []int{1, 3} {
				first := run(1, m.batch(), k)
				sameResult(t, first, run(1, m.batch(), k))
				other := run(2, m.batch(), k)
				random := len(first.State.Save().Streams.Chains) > 0
				assert.Equal(t, random,
					fmt.Sprint(floats(first.State.Position().Flat)) != fmt.Sprint(floats(other.State.Position().Flat)))
			}
		})
	}
}

// Chain 3 of 64 and chain 3 of 4, from the same point with the same seed, agree after one update to 1e-12, with one and
// with two threads: its random numbers are (seed, chain)'s, and its gradient depends on its own row alone. The model is
// large enough for libtorch to split the work: 64 x 2000 numbers.
func TestChainsDoNotDependOnTheOthers(t *testing.T) {
	m := newLogistic(2000, 7)
	b := m.batch()
	defer func() { require.NoError(t, torch.SetThreads(runtime.NumCPU())) }()
	for name, method := range map[string]infer.Method{
		"SGLD":  sgmcmc.SGLD{LR: infer.Constant(0.4), Temperature: infer.Constant(1. / 2000)},
		"SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: infer.Constant(0.6), Temperature: infer.Constant(1. / 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			transform := build(t, method, m.logPosterior)
			start := numbers(64*8, 2)
			chain := func(k, threads int) map[string][]float64 {
				require.NoError(t, torch.SetThreads(threads))
				s, err := infer.Init(transform, pointOf(t, m.layout(t), start[:8*k]...), 17)
				require.NoError(t, err)
				next, info, err := transform.Update(s, b)
				require.NoError(t, err)
				out := map[string][]float64{"lp": info.LogPosterior[3:4], "norm": info.GradNorm[3:4]}
				for name, x := range next.Save().Tensors {
					out[name] = floats(x)[8*3 : 8*4]
				}
				return out
			}
			want := chain(4, 1)
			assert.NotEqual(t, start[8*3:8*4], want["params"], "the chain moved")
			for _, k := range []int{4, 64} {
				for _, threads := range []int{1, 2} {
					for name, v := range chain(k, threads) {
						assert.InDeltaSlice(t, want[name], v, 1e-12, "%s of %d chains, %d threads", name, k, threads)
					}
				}
			}
		})
	}
}

// States are values: two made at one point share no memory with it or each other, updating one twice with the same
// batch gives the same state twice, and leaves it as it was, bit for bit.
func TestStatesAreIndependent(t *testing.T) {
	m := newLogistic(12, 2)
	b := m.batch()
	for name, method := range methods {
		for _, k := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d chains", name, k), func(t *testing.T) {
				transform := build(t, method, m.logPosterior)
				p := pointOf(t, m.layout(t), numbers(3*k, 0)...)
				first, err := infer.Init(transform, p, 9)
				require.NoError(t, err)
				second, err := infer.Init(transform, p, 9)
				require.NoError(t, err)
				sameState(t, first, second)
				was := saved(first)

				// Overwriting the point and the second state does not reach the first.
				require.NoError(t, torch.CopyFrom(p.Flat, make([]float64, 3*k)))
				for _, x := range second.Save().Tensors {
					require.NoError(t, torch.CopyFrom(x, make([]float64, 3*k)))
				}
				assert.Equal(t, was, saved(first))

				// A few updates in, so that no buffer is zero.
				for range 3 {
					first, _, err = transform.Update(first, b)
					require.NoError(t, err)
				}
				was = saved(first)
				one, infoOne, err := transform.Update(first, b)
				require.NoError(t, err)
				assert.Equal(t, was, saved(first), "Update changed the state that it was given")
				two, infoTwo, err := transform.Update(first, b)
				require.NoError(t, err)
				sameState(t, one, two)
				sameBits(t, infoOne.LogPosterior, infoTwo.LogPosterior, "lp")
				assert.NotEqual(t, saved(one).Tensors["params"], was.Tensors["params"])

				// The two share no memory with each other or with what they came from.
				for _, x := range two.Save().Tensors {
					require.NoError(t, torch.CopyFrom(x, make([]float64, 3*k)))
				}
				assert.Equal(t, was, saved(first))
				assert.NotEqual(t, saved(two).Tensors["params"], saved(one).Tensors["params"])

				// Freeing the old state leaves the new one usable.
				infer.Free(first)
				_, _, err = transform.Update(one, b)
				assert.NoError(t, err)
			})
		}
	}
}

// A state of another method is refused by name, not misread.
func TestUpdateWithAStateOfAnotherMethod(t *testing.T) {
	m := newLogistic(4, 1)
	p := pointOf(t, m.layout(t), 0, 0)
	sgld, adam := build(t, methods["SGLD"], m.logPosterior), build(t, methods["Adam"], m.logPosterior)
	s, err := infer.Init(sgld, p, 0)
	require.NoError(t, err)
	_, _, err = adam.Update(s, m.batch())
	assert.EqualError(t, err,
		"optim.Adam: the state is a sgmcmc.SGLDState, expected optim.AdamState: it was made by another method")
	_, _, err = sgld.Update(nil, m.batch())
	assert.EqualError(t, err,
		"sgmcmc.SGLD: the state is a <nil>, expected sgmcmc.SGLDState: it was made by another method")
}

// The seed of infer.Init reaches the streams, one for each chain; the transform's own Init has seed 0.
func TestInit(t *testing.T) {
	m := newLogistic(4, 1)
	sgld := build(t, sgmcmc.SGLD{LR: infer.Constant(1)}, m.logPosterior)
	p := pointOf(t, m.layout(t), 0, 0, 0, 0, 0, 0)
	s, err := infer.Init(sgld, p, 5)
	require.NoError(t, err)
	assert.Equal(t, torch.Streams{Seed: 5, Chains: []uint64{0, 1, 2}}, s.Save().Streams)
	s, err = sgld.Init(p)
	require.NoError(t, err)
	assert.Equal(t, torch.Streams{Seed: 0, Chains: []uint64{0, 1, 2}}, s.Save().Streams)
	// A transform without random numbers takes any seed.
	s, err = infer.Init(counter{}, p, 5)
	require.NoError(t, err)
	assert.Zero(t, s.Steps())
}

func TestSavedTensor(t *testing.T) {
	x := vec([]float64{1})
	s := infer.Saved{Tensors: infer.Tensors{"params": x}}
	got, err := s.Tensor("params")
	require.NoError(t, err)
	assert.Same(t, x.T(), got.T())
	_, err = s.Tensor("momenta")
	assert.EqualError(t, err, `the saved state has no "momenta": it is of another method: checkpoint cannot be used`)
	assert.ErrorIs(t, err, infer.ErrCheckpoint)
}
