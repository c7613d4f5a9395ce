package sgmcmc_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// values are the elements of a tensor.
func values(x *ts.Tensor) []float64 { return must(torch.ToSlice[float64](x)) }

// vector is a float64 tensor; without a shape it has one dimension.
func vector(v []float64, shape ...int64) *ts.Tensor { return must(torch.FromSlice(v, shape...)) }

// layout is the layout of the given sites.
func layout(shapes infer.Shapes) *infer.Layout { return must(infer.NewLayout(shapes)) }

// params is a point; with rows > 0 it has a chain axis of that length, also when that is 1.
func params(l *infer.Layout, flat []float64, rows int) infer.Params {
	shape := []int64{int64(l.Dim())}
	if rows > 0 {
		shape = []int64{int64(rows), int64(l.Dim())}
	}
	return infer.Params{Layout: l, Flat: vector(flat, shape...)}
}

// build is a transform of a valid configuration.
func build(t testing.TB, m infer.Method, f infer.LogPosterior) infer.Transform {
	t.Helper()
	transform, err := m.Build(f)
	require.NoError(t, err)
	return transform
}

// begin is the state of a transform at p, with a stream for each chain.
func begin[S infer.State](t testing.TB, transform infer.Transform, p infer.Params, seed uint64) S {
	t.Helper()
	s, err := infer.Init(transform, p, seed)
	require.NoError(t, err)
	state, ok := s.(S)
	require.Truef(t, ok, "the state is a %T", s)
	return state
}

// update is one update that must succeed.
func update[S infer.State](t testing.TB, transform infer.Transform, s S, b infer.Batch) (S, infer.Info) {
	t.Helper()
	next, info, err := transform.Update(s, b)
	require.NoError(t, err)
	return next.(S), info
}

// run drives a transform for a number of updates and shows every state to observe. The result's state is freed.
func run(t testing.TB, transform infer.Transform, p infer.Params, batches infer.Batches, steps int64, seed uint64, observe func(infer.State)) {
	t.Helper()
	result, err := infer.Run(context.Background(), transform, p, batches, infer.RunConfig{
		Steps: steps, Seed: seed, NoDraws: true,
		Observer: infer.ObserverFunc(func(p infer.Progress) { observe(p.State) }),
	})
	require.NoError(t, err)
	require.Zero(t, result.Diverged, "a chain met a density or a gradient that is not finite")
	infer.Free(result.State)
}

// within asserts that two slices agree to an absolute tolerance.
func within(t testing.TB, want, got []float64, tol float64, what string) bool {
	t.Helper()
	if !assert.Len(t, got, len(want), what) {
		return false
	}
	for i := range want {
		if !(math.Abs(want[i]-got[i]) <= tol) {
			return assert.Failf(t, "values differ", "%s: element %d: want %.17g, got %.17g, off by %g, allowed %g",
				what, i, want[i], got[i], got[i]-want[i], tol)
		}
	}
	return true
}

// identical asserts that two slices have the same bits.
func identical(t testing.TB, want, got []float64, what string) bool {
	t.Helper()
	if !assert.Len(t, got, len(want), what) {
		return false
	}
	for i := range want {
		if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
			return assert.Failf(t, "bits differ", "%s: element %d: want %.17g, got %.17g", what, i, want[i], got[i])
		}
	}
	return true
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

// spread is n different numbers in (-1, 1): the fractional parts of multiples of an irrational number.
func spread(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := float64(i+1) * math.Phi
		out[i] = 2*(x-math.Floor(x)) - 1
	}
	return out
}

// scaled is c·x.
func scaled(c float64, x []float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= c
	}
	return out
}

// name is the name of a case made of its numbers.
func name(format string, a ...any) string { return fmt.Sprintf(format, a...) }
