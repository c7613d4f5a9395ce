package torch_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// vec is a float64 tensor of the given values; without a shape it is a vector. It belongs to the scope that is open.
func vec(data []float64, shape ...int) torch.Tensor {
	return torch.New(data, shape...)
}

// ints is an int64 tensor.
func ints(data []int, shape ...int) torch.Tensor {
	return torch.New(data, shape...)
}

// floats are the values of a tensor, as float64.
func floats(t torch.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](t)) }

// shapeOf is the shape of a tensor; never nil.
func shapeOf(t torch.Tensor) []int { return t.Shape() }

// scalar is a tensor of shape [].
func scalar(v float64) torch.Tensor { return torch.Scalar(v) }

// sum is the sum of all elements, of shape [].
func sum(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustSum(gotch.Double, false)) }

// inScope runs f in a scope, and fails the test when that returns an error.
func inScope(t testing.TB, f func(s *torch.Scope)) {
	t.Helper()
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		f(s)
		return nil
	}))
}

// closed is a tensor whose scope is closed.
func closed(t testing.TB) torch.Tensor {
	t.Helper()
	var x torch.Tensor
	inScope(t, func(*torch.Scope) { x = torch.Of(ts.MustOnes([]int64{2, 2}, gotch.Double, gotch.CPU)) })
	return x
}

// asError asserts that err is, or wraps, a *torch.Error.
func asError(t testing.TB, err error) *torch.Error {
	t.Helper()
	var e *torch.Error
	require.Error(t, err)
	require.Truef(t, errors.As(err, &e), "not a *torch.Error but %T: %v", err, err)
	return e
}

// near asserts that two slices agree within tol times the larger of one and the values' size.
func near(t testing.TB, want, got []float64, tol float64, what ...any) {
	t.Helper()
	if !assert.Len(t, got, len(want), what...) {
		return
	}
	scale := 1.0
	for _, v := range want {
		if a := math.Abs(v); a > scale && !math.IsInf(v, 0) {
			scale = a
		}
	}
	for i := range want {
		same := want[i] == got[i] || math.IsNaN(want[i]) && math.IsNaN(got[i])
		if !same && !(math.Abs(want[i]-got[i]) <= tol*scale) {
			assert.Failf(t, "values differ", "%s: element %d: want %.17g, got %.17g (allowed %g times %g)",
				fmt.Sprint(what...), i, want[i], got[i], tol, scale)
			return
		}
	}
}

// numbers is a deterministic sequence without structure: n values in (-1, 1), from the fractional parts of multiples of
// the golden ratio's square root.
func numbers(n int, from float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		x := (from + float64(i) + 1) * 0.7861513777574233
		out[i] = 2*(x-math.Floor(x)) - 1
	}
	return out
}
