package sgmcmc_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// See package infertest.
var (
	values    = infertest.Values
	vector    = infertest.Vector
	layout    = infertest.Layout
	params    = infertest.Params
	build     = infertest.Build
	within    = infertest.Within
	identical = infertest.Identical
	spread    = infertest.Spread
	name      = infertest.Name
)

func must[T any](v T, err error) T { return infertest.Must(v, err) }

func begin[S infer.State](t testing.TB, transform infer.Transform, p infer.Params, seed uint64) S {
	t.Helper()
	return infertest.Begin[S](t, transform, p, seed)
}

func update[S infer.State](t testing.TB, transform infer.Transform, s S, b infer.Batch) (S, infer.Info) {
	t.Helper()
	return infertest.Update(t, transform, s, b)
}

// run drives a transform for a number of updates and shows every state to observe. The result's state is freed.
func run(t testing.TB, transform infer.Transform, p infer.Params, batches infer.Batches, steps int, seed uint64,
	observe func(infer.State)) {
	t.Helper()
	result, err := infertest.Run(context.Background(), transform, p, batches,
		infer.Options{Warmup: steps, Draws: infer.None, Seed: seed,
			Observer: infer.ObserverFunc(func(p infer.Progress) { observe(p.State) })})
	require.NoError(t, err)
	require.Zero(t, result.Held, "a chain met a density or a gradient that is not finite")
	infer.Free(result.State)
}

// field asserts that err is a [infer.FieldError] of a field, with exactly this text, and an ErrConfig.
func field(t testing.TB, err error, name, text string) {
	t.Helper()
	var f *infer.FieldError
	require.ErrorAs(t, err, &f)
	assert.Equal(t, name, f.Field)
	require.EqualError(t, err, text)
	require.ErrorIs(t, err, infer.ErrConfig)
}

// scaled is c·x.
func scaled(c float64, x []float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= c
	}
	return out
}
