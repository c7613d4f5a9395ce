// Package infertest is what the tests of the method families have in common. Tests of packages that need no libtorch
// have package testkit.
package infertest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Must is the value of a call that cannot fail here; tests use it where an error is a mistake of the test.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Values are the elements of a tensor.
func Values(x *ts.Tensor) []float64 { return Must(torch.ToSlice[float64](torch.Of(x))) }

// Vector is a float64 tensor; without a shape it has one dimension.
func Vector(v []float64, shape ...int) *ts.Tensor { return Must(torch.FromSlice(v, shape...)).T() }

// Layout is the layout of the given sites.
func Layout(shapes infer.Shapes) *infer.Layout { return Must(infer.NewLayout(shapes)) }

// Params is a point; with rows > 0 it has a chain axis of that length, also when that is 1.
func Params(l *infer.Layout, flat []float64, rows int) infer.Params {
	shape := []int{l.Dim()}
	if rows > 0 {
		shape = []int{rows, l.Dim()}
	}
	return infer.Params{Layout: l, Flat: torch.Of(Vector(flat, shape...))}
}

// Build is a transform of a valid configuration.
func Build(t testing.TB, m infer.Method, f infer.LogPosterior) infer.Transform {
	t.Helper()
	transform, err := m.Build(infer.Sum(f, 1))
	require.NoError(t, err)
	return transform
}

// Begin is the state of a transform at p, with a stream for each chain.
func Begin[S infer.State](t testing.TB, transform infer.Transform, p infer.Params, seed uint64) S {
	t.Helper()
	s, err := infer.Init(transform, p, seed)
	require.NoError(t, err)
	state, ok := s.(S)
	require.Truef(t, ok, "the state is a %T", s)
	return state
}

// Update is one update that must succeed.
func Update[S infer.State](t testing.TB, transform infer.Transform, s S, b infer.Batch) (S, infer.Info) {
	t.Helper()
	next, info, err := transform.Update(s, b)
	require.NoError(t, err)
	return next.(S), info
}

// Evaluate is a log density and its gradient, eager, at the points whose coordinates x holds one after the other.
func Evaluate(t testing.TB, l *infer.Layout, f infer.LogPosterior, batch infer.Batch, x ...float64) (
	values, grad []float64) {
	t.Helper()
	g, err := infer.NewGradient(infer.Sum(f, 1))
	require.NoError(t, err)
	points, err := infer.NewParams(l, x)
	require.NoError(t, err)
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		e, err := g.ValueAndGrad(points, batch, 0)
		if err != nil {
			return err
		}
		values = e.Values
		grad, err = torch.ToSlice[float64](e.Grad)
		return err
	}))
	return values, grad
}

// Within asserts that two slices agree to an absolute tolerance.
func Within(t testing.TB, want, got []float64, tol float64, what string) bool {
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

// Identical asserts that two slices have the same bits.
func Identical(t testing.TB, want, got []float64, what string) bool {
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

// Spread is n different numbers in (-1, 1): the fractional parts of multiples of an irrational number.
func Spread(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := float64(i+1) * math.Phi
		out[i] = 2*(x-math.Floor(x)) - 1
	}
	return out
}

// Name is the name of a case made of its numbers.
func Name(format string, a ...any) string { return fmt.Sprintf(format, a...) }

// Same asserts that two states have the same bits in all that the next update depends on.
func Same(t testing.TB, want, got infer.State, what string) {
	t.Helper()
	a, b := want.Save(), got.Save()
	assert.Equal(t, a.Steps, b.Steps, what)
	assert.Equal(t, a.Streams, b.Streams, what)
	require.Len(t, b.Tensors, len(a.Tensors), what)
	for name, x := range a.Tensors {
		Identical(t, Values(x.T()), Values(b.Tensors[name].T()), what+": "+name)
	}
}

// Built is a transform that is built already, as a method.
func Built(t infer.Transform) infer.Method { return built{t} }

type built struct{ transform infer.Transform }

func (b built) Build(infer.Target) (infer.Transform, error) {
	if b.transform == nil {
		return nil, fmt.Errorf("the transform is nil: %w", infer.ErrConfig)
	}
	return b.transform, nil
}

// Run is a run of a transform that is built already, from p, whose chains it has unless the options say otherwise. It
// is silent without an observer.
func Run(ctx context.Context, t infer.Transform, p infer.Params, batches infer.Batches, o infer.Options) (*infer.Result,
	error) {
	o.Start, o.Batches = p, batches
	if o.Chains == 0 {
		o.Chains = p.Chains()
	}
	if o.Observer == nil {
		o.Observer = infer.Silent
	}
	return infer.Run(ctx, infer.Handwritten(infer.Target{}, p, nil), Built(t), o)
}
