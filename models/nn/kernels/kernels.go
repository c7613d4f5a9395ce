// Package kernels has the kernels of dense networks in the limit of wide layers, in plain Go: the Gaussian process that
// a random network becomes (NNGP), and the tangent kernel by which gradient descent moves it (NTK). It needs no
// libtorch.
package kernels

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mat"
)

// Activation is the function of the hidden units.
type Activation int

// The activations. ReLU and Erf have closed forms; the products of Tanh are made by quadrature.
const (
	ReLU Activation = iota
	Erf
	Tanh
)

// Dense is a network of Hidden hidden layers and a linear output, whose weights are N(0, WeightVariance/fan-in) and
// whose biases are N(0, BiasVariance).
type Dense struct {
	Hidden         int
	Activation     Activation // of the hidden layers
	WeightVariance float64    // σ_w²
	BiasVariance   float64    // σ_b²
}

// NNGP is the covariance of the outputs at the rows of x and of y (Neal 1996; Lee et al. 2018):
//
//	k⁽⁰⁾(x, y) = σ_b² + σ_w² x·y/d,   k⁽ˡ⁾ = σ_b² + σ_w² E[φ(u) φ(v)]
//
// with (u, v) normal with the covariances k⁽ˡ⁻¹⁾. A nil y is x. The inputs must have the same number of columns.
func (n Dense) NNGP(x, y [][]float64) (*mat.Dense, error) {
	return n.kernel(x, y, func(p pair, _ float64) float64 { return p.ab })
}

// NTK is Σ_j ∂f(x)/∂ω_j ∂f(y)/∂ω_j over the parameters θ_j = s_j ω_j, where s_j is the standard deviation of θ_j (the
// parametrisation of Jacot et al. 2018):
//
//	Θ⁽⁰⁾ = k⁽⁰⁾,   Θ⁽ˡ⁾ = k⁽ˡ⁾ + σ_w² E[φ'(u) φ'(v)] Θ⁽ˡ⁻¹⁾
//
// Arguments are as in NNGP.
func (n Dense) NTK(x, y [][]float64) (*mat.Dense, error) {
	return n.kernel(x, y, func(_ pair, theta float64) float64 { return theta })
}

// pair are the variances of two numbers of mean 0 and their covariance.
type pair struct{ aa, bb, ab float64 }

func (n Dense) kernel(x, y [][]float64, pick func(k pair, theta float64) float64) (*mat.Dense, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	same := y == nil
	if same {
		y = x
	}
	if len(x) == 0 || len(y) == 0 {
		return nil, fmt.Errorf("kernels: %d and %d inputs: expected one at least", len(x), len(y))
	}
	columns := len(x[0])
	for _, rows := range [][][]float64{x, y} {
		for i, row := range rows {
			if len(row) != columns || columns == 0 {
				return nil, fmt.Errorf("kernels: input %d has %d numbers: expected %d, as the first", i, len(row),
					max(columns, 1))
			}
			for _, v := range row {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return nil, fmt.Errorf("kernels: input %d has the number %v: expected finite ones", i, v)
				}
			}
		}
	}
	out := mat.NewDense(len(x), len(y), nil)
	for i := range x {
		for j := range y {
			if same && j < i {
				out.Set(i, j, out.At(j, i))
				continue
			}
			out.Set(i, j, pick(n.at(x[i], y[j])))
		}
	}
	return out, nil
}

// at is the kernel of the output at two inputs, with the tangent kernel.
func (n Dense) at(a, b []float64) (k pair, theta float64) {
	product := func(a, b []float64) (s float64) {
		for i := range a {
			s += a[i] * b[i] / float64(len(a))
		}
		return s
	}
	k = n.next(pair{product(a, a), product(b, b), product(a, b)})
	theta = k.ab
	for range n.Hidden {
		moments, slope := n.Activation.moments(k)
		k = n.next(moments)
		theta = k.ab + n.WeightVariance*slope*theta
	}
	return k, theta
}

// next is the law of a unit of the next layer, given the mean products of the outputs of this one.
func (n Dense) next(m pair) pair {
	return pair{n.BiasVariance + n.WeightVariance*m.aa, n.BiasVariance + n.WeightVariance*m.bb,
		n.BiasVariance + n.WeightVariance*m.ab}
}

func (n Dense) check() error {
	field := func(name string, value any, allowed string) error {
		return fmt.Errorf("kernels.Dense: %s is %v: %s", name, value, allowed)
	}
	switch {
	case n.Hidden < 0 || n.Hidden > 10000:
		return field("Hidden", n.Hidden, "it must be from 0 to 10000")
	case n.Activation < ReLU || n.Activation > Tanh:
		return field("Activation", int(n.Activation), "it must be kernels.ReLU, kernels.Erf or kernels.Tanh")
	case !(n.WeightVariance > 0) || math.IsInf(n.WeightVariance, 1):
		return field("WeightVariance", n.WeightVariance, "it must be greater than 0 and finite")
	case !(n.BiasVariance >= 0) || math.IsInf(n.BiasVariance, 1):
		return field("BiasVariance", n.BiasVariance, "it must be at least 0 and finite")
	}
	return nil
}

