package infer_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

func evaluate(t testing.TB, f infer.LogPosterior, p infer.Params, b infer.Batch) infer.Evaluation {
	t.Helper()
	g, err := infer.NewGradient(infer.Sum(f, 1))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, b, 0)
	require.NoError(t, err)
	return e
}

// differences is the gradient of f by central differences. Their error is h²/6 times the third derivative, which is
// below 1 here, plus the rounding of f over h: both about 1e-11 for h = 1e-5.
func differences(f func([]float64) float64, at []float64) []float64 {
	const h = 1e-5
	grad := make([]float64, len(at))
	for i := range at {
		x := append([]float64(nil), at...)
		x[i] += h
		up := f(x)
		x[i] -= 2 * h
		grad[i] = (up - f(x)) / (2 * h)
	}
	return grad
}

// The density is compared with the sum written out in Go, the gradient with central differences of that sum, each chain
// of K with the point alone, and the norms with the gradients.
func TestGradient(t *testing.T) {
	m := newLogistic(40, 3)
	l, b := m.layout(t), m.batch()
	const k = 5
	flat := numbers(k*4, 9)
	all := evaluate(t, m.logPosterior, pointOf(t, l, flat...), b)
	assert.Equal(t, []int{k}, shapeOf(all.Value))
	assert.Equal(t, []int{k, 4}, shapeOf(all.Grad))
	assert.Equal(t, floats(all.Value), all.Values)
	require.Len(t, all.Norms, k)
	grads := floats(all.Grad)
	for i := range k {
		x := flat[4*i : 4*i+4]
		one := evaluate(t, m.logPosterior, pointOf(t, l, x...), b)
		assert.Empty(t, shapeOf(one.Value))
		assert.Equal(t, []int{4}, shapeOf(one.Grad))
		assert.InDelta(t, m.value(x), one.Values[0], 1e-15, "sums of 40 numbers below 1, divided by 40")
		assert.InDeltaSlice(t, differences(m.value, x), floats(one.Grad), 1e-9)
		assert.InDelta(t, one.Values[0], all.Values[i], 1e-15)
		assert.InDeltaSlice(t, floats(one.Grad), grads[4*i:4*i+4], 1e-15)
		norm := math.Sqrt(x2(floats(one.Grad)))
		assert.InDelta(t, norm, one.Norms[0], 1e-15)
		assert.InDelta(t, norm, all.Norms[i], 1e-15)
	}
	assert.Nil(t, all.Diverged())
}

func x2(v []float64) (total float64) {
	for _, x := range v {
		total += x * x
	}
	return total
}

// One chain with a chain axis keeps it.
func TestGradientOfOneRow(t *testing.T) {
	m := newLogistic(10, 2)
	p, err := pointOf(t, m.layout(t), 0.1, 0.2, 0.3).Repeat(1)
	require.NoError(t, err)
	e := evaluate(t, m.logPosterior, p, m.batch())
	assert.Equal(t, []int{1}, shapeOf(e.Value))
	assert.Equal(t, []int{1, 3}, shapeOf(e.Grad))
	assert.Equal(t, []int{1, 10}, shapeOf(e.Aux["eta"]))
	assert.InDelta(t, m.value([]float64{0.1, 0.2, 0.3}), e.Values[0], 1e-15)
}

// In float32 everything stays float32, and agrees with float64 to its 24 bits.
func TestGradientFloat32(t *testing.T) {
	m := newLogistic(40, 3)
	p := pointOf(t, m.layout(t), numbers(8, 2)...)
	e := evaluate(t, m.logPosterior, p, m.batch())
	e32 := evaluate(t, m.logPosterior, in32(t, p), m.batch32(t))
	assert.Equal(t, []gotch.DType{gotch.Float, gotch.Float, gotch.Float},
		[]gotch.DType{e32.Value.T().DType(), e32.Grad.T().DType(), e32.Aux["eta"].T().DType()})
	assert.InDeltaSlice(t, e.Values, e32.Values, 1e-6)
	assert.InDeltaSlice(t, floats(e.Grad), floats(e32.Grad), 1e-6)
}

