package irtest

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// EightSchools is the log density of eight schools, without centring: x = (μ, log τ, θ), μ ~ N(0, 5),
// τ ~ Cauchy⁺(0, 5), θ ~ N(0, 1), y ~ N(μ + τθ, σ), with the Jacobian of the logarithm and without constants.
func EightSchools() Case {
	b := NewBuilder("eight schools", 0.5, 0.3, 0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8)
	y, sigma := b.Const(28, 8, -3, 7, -1, 1, 18, 12), b.Const(15, 10, 16, 11, 9, 11, 10, 18)
	tau, squares, gradTau := b.Work(1), b.Work(2), b.Work(2)
	b.Loop(nil, func(k *Body) { k.Write(ir.Store, k.Op(ir.Exp, k.Load(b.x, 1)), tau, 0) })
	b.Loop([]int{8}, func(k *Body) {
		theta, t := k.Load(b.x, 2, 1), k.Load(tau, 0, 0)
		mean := k.Op(ir.Add, k.Op(ir.Mul, t, theta), k.Load(b.x, 0, 0))
		s := k.Load(sigma, 0, 1)
		z := k.Op(ir.Div, k.Op(ir.Sub, k.Load(y, 0, 1), mean), s)
		k.Write(ir.Sum, k.Op(ir.Mul, z, z), squares, 0, 0)
		k.Write(ir.Sum, k.Op(ir.Mul, theta, theta), squares, 1, 0)
		g := k.Op(ir.Div, z, s)
		k.Write(ir.Sum, g, gradTau, 0, 0)
		k.Write(ir.Sum, k.Op(ir.Mul, g, theta), gradTau, 1, 0)
		k.Write(ir.Store, k.Op(ir.Sub, k.Op(ir.Mul, g, t), theta), b.grad, 2, 1)
	})
	b.Loop(nil, func(k *Body) {
		mu, t, half := k.Load(b.x, 0), k.Load(tau, 0), k.Num(-0.5)
		r := k.Op(ir.Div, t, k.Num(5))
		h := k.Op(ir.Hypot, r, k.Num(1))
		prior := k.Op(ir.Mul, k.Num(-0.02), k.Op(ir.Mul, mu, mu))
		cauchy := k.Op(ir.Mul, k.Num(-2), k.Op(ir.Log, h))
		v := k.Op(ir.Add, k.Op(ir.Add, prior, cauchy), k.Load(b.x, 1))
		v = k.Op(ir.Add, v, k.Op(ir.Mul, half, k.Load(squares, 1)))
		v = k.Op(ir.Add, v, k.Op(ir.Mul, half, k.Load(squares, 0)))
		k.Write(ir.Store, k.Op(ir.Add, v, k.Num(-39.26)), b.value, 0)
		k.Write(ir.Store, k.Op(ir.Sub, k.Load(gradTau, 0), k.Op(ir.Mul, k.Num(0.04), mu)), b.grad, 0)
		d := k.Op(ir.Div, k.Op(ir.Mul, k.Num(-2), k.Op(ir.Div, r, h)), h)
		d = k.Op(ir.Add, k.Load(gradTau, 1), k.Op(ir.Div, d, k.Num(5)))
		k.Write(ir.Store, k.Op(ir.Add, k.Num(1), k.Op(ir.Mul, d, t)), b.grad, 1)
	})
	return b.Case
}

