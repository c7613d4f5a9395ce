package ir

import "math"

// Apply is the value of a pointwise operation. Passes fold constants with it.
func Apply(op Op, a, b, c float64) float64 {
	switch {
	case op == Select:
		if a != 0 {
			return b
		}
		return c
	case op >= Add:
		return binary[op](a, b)
	}
	return unary[op](a)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// unary are the operations of one operand.
var unary = [...]func(float64) float64{
	Neg: func(a float64) float64 { return -a }, Abs: math.Abs, Sqrt: math.Sqrt,
	Exp: math.Exp, Expm1: math.Expm1, Log: log, Log1p: math.Log1p,
	Sin: math.Sin, Cos: math.Cos, Tan: math.Tan, Asin: math.Asin, Acos: math.Acos, Atan: math.Atan,
	Sinh: math.Sinh, Cosh: math.Cosh, Tanh: math.Tanh,
	Lgamma: lgamma, Digamma: digamma, Trigamma: trigamma,
	Erf: math.Erf, Erfc: math.Erfc, Erfcx: erfcx, Erfinv: math.Erfinv,
	I0e:   func(a float64) float64 { return bessel(a, 0) },
	I1e:   func(a float64) float64 { return math.Copysign(bessel(a, 1), a) },
	Floor: math.Floor, Ceil: math.Ceil, Trunc: math.Trunc, Round: math.RoundToEven,
	Sign:  func(a float64) float64 { return truth(a > 0) - truth(a < 0) },
	IsNaN: func(a float64) float64 { return truth(a != a) },
	IsInf: func(a float64) float64 { return truth(math.IsInf(a, 0)) },
	Not:   func(a float64) float64 { return truth(a == 0) },
}

// binary are those of two. Go's min and max know NaN, and that -0 is less than 0.
var binary = [...]func(a, b float64) float64{
	Add:   func(a, b float64) float64 { return a + b },
	Sub:   func(a, b float64) float64 { return a - b },
	Mul:   func(a, b float64) float64 { return a * b },
	Div:   func(a, b float64) float64 { return a / b },
	Pow:   pow,
	Hypot: hypot,
	Atan2: atan2,
	Rem:   rem,
	Min:   func(a, b float64) float64 { return min(a, b) },
	Max:   func(a, b float64) float64 { return max(a, b) },
	Lt:    func(a, b float64) float64 { return truth(a < b) },
	Le:    func(a, b float64) float64 { return truth(a <= b) },
	Eq:    func(a, b float64) float64 { return truth(a == b) },
	Ne:    func(a, b float64) float64 { return truth(a != b) },
	And:   func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	Or:    func(a, b float64) float64 { return truth(a != 0 || b != 0) },
}

func lgamma(a float64) float64 {
	if a != 0 && math.Abs(a) < 0x1p-1022 {
		return -log(math.Abs(a))
	}
	v, _ := math.Lgamma(a)
	return v
}

// hypot has NaN before infinity, as libtorch has it.
func hypot(a, b float64) float64 {
	if a != a || b != b {
		return a + b
	}
	return math.Hypot(a, b)
}

func rem(a, b float64) float64 {
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

// log and pow are right for subnormal numbers too, which Go's own logarithm is not on amd64.
func log(a float64) float64 {
	if 0 < a && a < 0x1p-1022 {
		return math.Log(a*0x1p54) - 54*math.Ln2
	}
	return math.Log(a)
}

func pow(a, b float64) float64 {
	if 0 < a && a < 0x1p-1022 {
		return math.Pow(a*0x1p54, b) * math.Exp2(-54*b)
	}
	return math.Pow(a, b)
}

// atan2 has the sign of a where a/b is too small for a number, which Go's own has not.
func atan2(a, b float64) float64 {
	if b < 0 && a != 0 && a/b == 0 {
		return math.Copysign(math.Pi, a)
	}
	return math.Atan2(a, b)
}

// digamma is ψ(x): by the recurrence ψ(x) = ψ(x+1) - 1/x up to 15, then by its asymptotic expansion (DLMF 5.11.2); for
// negative x by reflection, ψ(1-x) - ψ(x) = π/tan(πx). It is minus infinity at +0, plus infinity at -0 and NaN at
// negative whole numbers, as in libtorch.
func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case math.IsInf(x, 1):
		return x
	}
	if x < 0 {
		if x == math.Trunc(x) {
			return math.NaN()
		}
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*x)
	}
	sum := 0.0
	for ; x < 15; x++ {
		sum -= 1 / x
	}
	y := 1 / (x * x)
	series := 1.0/12 - y*(1.0/120-y*(1.0/252-y*(1.0/240-y*(1.0/132-y*(691.0/32760-y/12)))))
	return sum + math.Log(x) - 0.5/x - y*series
}

// trigamma is ψ'(x): by the recurrence ψ'(x) = ψ'(x+1) + 1/x² up to 15, then by its asymptotic expansion (DLMF 5.15.8);
// for negative x by reflection, ψ'(1-x) + ψ'(x) = π²/sin²(πx).
func trigamma(x float64) float64 {
	if x <= 0 {
		s := math.Sin(math.Pi * x)
		return math.Pi*math.Pi/(s*s) - trigamma(1-x)
	}
	sum := 0.0
	for ; x < 15; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	series := 1.0/6 - y*(1.0/30-y*(1.0/42-y*(1.0/30-y*(5.0/66-y*(691.0/2730-y*7.0/6)))))
	return sum + 1/x + y/2 + y/x*series
}

// erfcx is exp(x²)·erfc(x); from 25 on by its asymptotic expansion Σ (-1)^k (2k-1)!!/(2x²)^k / (x√π) (DLMF 7.12.1),
// whose terms fall below the last bit there.
func erfcx(x float64) float64 {
	if x < 25 {
		return math.Exp(x*x) * math.Erfc(x)
	}
	y := 1 / (x * x)
	sum, term := 1.0, 1.0
	for k := 1; k < 10; k++ {
		term *= -y * float64(2*k-1) / 2
		sum += term
	}
	return sum / (x * math.Sqrt(math.Pi))
}

// bessel is exp(-|x|)·I_n(|x|) for n 0 or 1: by its power series up to 30, of positive terms alone, then by its
// asymptotic expansion.
func bessel(x float64, n int) float64 {
	x = math.Abs(x)
	if x <= 30 {
		term := math.Pow(x/2, float64(n)) * math.Exp(-x)
		sum := term
		for k := 1; term > sum*1e-18 || k < 5; k++ {
			term *= x * x / 4 / float64(k*(k+n))
			sum += term
		}
		return sum
	}
	mu, term, sum := 4*float64(n*n), 1.0, 1.0
	for k := 1; k < 30; k++ {
		odd := float64(2*k - 1)
		next := -term * (mu - odd*odd) / (8 * x * float64(k))
		if math.Abs(next) >= math.Abs(term) || math.Abs(next) < 1e-18 {
			break
		}
		term = next
		sum += term
	}
	return sum / math.Sqrt(2*math.Pi*x)
}
