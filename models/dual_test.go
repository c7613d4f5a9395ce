package models_test

import "math"

// dual is a number with its gradient: forward-mode differentiation, exact to rounding. The log posteriors that the
// models are compared with are written with it, from the mathematics, and share nothing with libtorch.
type dual struct {
	v float64
	d []float64 // nil is 0
}

func con(v float64) dual { return dual{v: v} }

// variables are the numbers of a point, each with the unit vector as its gradient.
func variables(x []float64) []dual {
	out := make([]dual, len(x))
	for i, v := range x {
		out[i] = dual{v, make([]float64, len(x))}
		out[i].d[i] = 1
	}
	return out
}

// chain is the number v whose derivatives in a and b are da and db.
func chain(v float64, a dual, da float64, b dual, db float64) dual {
	out := dual{v: v}
	if a.d == nil && b.d == nil {
		return out
	}
	out.d = make([]float64, max(len(a.d), len(b.d)))
	for i, g := range a.d {
		out.d[i] = da * g
	}
	for i, g := range b.d {
		out.d[i] += db * g
	}
	return out
}

func (a dual) add(b dual) dual          { return chain(a.v+b.v, a, 1, b, 1) }
func (a dual) sub(b dual) dual          { return chain(a.v-b.v, a, 1, b, -1) }
func (a dual) mul(b dual) dual          { return chain(a.v*b.v, a, b.v, b, a.v) }
func (a dual) div(b dual) dual          { return chain(a.v/b.v, a, 1/b.v, b, -a.v/(b.v*b.v)) }
func (a dual) times(c float64) dual     { return chain(a.v*c, a, c, dual{}, 0) }
func (a dual) plus(c float64) dual      { return chain(a.v+c, a, 1, dual{}, 0) }
func (a dual) of(v, slope float64) dual { return chain(v, a, slope, dual{}, 0) }
func (a dual) exp() dual                { return a.of(math.Exp(a.v), math.Exp(a.v)) }
func (a dual) log() dual                { return a.of(math.Log(a.v), 1/a.v) }
func (a dual) log1p() dual              { return a.of(math.Log1p(a.v), 1/(1+a.v)) }
func (a dual) sqrt() dual               { return a.of(math.Sqrt(a.v), 0.5/math.Sqrt(a.v)) }
func (a dual) square() dual             { return a.mul(a) }

// logSigmoid is −log(1 + exp(−a)), in the form that does not overflow.
func (a dual) logSigmoid() dual {
	e := math.Exp(-math.Abs(a.v))
	slope := 1 / (1 + e)
	if a.v > 0 {
		slope = e / (1 + e)
	}
	return a.of(math.Min(a.v, 0)-math.Log1p(e), slope)
}

func sum(x ...dual) dual {
	out := con(0)
	for _, v := range x {
		out = out.add(v)
	}
	return out
}

func logSumExp(x []dual) dual {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = math.Max(largest, v.v)
	}
	total := con(0)
	for _, v := range x {
		total = total.add(v.plus(-largest).exp())
	}
	return total.log().plus(largest)
}

// Log densities, with all constants.

func normal(x, loc, scale dual) dual {
	return x.sub(loc).div(scale).square().times(-0.5).sub(scale.log()).plus(-0.5 * math.Log(2*math.Pi))
}

func halfNormal(x dual, scale float64) dual {
	return x.times(1 / scale).square().times(-0.5).plus(0.5*math.Log(2/math.Pi) - math.Log(scale))
}

func halfCauchy(x dual, scale float64) dual {
	return x.times(1 / scale).square().log1p().times(-1).plus(math.Log(2 / (math.Pi * scale)))
}

func logNormal(x dual, loc, scale float64) dual {
	return normal(x.log(), con(loc), con(scale)).sub(x.log())
}

func inverseGamma(x dual, a, scale float64) dual {
	lgamma, _ := math.Lgamma(a)
	return x.log().times(-(a + 1)).sub(con(scale).div(x)).plus(a*math.Log(scale) - lgamma)
}

// dirichlet is symmetric.
func dirichlet(x []dual, a float64) dual {
	k := float64(len(x))
	one, _ := math.Lgamma(a)
	all, _ := math.Lgamma(k * a)
	out := con(all - k*one)
	for _, v := range x {
		out = out.add(v.log().times(a - 1))
	}
	return out
}

// orderedNormal is k! times the product of normal densities.
func orderedNormal(x []dual, loc, scale float64) dual {
	factorial, _ := math.Lgamma(float64(len(x)) + 1)
	out := con(factorial)
	for _, v := range x {
		out = out.add(normal(v, con(loc), con(scale)))
	}
	return out
}

// Maps from unconstrained numbers, with log |det|.

// positive is exp(u).
func positive(u dual) (x, jacobian dual) { return u.exp(), u }

// increasing is y₁ = u₁, yₖ = yₖ₋₁ + exp(uₖ).
func increasing(u []dual) (y []dual, jacobian dual) {
	y, jacobian = []dual{u[0]}, con(0)
	for i := 1; i < len(u); i++ {
		y, jacobian = append(y, y[i-1].add(u[i].exp())), jacobian.add(u[i])
	}
	return y, jacobian
}

// simplex breaks a stick: of what is left, the share σ(u_i − log(k − i)). The derivative of element i in u_i, when
// those before are held, is left·z(1 − z); the matrix is triangular.
func simplex(u []dual) (y []dual, jacobian dual) {
	left, jacobian := con(1), con(0)
	k := len(u) + 1
	for i, v := range u {
		z := v.plus(-math.Log(float64(k - 1 - i))).logSigmoid().exp()
		rest := con(1).sub(z)
		jacobian = sum(jacobian, left.log(), z.log(), rest.log())
		y = append(y, left.mul(z))
		left = left.mul(rest)
	}
	return append(y, left), jacobian
}
