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
		return binary(op, a, b)
	}
	return unary(op, a)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unary(op Op, a float64) float64 {
	switch op {
	case Neg:
		return -a
	case Abs:
		return math.Abs(a)
	case Sqrt:
		return math.Sqrt(a)
	case Exp:
		return math.Exp(a)
	case Expm1:
		return math.Expm1(a)
	case Log:
		return log(a)
	case Log1p:
		return math.Log1p(a)
	case Sin:
		return math.Sin(a)
	case Cos:
		return math.Cos(a)
	case Tan:
		return math.Tan(a)
	case Asin:
		return math.Asin(a)
	case Acos:
		return math.Acos(a)
	case Atan:
		return math.Atan(a)
	case Sinh:
		return math.Sinh(a)
	case Cosh:
		return math.Cosh(a)
	case Tanh:
		return math.Tanh(a)
	case Lgamma:
		if a != 0 && math.Abs(a) < 0x1p-1022 {
			return -log(math.Abs(a))
		}
		v, _ := math.Lgamma(a)
		return v
	case Digamma:
		return digamma(a)
	case Trigamma:
		return trigamma(a)
	case Erf:
		return math.Erf(a)
	case Erfc:
		return math.Erfc(a)
	case Erfcx:
		return erfcx(a)
	case Erfinv:
		return math.Erfinv(a)
	case I0e:
		return bessel(a, 0)
	case I1e:
		return math.Copysign(bessel(a, 1), a)
	case Floor:
		return math.Floor(a)
	case Ceil:
		return math.Ceil(a)
	case Trunc:
		return math.Trunc(a)
	case Round:
		return math.RoundToEven(a)
	case Sign:
		return truth(a > 0) - truth(a < 0)
	case IsNaN:
		return truth(a != a)
	case IsInf:
		return truth(math.IsInf(a, 0))
	case Not:
		return truth(a == 0)
	}
	return math.NaN()
}

func binary(op Op, a, b float64) float64 {
	switch op {
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case Div:
		return a / b
	case Pow:
		return pow(a, b)
	case Hypot:
		if a != a || b != b {
			return a + b // NaN before infinity, as libtorch has it
		}
		return math.Hypot(a, b)
	case Atan2:
		return atan2(a, b)
	case Rem:
		r := math.Mod(a, b)
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r
	case Min, Max:
		if a != a || b != b {
			return a + b
		}
		if op == Min {
			return math.Min(a, b)
		}
		return math.Max(a, b)
	case Lt:
		return truth(a < b)
	case Le:
		return truth(a <= b)
	case Eq:
		return truth(a == b)
	case Ne:
		return truth(a != b)
	case And:
		return truth(a != 0 && b != 0)
	case Or:
		return truth(a != 0 || b != 0)
	}
	return math.NaN()
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