// What a model returns besides comes back with the chain axis in front, also what is the same for all chains, without a
// graph, and alive after the scope of the gradient.
func TestGradientAux(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2}})
	b := infer.Batch{"x": vec([]float64{1, 2, 3, 4, 5, 6}, 3, 2)}
	f := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		x := b.Get("x").T()
		eta := x.MustMv(p.Get("w").T(), false)
		return sum(torch.Of(eta)), infer.Aux{"eta": torch.Of(eta), "data": torch.Of(x), "w": p.Get("w"),
			"twice": scaled(sum(torch.Of(eta)), 2)}
	}
	one := evaluate(t, f, pointOf(t, l, 1, 10), b)
	assert.Equal(t, []float64{21, 43, 65}, floats(one.Aux["eta"])) // 1+20, 3+40, 5+60
	assert.Equal(t, []float64{1, 10}, floats(one.Aux["w"]))
	assert.Empty(t, shapeOf(one.Aux["twice"]))

	e := evaluate(t, f, pointOf(t, l, 1, 10, 100, -1), b)
	require.Len(t, e.Aux, 4)
	for name, want := range map[string]struct {
		shape  []int
		values []float64
	}{
		"eta":   {[]int{2, 3}, []float64{21, 43, 65, 98, 296, 494}},
		"data":  {[]int{2, 3, 2}, []float64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
		"w":     {[]int{2, 2}, []float64{1, 10, 100, -1}},
		"twice": {[]int{2}, []float64{258, 1776}},
	} {
		assert.Equal(t, want.shape, shapeOf(e.Aux[name]), name)
		assert.Equal(t, want.values, floats(e.Aux[name]), name)
		assert.False(t, e.Aux[name].T().MustRequiresGrad(), name)
	}
	none := evaluate(t, func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return sum(p.Flat),
			nil
	}, pointOf(t, l, 1, 2), nil)
	assert.Nil(t, none.Aux)
}

// A density or a gradient that is not finite is a value that names its chains. The derivative of √ at 0 is infinite
// where the density is 0; log gives −∞ at 0 and NaN below.
func TestDiverged(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {}})
	root := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("w").Sqrt(), nil
	}
	logarithm := func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("w").Log(), nil
	}
	e := evaluate(t, root, pointOf(t, l, 4, 0, 1), nil)
	assert.Equal(t, []float64{2, 0, 1}, e.Values)
	assert.Equal(t, []bool{false, true, false}, e.Diverged())
	e = evaluate(t, logarithm, pointOf(t, l, -1, 1, 0), nil)
	assert.Equal(t, []bool{true, false, true}, e.Diverged())
	assert.True(t, math.IsNaN(e.Values[0]))
	assert.Equal(t, []float64{0, math.Inf(-1)}, e.Values[1:])
	assert.Equal(t, []bool{true}, evaluate(t, root, pointOf(t, l, 0), nil).Diverged())
	assert.Nil(t, evaluate(t, root, pointOf(t, l, 1), nil).Diverged())
}

// One gradient with its aux leaves as many bytes outside scopes as its results have: 8 for each of value, gradient and
// eta. In a scope it leaves none.
func TestGradientLeavesNothing(t *testing.T) {
	m := newLogistic(10, 2)
	p, b := pointOf(t, m.layout(t), numbers(3*4, 0)...), m.batch()
	before := unscoped()
	e := evaluate(t, m.logPosterior, p, b)
	assert.EqualValues(t, 8*(4+4*3+4*10), torch.UnscopedBytes()-before)
	torch.Free(e.Value, e.Grad, e.Aux["eta"])
	require.NoError(t, torch.Do(func(s *torch.Scope) error {
		evaluate(t, m.logPosterior, p, b)
		assert.Equal(t, 3, s.Owned())
		return nil
	}))
	assert.Equal(t, before, torch.UnscopedBytes())
}

func ExampleNewGradient() {
	// log p(w) = −½(w−3)² has gradient 3 − w.
	logPosterior := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		r := p.Get("w").T().MustSubScalar(ts.FloatScalar(3), false)
		return torch.Of(r.MustMul(r, false).MustMulScalar(ts.FloatScalar(-0.5), false)), nil
	}
	layout, _ := infer.NewLayout(infer.Shapes{"w": {}})
	points, _ := infer.NewParams(layout, []float64{1, 5}) // two chains
	gradient, _ := infer.NewGradient(infer.Sum(logPosterior, 1))
	e, err := gradient.ValueAndGrad(points, nil, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	grad, _ := torch.ToSlice[float64](e.Grad)
	fmt.Println(e.Values, grad)
	// Output: [-2 -2] [2 -2]
}
