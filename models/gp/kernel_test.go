package gp_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/torch"
)

func tensor(x []float64, shape ...int) torch.Tensor {
	return torch.New(x, shape...)
}

func do(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, torch.Do(func(*torch.Scope) error { f(); return nil }))
}

// points are n inputs of d coordinates from −2 to 2.
func points(n, d int, shift float64) [][]float64 {
	x := make([][]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range x[i] {
			x[i][j] = 2 * math.Sin(float64(i*(j+2))+shift+float64(j))
		}
	}
	return x
}

func stacked(x [][]float64) torch.Tensor {
	var flat []float64
	for _, row := range x {
		flat = append(flat, row...)
	}
	return tensor(flat, len(x), len(x[0]))
}

type law func(x, y []float64) float64

// radial is a kernel of r² = Σ (x_i − y_i)²/length_i².
func radial(f func(r float64) float64, length ...float64) law {
	return func(x, y []float64) float64 {
		r := 0.0
		for i := range x {
			r += math.Pow((x[i]-y[i])/length[i%len(length)], 2)
		}
		return f(math.Sqrt(r))
	}
}

// kernels are kernels of two coordinates with their formulas.
func kernels() map[string]struct {
	kernel gp.Kernel
	law    law
} {
	wide, ard := tensor([]float64{0.7}).At(0), tensor([]float64{0.5, 2})
	half := radial(func(r float64) float64 { return 4 * math.Exp(-r) }, 0.7)
	three := radial(func(r float64) float64 {
		return (1 + math.Sqrt(3)*r) * math.Exp(-math.Sqrt(3)*r)
	}, 0.5, 2)
	five := radial(func(r float64) float64 {
		return 0.25 * (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r)
	}, 1.5)
	smooth := radial(func(r float64) float64 { return 2.25 * math.Exp(-r*r/2) }, 0.5, 2)
	periodic := func(x, y []float64) float64 {
		s := 0.0
		for i := range x {
			s += math.Pow(math.Sin(math.Pi*(x[i]-y[i])/1.3)/0.8, 2)
		}
		return 9 * math.Exp(-2*s)
	}
	linear := func(x, y []float64) float64 {
		return 0.49 * ((x[0]-1)*(y[0]-1) + (x[1]+0.5)*(y[1]+0.5))
	}
	second := func(f law) law { return func(x, y []float64) float64 { return f(x[1:], y[1:]) } }
	type row = struct {
		kernel gp.Kernel
		law    law
	}
	m12, m32 := gp.Matern{Nu: 0.5, Scale: 2, Length: wide}, gp.Matern{Nu: 1.5, Length: ard}
	m52, se := gp.Matern{Nu: 2.5, Scale: 0.5, Length: 1.5}, gp.SquaredExponential{Scale: 1.5, Length: ard}
	waves := gp.Periodic{Scale: 3, Length: 0.8, Period: 1.3}
	line := gp.Linear{Scale: 0.7, Center: tensor([]float64{1, -0.5})}
	return map[string]row{
		"Matern 1/2": {m12, half}, "Matern 3/2": {m32, three}, "Matern 5/2": {m52, five},
		"squared exponential": {se, smooth}, "periodic": {waves, periodic}, "linear": {line, linear},
		"sum": {gp.Sum(se, line, m12), func(x, y []float64) float64 {
			return smooth(x, y) + linear(x, y) + half(x, y)
		}},
		"product of sums": {gp.Product(gp.Sum(m32, line), waves), func(x, y []float64) float64 {
			return (three(x, y) + linear(x, y)) * periodic(x, y)
		}},
		"one coordinate": {gp.On(m52, 1), second(five)},
	}
}

// Each kernel has the covariances of its formula between two sets of inputs, within one, and on the diagonal.
func TestKernels(t *testing.T) {
	x, y := points(6, 2, 0), points(4, 2, 1)
	y[1] = x[2] // a distance of 0
	for name := range kernels() {
		t.Run(name, func(t *testing.T) {
			do(t, func() {
				c := kernels()[name]
				between, within := c.kernel.Between(stacked(x), stacked(y)), c.kernel.Within(stacked(x))
				variance := c.kernel.Variance(stacked(x)).Values()
				require.Equal(t, []int{6, 4}, between.Shape())
				for i := range x {
					for j := range y {
						assert.InDelta(t, c.law(x[i], y[j]), between.At(i, j).Item(), 1e-12)
					}
					for j := range x {
						assert.InDelta(t, c.law(x[i], x[j]), within.At(i, j).Item(), 1e-12)
					}
					assert.InDelta(t, c.law(x[i], x[i]), variance[i], 1e-12)
				}
			})
		})
	}
	do(t, func() {
		white := gp.Sum(gp.White{Scale: 2}, gp.SquaredExponential{})
		x := tensor([]float64{0, 1})
		assert.InDeltaSlice(t, []float64{5, math.Exp(-0.5), math.Exp(-0.5), 5}, white.Within(x).Values(), 1e-12)
		assert.InDeltaSlice(t, []float64{1, math.Exp(-0.5), math.Exp(-0.5), 1}, white.Between(x, x).Values(), 1e-12)
	})
}

