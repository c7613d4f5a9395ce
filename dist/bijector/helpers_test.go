package bijector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// vec is a float64 tensor; without a shape it is a vector.
func vec(data []float64, shape ...int) *ts.Tensor {
	return torch.New(data, shape...).T()
}

// floats are the values of a tensor.
func floats(t *ts.Tensor) []float64 { return torch.Must(torch.ToSlice[float64](torch.Of(t))) }

// shapeOf is the shape of a tensor.
func shapeOf(t *ts.Tensor) []int { return torch.Of(t).Shape() }

// sum is the sum of all elements.
func sum(t *ts.Tensor) *ts.Tensor { return t.MustSum(t.DType(), false) }

// inScope runs f in a scope and fails the test where that returns an error.
func inScope(t testing.TB, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		f()
		return nil
	}))
}

// errorOf is what a scope returns of a panic in f.
func errorOf(f func()) error {
	return torch.Do(func(*torch.Scope) error {
		f()
		return nil
	})
}

// normals are n standard normal numbers, the same for the same seed.
func normals(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float64, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

// near asserts that slices agree within tol times the larger of one and the wanted value's size.
func near(t testing.TB, want, got []float64, tol float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		ok := want[i] == got[i] || math.Abs(want[i]-got[i]) <= tol*max(1, math.Abs(want[i]))
		require.Truef(t, ok, "%s: element %d: want %.17g, got %.17g", fmt.Sprint(what...), i, want[i], got[i])
	}
}

// relative asserts that slices agree within tol times the wanted value's size.
func relative(t testing.TB, want, got []float64, tol float64, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		ok := want[i] == got[i] || math.Abs(want[i]-got[i]) <= tol*math.Abs(want[i])
		require.Truef(t, ok, "%s: element %d: want %.17g, got %.17g", fmt.Sprint(what...), i, want[i], got[i])
	}
}

// jacobian is the numeric Jacobian of f at x, by differences of fourth order: rows are outputs.
func jacobian(f func(x []float64) []float64, x []float64) [][]float64 {
	const h = 1e-3
	var rows [][]float64
	for j := range x {
		at := func(step float64) []float64 {
			moved := append([]float64{}, x...)
			moved[j] += step
			return f(moved)
		}
		a, b, c, d := at(-2*h), at(-h), at(h), at(2*h)
		for i := range a {
			if j == 0 {
				rows = append(rows, make([]float64, len(x)))
			}
			rows[i][j] = (a[i] - 8*b[i] + 8*c[i] - d[i]) / (12 * h)
		}
	}
	return rows
}

// gradientOf is the gradient of a scalar function of a vector, from autograd.
func gradientOf(f func(x torch.Tensor) torch.Tensor, x []float64) []float64 {
	_, grad, err := torch.ValueAndGrad(f, torch.Of(vec(x, len(x))))
	return floats(torch.Must(grad, err).T())
}

// number is the function of Go slices that a function of tensors is.
func number(f func(x torch.Tensor) torch.Tensor) func(x []float64) []float64 {
	return func(x []float64) (out []float64) {
		torch.Must(0, torch.Do(func(*torch.Scope) error {
			out = floats(f(torch.Of(vec(x, len(x)))).T())
			return nil
		}))
		return out
	}
}

var double = gotch.Double