// Logistic is a logistic regression of n rows and d columns with a standard normal prior.
func Logistic(n, d int) Case {
	b := NewBuilder("logistic", numbers(20, d)...)
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(i * i % 7 / 3 % 2)
	}
	data, label := b.Const(numbers(21, n*d)...), b.Const(y...)
	eta, residual, lik, prior, grad := b.Work(n), b.Work(n), b.Work(1), b.Work(1), b.Work(d)
	b.Step(ir.Step{Kind: ir.MatMul, M: n, N: 1, K: d, A: ir.Matrix{Buf: data, Row: d, Col: 1},
		B: ir.Matrix{Buf: b.x, Row: 1}, Out: ir.Matrix{Buf: eta, Row: 1}})
	b.Loop([]int{n}, func(k *Body) {
		e, y := k.Load(eta, 0, 1), k.Load(label, 0, 1)
		p := k.Op(ir.Exp, k.Op(ir.Neg, k.Op(ir.Abs, e)))
		soft := k.Op(ir.Add, k.Op(ir.Max, e, k.Num(0)), k.Op(ir.Log1p, p))
		k.Write(ir.Sum, k.Op(ir.Sub, k.Op(ir.Mul, y, e), soft), lik, 0, 0)
		num := k.Op(ir.Select, k.Op(ir.Lt, e, k.Num(0)), p, k.Num(1))
		k.Write(ir.Store, k.Op(ir.Sub, y, k.Op(ir.Div, num, k.Op(ir.Add, k.Num(1), p))), residual, 0, 1)
	})
	b.Step(ir.Step{Kind: ir.MatMul, M: 1, N: d, K: n, A: ir.Matrix{Buf: residual, Col: 1},
		B: ir.Matrix{Buf: data, Row: d, Col: 1}, Out: ir.Matrix{Buf: grad, Col: 1}})
	b.Loop([]int{d}, func(k *Body) {
		x := k.Load(b.x, 0, 1)
		k.Write(ir.Sum, k.Op(ir.Mul, x, x), prior, 0, 0)
		k.Write(ir.Store, k.Op(ir.Sub, k.Load(grad, 0, 1), x), b.grad, 0, 1)
	})
	b.Loop(nil, func(k *Body) {
		k.Write(ir.Store, k.Op(ir.Sub, k.Load(lik, 0), k.Op(ir.Mul, k.Num(0.5), k.Load(prior, 0))), b.value, 0)
	})
	return b.Case
}

// LogLinear is y ~ N(a + b·u + c·v + d·uv, exp(s)) over n rows, without constants; x = (a, b, c, d, s).
func LogLinear(n int) Case {
	b := NewBuilder("log-linear", 0.1, 0.2, -0.3, 0.4, 0.1)
	u, v, y := b.Const(numbers(22, n)...), b.Const(numbers(23, n)...), b.Const(numbers(24, n)...)
	uv := make([]float64, n)
	for i := range uv {
		uv[i] = b.Plan.Buffers[u].Data[i] * b.Plan.Buffers[v].Data[i]
	}
	both, sigma, sums := b.Const(uv...), b.Work(1), b.Work(5)
	b.Loop(nil, func(k *Body) { k.Write(ir.Store, k.Op(ir.Exp, k.Load(b.x, 4)), sigma, 0) })
	b.Loop([]int{n}, func(k *Body) {
		columns := []int{k.Load(u, 0, 1), k.Load(v, 0, 1), k.Load(both, 0, 1)}
		mean := k.Load(b.x, 0, 0)
		for i, c := range columns {
			mean = k.Op(ir.Add, mean, k.Op(ir.Mul, c, k.Load(b.x, 1+i, 0)))
		}
		s := k.Load(sigma, 0, 0)
		z := k.Op(ir.Div, k.Op(ir.Sub, k.Load(y, 0, 1), mean), s)
		g := k.Op(ir.Div, z, s)
		k.Write(ir.Sum, k.Op(ir.Mul, z, z), sums, 0, 0)
		k.Write(ir.Sum, g, b.grad, 0, 0)
		for i, c := range columns {
			k.Write(ir.Sum, k.Op(ir.Mul, g, c), b.grad, 1+i, 0)
		}
	})
	b.Loop(nil, func(k *Body) {
		z, s, size := k.Load(sums, 0), k.Load(b.x, 4), k.Num(float64(n))
		scale := k.Op(ir.Mul, size, s)
		k.Write(ir.Store, k.Op(ir.Sub, k.Op(ir.Mul, k.Num(-0.5), z), scale), b.value, 0)
		k.Write(ir.Store, k.Op(ir.Sub, z, size), b.grad, 4)
	})
	return b.Case
}

// Divergent is a case whose numbers are infinite or NaN at any point.
func Divergent() Case {
	b := NewBuilder("divergent", math.Inf(1), math.NaN(), -1)
	b.Loop([]int{3}, func(k *Body) {
		x := k.Load(b.x, 0, 1)
		v := k.Op(ir.Log, x)
		k.Write(ir.Sum, v, b.value, 0, 0)
		k.Write(ir.Store, k.Op(ir.Sqrt, k.Op(ir.Sub, v, k.Op(ir.Mul, x, x))), b.grad, 0, 1)
		k.Write(ir.MaxOf, x, b.Aux(1), 0, 0)
		k.Write(ir.Prod, x, b.Aux(1), 0, 0)
	})
	return b.Finish()
}
