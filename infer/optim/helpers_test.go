package optim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

var nan = math.NaN()

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

// begin is the state of a transform at p.
func begin(t testing.TB, transform infer.Transform, p infer.Params) infer.State {
	t.Helper()
	s, err := transform.Init(p)
	require.NoError(t, err)
	return s
}

// update is one update that must succeed.
func update(t testing.TB, transform infer.Transform, s infer.State, b infer.Batch) (infer.State, infer.Info) {
	t.Helper()
	next, info, err := transform.Update(s, b)
	require.NoError(t, err)
	return next, info
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

// same asserts that two states have the same bits in all that the next update depends on.
func same(t testing.TB, want, got infer.State, what string) {
	t.Helper()
	a, b := want.Save(), got.Save()
	assert.Equal(t, a.Steps, b.Steps, what)
	require.Len(t, b.Tensors, len(a.Tensors), what)
	for name, x := range a.Tensors {
		identical(t, values(x), values(b.Tensors[name]), what+": "+name)
	}
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

// name is the name of a case made of its numbers.
func name(format string, a ...any) string { return fmt.Sprintf(format, a...) }

// wells is a log posterior of two sites whose gradient is known and not linear: −Σ(¼cx⁴ − cx), with the batch tensor c; its
// gradient is c(1 − x³). The mode is at 1.
type wells struct {
	layout *infer.Layout
	c      []float64
}

func newWells() wells {
	return wells{layout: must(infer.NewLayout(infer.Shapes{"u": {3}, "v": {2, 1}})), c: []float64{0.5, 0.75, 1, 1.25, 1.5}}
}

func (w wells) batch() infer.Batch {
	return infer.Batch{"u": vector(w.c[:3]), "v": vector(w.c[3:], 2, 1)}
}

func (w wells) logPosterior(p infer.Params, b infer.Batch) (*ts.Tensor, infer.Aux) {
	site := func(name string) *ts.Tensor {
		x, c := p.Get(name), b.Get(name)
		quarter := x.MustSquare(false).MustSquare(false).MustMulScalar(ts.FloatScalar(0.25), false)
		return x.MustSub(quarter, false).MustMul(c, false).MustSum(gotch.Double, false)
	}
	u := site("u")
	return u.MustAdd(site("v"), false), infer.Aux{"u": u}
}

// gradient is the gradient at several points, one after the other.
func (w wells) gradient(x []float64) []float64 {
	g := make([]float64, len(x))
	for i, v := range x {
		g[i] = w.c[i%len(w.c)] * (1 - v*v*v)
	}
	return g
}

// value is the density at one point.
func (w wells) value(x []float64) (logp float64) {
	for i, v := range x {
		logp += w.c[i] * (v - v*v*v*v/4)
	}
	return logp
}

// methods are the methods of the tests of what they have in common.
func methods() map[string]infer.Method {
	lr, decay := infer.Polynomial(0.1, 1, 0.33), 0.2
	return map[string]infer.Method{
		"optim.SGD":   optim.SGD{LR: lr, Momentum: 0.8, Dampening: 0.3, WeightDecay: 0.1},
		"optim.Adam":  optim.Adam{LR: lr, WeightDecay: 0.1},
		"optim.AdamW": optim.AdamW{LR: lr, WeightDecay: &decay},
	}
}
