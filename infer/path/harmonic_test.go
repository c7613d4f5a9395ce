package path_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// integral is the midpoint rule, whose error for these smooth functions is far below the tolerance.
func integral(a, b float64, f func(x float64) float64) float64 {
	const n = 200000
	sum, h := 0.0, (b-a)/n
	for i := range n {
		sum += h * f(a+(float64(i)+0.5)*h)
	}
	return sum
}

// log Z of a harmonic reference in a box is the logarithm of its integral, also where the mean is far outside: there
// the integral has the asymptotic series of Mills' ratio.
func TestHarmonicLogZ(t *testing.T) {
	for _, c := range []struct{ m, k, a, b float64 }{
		{0, 1, -1, 2}, {1, 4, -3, 0.5}, {5, 2, -1, 1}, {-6, 1, 0, 3}, {0, 0, -2, 5}, {0.3, 1e-6, -50, 50},
	} {
		h := &path.Harmonic{Mean: []float64{c.m}, Precision: []float64{c.k}, Lower: []float64{c.a}, Upper: []float64{c.b}}
		want := math.Log(integral(c.a, c.b, func(x float64) float64 { return math.Exp(-0.5 * c.k * (x - c.m) * (x - c.m)) }))
		require.InDelta(t, want, h.LogZ(), 1e-8, c)
	}
	open := &path.Harmonic{Mean: []float64{3}, Precision: []float64{4}}
	require.InDelta(t, 0.5*math.Log(2*math.Pi/4), open.LogZ(), 1e-14)
	far := &path.Harmonic{Mean: []float64{40}, Precision: []float64{1}, Lower: []float64{-1}, Upper: []float64{1}}
	// ∫ from −1 to 1 of exp(−(40−x)²/2) = exp(−39²/2)/39 · (1 − 1/39² + 3/39⁴ − …), but for exp(−41²/2)
	y := 1.0 / (39 * 39)
	require.InDelta(t, -0.5*39*39-math.Log(39)+math.Log1p(-y+3*y*y-15*y*y*y), far.LogZ(), 1e-9)
}

// The constants of Baldock and Marzari (2019): Σ log σ of a uniform prior of width 100/√fan-in over the 13,970
// parameters of the network 256-40-40-40-10 is 28960.4, and 19945.7 over the 10,690 of 256-40-10; it is log Z of a
// reference that is flat within the box.
func TestBoxOfTheNetworks(t *testing.T) {
	for _, c := range []struct {
		units []int
		want  float64
	}{{[]int{256, 40, 40, 40, 10}, 28960.4}, {[]int{256, 40, 10}, 19945.7}} {
		shapes, fanIn := infer.Shapes{}, map[string]int{}
		for i := 1; i < len(c.units); i++ {
			name := string(rune('a' + i))
			shapes[name] = []int{c.units[i], c.units[i-1] + 1}
			fanIn[name] = c.units[i-1] + 1
		}
		l, err := infer.NewLayout(shapes)
		require.NoError(t, err)
		lower, upper, err := path.Box(l, 100, fanIn)
		require.NoError(t, err)
		h := &path.Harmonic{Mean: make([]float64, l.Dim()), Precision: make([]float64, l.Dim()), Lower: lower, Upper: upper}
		require.InDelta(t, c.want, h.LogZ(), 0.05)
		_, _, err = path.Box(l, 0, fanIn)
		require.ErrorIs(t, err, infer.ErrConfig)
		_, _, err = path.Box(l, 1, nil)
		require.ErrorContains(t, err, `site "b"`)
	}
}