// What is wrong is an error that names it.
func TestRefuses(t *testing.T) {
	se := gp.SquaredExponential{}
	x := func(shape ...int) torch.Tensor { return torch.Zeros(shape...) }
	h := gp.Hilbert{Center: []float64{0}, Half: []float64{1}, Functions: []int{3}}
	for want, f := range map[string]func(){
		"SquaredExponential.Length is 0": func() {
			gp.SquaredExponential{Length: 0}.Within(x(2))
		},
		"SquaredExponential.Length is a tensor of shape [3]": func() {
			gp.SquaredExponential{Length: x(3)}.Within(x(2))
		},
		"SquaredExponential.Scale is -1": func() {
			gp.SquaredExponential{Scale: -1}.Within(x(2))
		},
		"Matern.Nu is 1: it must be 0.5, 1.5 or 2.5":       func() { gp.Matern{Nu: 1}.Within(x(2)) },
		"Periodic.Period is a string":                      func() { gp.Periodic{Period: "a"}.Within(x(2)) },
		"Linear.Center is a tensor of shape [2]":           func() { gp.Linear{Center: x(2)}.Within(x(3, 3)) },
		"White.Scale is a tensor of shape [1]":             func() { gp.White{Scale: x(1)}.Within(x(2)) },
		"X is a tensor of shape [2 2 2]":                   func() { se.Within(x(2, 2, 2)) },
		"X is inputs of 2 and of 3 coordinates":            func() { se.Between(x(4, 2), x(4, 3)) },
		"Sum is empty":                                     func() { gp.Sum() },
		"Product is nil at index 1":                        func() { gp.Product(se, nil) },
		"On.columns is [2]: the inputs have 2 coordinates": func() { gp.On(se, 2).Within(x(3, 2)) },
		"Process.Kernel is nil at index 0":                 func() { gp.Process{X: x(2)}.Marginal(1) },
		"Process.Mean is a tensor of shape [3]": func() {
			gp.Process{Kernel: se, X: x(2), Mean: x(3)}.Marginal(1)
		},
		"Process.Jitter is -1": func() {
			gp.Process{Kernel: se, X: x(2), Jitter: -1}.Marginal(1)
		},
		"noise is -2": func() { gp.Process{Kernel: se, X: x(2)}.Marginal(-2) },
		"noise is a tensor of shape [3]": func() {
			gp.Process{Kernel: se, X: x(2)}.Marginal(x(3))
		},
		"y is a tensor of shape [3]: there are 2 inputs": func() {
			gp.Process{Kernel: se, X: x(2)}.Given(x(3), 1, x(1), nil)
		},
		"mean is a tensor of shape [2]: there are 1 new": func() {
			gp.Process{Kernel: se, X: x(2)}.Given(x(2), 1, x(1), x(2))
		},
		"mean is nil": func() { gp.Process{Kernel: se, X: x(2), Mean: x(2)}.Given(x(2), 1, x(1), nil) },
		"Kernel is a gp.Periodic: an approximation needs":    func() { h.Scales(gp.Periodic{}) },
		"Kernel is a product: an approximation needs":        func() { h.Scales(gp.Product(se, se)) },
		"X is a tensor of shape [4 2]: the approximation is": func() { h.Basis(x(4, 2)) },
		"Hilbert.Factor is 0.5: it must be finite":           func() { gp.Hilbert{Factor: 0.5}.Basis(x(2)) },
		"Hilbert.Center is 0 numbers, with 0 of Half":        func() { gp.Hilbert{}.Basis(x(2)) },
		"Hilbert.Functions is [0]: there must be at least 1": func() { must(gp.NewHilbert(points(3, 1, 0), 0)) },
		"NewHilbert.x is 3 in all of column 0": func() {
			must(gp.NewHilbert([][]float64{{3}, {3}}, 2))
		},
		"NewHilbert.functions is []: x has 2 columns":     func() { must(gp.NewHilbert(points(3, 2, 0))) },
		"NewHilbert.x is 0 rows":                          func() { must(gp.NewHilbert(nil, 2)) },
		"there are rules for SquaredExponential, and for": func() { rule(gp.Matern{Nu: 0.5}, 1) },
		"ratio is 0: it must be finite":                   func() { rule(se, 0) },
	} {
		t.Run(want, func(t *testing.T) {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			require.ErrorContains(t, err, want)
			var mistake *dist.Error
			require.ErrorAs(t, err, &mistake)
		})
	}
}

func must(h gp.Hilbert, err error) gp.Hilbert {
	if err != nil {
		panic(err)
	}
	return h
}

func rule(k gp.Kernel, ratio float64) (float64, int) {
	factor, functions, err := gp.Rule(k, ratio)
	if err != nil {
		panic(err)
	}
	return factor, functions
}
