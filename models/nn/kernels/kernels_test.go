package kernels_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/models/nn/kernels"
)

var x = [][]float64{{1, 0.5, -2}, {0.3, -1, 0.2}, {-1, -0.5, 2.1}, {0, 0, 0}}

// functions are the activations with their derivatives.
var functions = map[kernels.Activation][2]func(float64) float64{
	kernels.ReLU: {func(u float64) float64 { return math.Max(u, 0) }, func(u float64) float64 {
		if u > 0 {
			return 1
		}
		return 0
	}},
	kernels.Erf: {math.Erf, func(u float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-u*u) }},
	kernels.Tanh: {math.Tanh, func(u float64) float64 {
		c := math.Cosh(u)
		return 1 / (c * c)
	}},
}

// expect is E[f(u) f(v)] in polar coordinates: u = √k_aa r cos φ, and v along the direction that has the correlation.
func expect(f func(float64) float64, aa, bb, ab float64) (sum float64) {
	const angles = 1000
	root := math.Sqrt(aa)
	along, rest := 0.0, math.Sqrt(bb)
	if aa > 0 {
		along = ab / root
		rest = math.Sqrt(math.Max(0, bb-along*along))
	}
	for j := range angles {
		sin, cos := math.Sincos(2 * math.Pi * (float64(j) + 0.5) / angles)
		sum += quad.Fixed(func(r float64) float64 {
			return r * math.Exp(-r*r/2) * f(root*r*cos) * f(along*r*cos+rest*r*sin)
		}, 0, 9, 100, nil, 0) / angles
	}
	return sum
}

// Two layers of the recursions by another quadrature, for every activation and for inputs that are nearly opposite, or
// 0.
func TestAgainstQuadrature(t *testing.T) {
	const w, b = 1.6, 0.1
	for activation, f := range functions {
		net := kernels.Dense{Hidden: 1, Activation: activation, WeightVariance: w, BiasVariance: b}
		nngp, err := net.NNGP(x, nil)
		require.NoError(t, err)
		ntk, err := net.NTK(x, nil)
		require.NoError(t, err)
		first := func(i, j int) float64 {
			s := 0.0
			for c := range x[i] {
				s += x[i][c] * x[j][c] / 3
			}
			return b + w*s
		}
		for i := range x {
			for j := range x {
				aa, bb, ab := first(i, i), first(j, j), first(i, j)
				want := b + w*expect(f[0], aa, bb, ab)
				// Smooth functions of the angle are integrated to rounding. ReLU has two kinks, and its derivative two jumps of
				// w k_ab < 5, each in a cell of 1/1000.
				value, slope := 1e-9, 1e-9
				if activation == kernels.ReLU {
					value, slope = 1e-4, 5e-3
				}
				assert.InDelta(t, want, nngp.At(i, j), value, "NNGP, activation %d at %d, %d", activation, i, j)
				want += w * expect(f[1], aa, bb, ab) * ab
				assert.InDelta(t, want, ntk.At(i, j), slope, "NTK, activation %d at %d, %d", activation, i, j)
			}
		}
	}
}

// Exact cases. At one input a ReLU network has k' = σ_b² + σ_w² k/2, and orthogonal inputs without biases have
// √(k_aa k_bb)/2π, with the slope 1/4. At one input E[erf²] = 2/π asin(2k/(1 + 2k)).
func TestClosedForms(t *testing.T) {
	relu := kernels.Dense{Hidden: 3, WeightVariance: 1.6, BiasVariance: 0.1}
	k, err := relu.NNGP([][]float64{{1, 2}}, nil)
	require.NoError(t, err)
	want := 0.1 + 1.6*2.5
	for range 3 {
		want = 0.1 + 0.8*want
	}
	assert.InDelta(t, want, k.At(0, 0), 1e-14)

	one := kernels.Dense{Hidden: 1, WeightVariance: 2}
	k, err = one.NNGP([][]float64{{1, 0}}, [][]float64{{0, 3}})
	require.NoError(t, err)
	assert.InDelta(t, 2*math.Sqrt(1*9)/(2*math.Pi), k.At(0, 0), 1e-14)

	erf := kernels.Dense{Hidden: 1, WeightVariance: 1, Activation: kernels.Erf}
	k, err = erf.NNGP([][]float64{{1}}, nil)
	require.NoError(t, err)
	assert.InDelta(t, 2/math.Pi*math.Asin(2.0/3), k.At(0, 0), 1e-15)

	// A network without hidden layers is linear: both kernels are k⁽⁰⁾.
	linear := kernels.Dense{WeightVariance: 3, BiasVariance: 1, Activation: kernels.Tanh}
	for _, kernel := range []func(x, y [][]float64) (*mat.Dense, error){linear.NNGP, linear.NTK} {
		k, err = kernel([][]float64{{1, 2}}, [][]float64{{3, -1}})
		require.NoError(t, err)
		assert.InDelta(t, 1+3*(3-2)/2.0, k.At(0, 0), 1e-14)
	}
}

