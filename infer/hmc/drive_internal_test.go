package hmc

import (
	"context"
	"errors"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onDensity is NUTS on a density in plain Go, in the place of the target's.
type onDensity struct {
	NUTS
	density kernel.Density
}

func (m onDensity) Build(target infer.Target) (infer.Transform, error) {
	built, err := m.config().build(target)
	if err != nil {
		return nil, err
	}
	return driveOn{built.(*transform), m.density}, nil
}

type driveOn struct {
	*transform
	density kernel.Density
}

func (d driveOn) Drive(ctx context.Context, job infer.Job) (any, error) {
	return d.drive(ctx, job, d.density)
}

// spread is a Gaussian of variances from 1 to 10 that several goroutines may call.
type spread struct{ inverse []float64 }

func (s spread) Dim() int         { return len(s.inverse) }
func (s spread) Concurrent() bool { return true }

func (s spread) ValueAndGrad(x, logp, grad []float64) error {
	d := len(s.inverse)
	for k := range logp {
		x, grad := x[k*d:(k+1)*d], grad[k*d:(k+1)*d]
		sum := 0.0
		for i, v := range s.inverse {
			g := -x[i] * v
			grad[i] = g
			sum += x[i] * g
		}
		logp[k] = 0.5 * sum
	}
	return nil
}

// spreadProgram has the density and a program of its dimension, whose own target is not evaluated.
func spreadProgram(tb testing.TB, d int) (spread, infer.Program) {
	tb.Helper()
	density := spread{make([]float64, d)}
	for i := range density.inverse {
		density.inverse[i] = 1 / (1 + 9*float64(i)/float64(d-1))
	}
	layout, err := infer.NewLayout(infer.Shapes{"x": {d}})
	require.NoError(tb, err)
	start, err := infer.NewParams(layout, make([]float64, d))
	require.NoError(tb, err)
	return density, infer.Handwritten(infer.Sum(func(infer.Params, infer.Batch) (torch.Tensor, infer.Aux) {
		panic(errors.New("the target is not evaluated"))
	}, 1), start, nil)
}

// A run through the door allocates nothing for a transition or a draw, also where an observer looks on: a longer run
// makes as many objects as a short one.
func TestDrawsAllocateNothing(t *testing.T) {
	density, program := spreadProgram(t, 10)
	for _, observer := range []infer.Observer{infer.Silent, infer.ObserverFunc(func(infer.Progress) {})} {
		allocations := func(draws int) float64 {
			return testing.AllocsPerRun(1, func() {
				r, err := infer.Run(t.Context(), program, onDensity{density: density},
					infer.Options{Chains: 2, Warmup: 100, Draws: draws, Observer: observer})
				require.NoError(t, err)
				require.Equal(t, 2*draws, r.Draws.Total())
			})
		}
		assert.InDelta(t, allocations(200), allocations(3000), 30)
	}
}

// A snapshot that is not due is not made.
func TestSnapshotsThatAreDue(t *testing.T) {
	density, program := spreadProgram(t, 3)
	tr, err := NUTS{}.Build(program.Target())
	require.NoError(t, err)
	asked, made := 0, 0
	start, err := program.Start(nil, 2, 0)
	require.NoError(t, err)
	start, err = start.Repeat(2)
	require.NoError(t, err)
	_, err = tr.(*transform).drive(t.Context(), infer.Job{Layout: start.Layout, Start: start, Chains: 2, Warmup: 20,
		Draws: 40, Thin: 1, Every: 10, Record: func(infer.Transition) error { return nil },
		Due:      func() bool { asked++; return asked%2 == 1 },
		Snapshot: func(state []byte) error { made++; return nil },
	}, density)
	require.NoError(t, err)
	assert.Equal(t, 5, asked, "before the transitions 10, 20, 30, 40 and 50")
	assert.Equal(t, 3, made)
}