// moments are E[φ(u)²], E[φ(v)²] and E[φ(u) φ(v)] of normal numbers, and E[φ'(u) φ'(v)].
func (a Activation) moments(k pair) (m pair, slope float64) {
	switch a {
	case ReLU:
		return relu(k)
	case Erf:
		return erf(k)
	}
	return tanh(k)
}

// relu is by the arc-cosine kernels of degrees 1 and 0 (Cho and Saul 2009):
//
//	E[φ(u) φ(v)] = √(k_uu k_vv) (sin ϑ + (π − ϑ) cos ϑ)/2π,   E[φ'(u) φ'(v)] = (π − ϑ)/2π
//
// with cos ϑ = k_uv/√(k_uu k_vv).
func relu(k pair) (pair, float64) {
	scale := math.Sqrt(k.aa) * math.Sqrt(k.bb)
	if scale == 0 {
		return pair{k.aa / 2, k.bb / 2, 0}, 0
	}
	angle := math.Acos(max(-1, min(1, k.ab/scale)))
	product := scale * (math.Sin(angle) + (math.Pi-angle)*math.Cos(angle)) / (2 * math.Pi)
	return pair{k.aa / 2, k.bb / 2, product}, (math.Pi - angle) / (2 * math.Pi)
}

// erf is by Williams 1997:
//
//	E[φ(u) φ(v)] = 2/π asin(2 k_uv / √((1 + 2 k_uu)(1 + 2 k_vv)))
//	E[φ'(u) φ'(v)] = 4/π / √((1 + 2 k_uu)(1 + 2 k_vv) − 4 k_uv²)
func erf(k pair) (pair, float64) {
	product := func(aa, bb, ab float64) float64 {
		return 2 / math.Pi * math.Asin(2*ab/math.Sqrt((1+2*aa)*(1+2*bb)))
	}
	slope := 4 / math.Pi / math.Sqrt((1+2*k.aa)*(1+2*k.bb)-4*k.ab*k.ab)
	return pair{product(k.aa, k.aa, k.aa), product(k.bb, k.bb, k.bb), product(k.aa, k.bb, k.ab)}, slope
}

// tanh is by quadrature, in u and in what v has beside it.
func tanh(k pair) (m pair, slope float64) {
	rootA, rootB := math.Sqrt(k.aa), math.Sqrt(k.bb)
	along, rest := 0.0, rootB
	if rootA > 0 {
		along = k.ab / rootA
		rest = math.Sqrt(max(0, k.bb-along*along))
	}
	square := func(root float64) (sum float64) {
		overNormal(0, root, func(z, mass float64) { sum += mass * math.Pow(math.Tanh(root*z), 2) })
		return sum
	}
	m.aa, m.bb = square(rootA), square(rootB)
	overNormal(0, max(rootA, math.Abs(along)), func(z, mass float64) {
		step := 0.0 // where v changes its sign
		if rest > 0 {
			step = -along * z / rest
		}
		var mean, slopes float64
		overNormal(step, rest, func(w, mass float64) {
			v := math.Tanh(along*z + rest*w)
			mean += mass * v
			slopes += mass * (1 - v*v)
		})
		u := math.Tanh(rootA * z)
		m.ab += mass * u * mean
		slope += mass * (1 - u*u) * slopes
	})
	return m, slope
}

// far is where normal numbers are taken to end: there is 2e-19 of the mass beyond.
const far = 9

// overNormal visits points of a standard normal number with their probabilities, for a function with a step of the
// width 1/steepness. They are those of Gauss-Legendre rules on panels that begin at the step as wide as it is, and
// double.
func overNormal(step, steepness float64, visit func(z, mass float64)) {
	step = max(-far, min(far, step))
	first := min(2, max(1e-9, 1/steepness)) // a steeper step is a jump, in a panel of no mass
	for _, sign := range []float64{-1, 1} {
		width := first
		for from := step; sign*from < far; width = min(2, 2*width) {
			to := sign * min(far, sign*from+width)
			for i, x := range legendre {
				z := (from+to)/2 + (to-from)/2*x
				visit(z, weights[i]*math.Abs(to-from)/2*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi))
			}
			from = to
		}
	}
}

// legendre are the points of a panel from −1 to 1, with their weights.
var legendre, weights = func() (x, w []float64) {
	x, w = make([]float64, 12), make([]float64, 12)
	quad.Legendre{}.FixedLocations(x, w, -1, 1)
	return x, w
}()