// Draws of the reference have the mean of the truncated normal law, by quadrature, in the middle and in both tails.
func TestHarmonicDraws(t *testing.T) {
	mean, k := []float64{0, 8, -8, 40, 0}, []float64{1, 1, 1, 1, 0}
	h := &path.Harmonic{Mean: mean, Precision: k, Lower: []float64{-1, -1, -1, -1, -1}, Upper: []float64{2, 2, 2, 2, 2}}
	l, err := infer.NewLayout(infer.Shapes{"x": {5}})
	require.NoError(t, err)
	start, err := infer.Zeros(l)
	require.NoError(t, err)
	e, err := path.Path{Reference: h}.On(infer.Handwritten(normals(false), start, nil), native.Eager)
	require.NoError(t, err)
	const n = 20000
	x, err := e.Start(n, 3, 0)
	require.NoError(t, err)
	for i := range mean {
		f := func(x float64) float64 {
			return math.Exp(-0.5 * k[i] * ((x-mean[i])*(x-mean[i]) - (2-mean[i])*(2-mean[i])))
		}
		z := integral(-1, 2, f)
		want := integral(-1, 2, func(x float64) float64 { return x * f(x) / z })
		variance := integral(-1, 2, func(x float64) float64 { return (x - want) * (x - want) * f(x) / z })
		sum := 0.0
		for j := range n {
			v := x[5*j+i]
			require.True(t, v >= -1 && v <= 2)
			sum += v
		}
		require.InDelta(t, want, sum/n, 4*math.Sqrt(variance/n), i)
	}
	require.False(t, e.Inside([]float64{0, 0, 0, 0, 2.5}))
	require.True(t, e.Inside([]float64{0, 0, 0, 0, 1.5}))
	lower, upper := e.Walls()
	require.Equal(t, h.Lower, lower)
	require.Equal(t, h.Upper, upper)
}

// Fit has the mean and 1/⟨Δ²⟩ of a few numbers.
func TestFit(t *testing.T) {
	h, err := path.Fit([]float64{1, 10, 3, 30}, 2)
	require.NoError(t, err)
	require.Equal(t, []float64{2, 20}, h.Mean)
	require.Equal(t, []float64{1, 0.01}, h.Precision)
	_, err = path.Fit([]float64{1, 1, 1, 2}, 2)
	require.ErrorContains(t, err, "dimension 0")
	_, err = path.Fit([]float64{1}, 1)
	require.ErrorIs(t, err, infer.ErrConfig)
}

func TestHarmonicErrors(t *testing.T) {
	one, nan := []float64{1}, math.NaN()
	for field, h := range map[string]path.Harmonic{
		"Precision":          {Mean: one},
		"Precision[0]":       {Mean: one, Precision: []float64{0}},
		"Mean[0]":            {Mean: []float64{nan}, Precision: one},
		"Lower":              {Mean: one, Precision: one, Lower: []float64{1, 2}},
		"Lower[0], Upper[0]": {Mean: one, Precision: one, Lower: one, Upper: one},
	} {
		require.ErrorContains(t, path.Path{Reference: &h}.Check(), "path.Harmonic: "+field+" is")
	}
}

// Ladders: the power schedule by its formula, what is refused, and equal rates for a barrier that is known: where
// the local rate is constant on (0, ½) and three times as large above, the rung in the middle of three is at 2/3.
func TestLadders(t *testing.T) {
	require.Equal(t, []float64{0, 0.125, 1}, path.Power(3, 3))
	require.ErrorContains(t, path.CheckLadder("x", path.Power(1, 3)), "at least 2")
	require.ErrorContains(t, path.CheckLadder("x", []float64{0, 0.5, 0.5, 1}),
		"x: Ladder[2] is 0.5 after 0.5: the ladder must increase")
	require.ErrorContains(t, path.CheckLadder("x", []float64{0, 2}), "from 0 to 1")
	got, err := path.Equalize([]float64{0, 0.5, 1}, []float64{0.1, 0.3}, 3)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0, 2.0 / 3, 1}, got, 1e-12)
	_, err = path.Equalize([]float64{0, 1}, nil, 3)
	require.ErrorIs(t, err, infer.ErrConfig)
	_, err = path.Equalize([]float64{0, 1}, []float64{2}, 3)
	require.ErrorIs(t, err, infer.ErrConfig)
}