// Tanh of small inputs is the identity, x − x³/3: with units of variance s its second moment is s − 2 s² + O(s³), for
// E[z⁴] = 3; and of large ones the sign: 1 − √(2/πs)·(1 + ...) for units of variance s.
func TestTanhAtItsLimits(t *testing.T) {
	at := func(variance float64) float64 {
		k, err := kernels.Dense{Hidden: 1, WeightVariance: 1, Activation: kernels.Tanh}.NNGP(
			[][]float64{{math.Sqrt(variance)}}, nil)
		require.NoError(t, err)
		return k.At(0, 0)
	}
	assert.InDelta(t, 1e-4-2e-8, at(1e-4), 17.0/3*2e-12) // the next term is 17/3 s³ with E[x⁶] = 15 s³
	// ∫ (1 − tanh²(√s z)) φ(z) dz = 2 φ(0)/√s − φ(0) π²/12 s^(−3/2) + ..., from ∫ sech²(x) x² dx = π²/6.
	assert.InDelta(t, 1, at(1e300), 1e-8)
	const s = 1e4
	assert.InDelta(t, 1-(2/math.Sqrt(s)-math.Pi*math.Pi/12/math.Pow(s, 1.5))/math.Sqrt(2*math.Pi), at(s), 1e-10)
}

// Kernels are symmetric, and nonnegative: all eigenvalues of the kernels of random inputs are.
func TestKernelsAreNonnegative(t *testing.T) {
	for activation := range functions {
		net := kernels.Dense{Hidden: 2, Activation: activation, WeightVariance: 1.5, BiasVariance: 0.2}
		for _, kernel := range []func(x, y [][]float64) (*mat.Dense, error){net.NNGP, net.NTK} {
			k, err := kernel(x, nil)
			require.NoError(t, err)
			cross, err := kernel(x, x)
			require.NoError(t, err)
			require.True(t, mat.EqualApprox(k, cross, 1e-12))
			symmetric := mat.NewSymDense(len(x), nil)
			for i := range x {
				for j := range i + 1 {
					symmetric.SetSym(i, j, k.At(i, j))
				}
			}
			var eigen mat.EigenSym
			require.True(t, eigen.Factorize(symmetric, false))
			for _, v := range eigen.Values(nil) {
				assert.Greater(t, v, -1e-12)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	good := kernels.Dense{Hidden: 1, WeightVariance: 1}
	for want, c := range map[string]struct {
		net  kernels.Dense
		x, y [][]float64
	}{
		"Hidden is -1":                       {kernels.Dense{Hidden: -1, WeightVariance: 1}, x, nil},
		"Activation is 7":                    {kernels.Dense{Activation: 7, WeightVariance: 1}, x, nil},
		"WeightVariance is 0":                {kernels.Dense{}, x, nil},
		"BiasVariance is NaN":                {kernels.Dense{WeightVariance: 1, BiasVariance: math.NaN()}, x, nil},
		"0 and 0 inputs":                     {good, nil, nil},
		"input 1 has 1 numbers: expected 2":  {good, [][]float64{{1, 2}, {1}}, nil},
		"input 0 has 3 numbers: expected 2":  {good, [][]float64{{1, 2}}, x},
		"input 0 has the number NaN":         {good, [][]float64{{math.NaN()}}, nil},
		"input 0 has 0 numbers: expected 1":  {good, [][]float64{{}}, nil},
		"1 and 0 inputs: expected one at le": {good, x[:1], [][]float64{}},
	} {
		_, err := c.net.NNGP(c.x, c.y)
		require.ErrorContains(t, err, want)
	}
}
