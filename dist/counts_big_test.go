package dist_test

import (
	"math"
	"math/big"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Arithmetic with 80 decimal digits, in which the textbook formulas of the discrete families are exact enough to check
// values and, by differences with a step of 1e-30, gradients.

const bigPrec = 280

func bigNew(x float64) *big.Float { return new(big.Float).SetPrec(bigPrec).SetFloat64(x) }
func bigInt(x int) *big.Float     { return new(big.Float).SetPrec(bigPrec).SetInt64(int64(x)) }
func bigAdd(x ...*big.Float) *big.Float {
	out := bigNew(0)
	for _, v := range x {
		out.Add(out, v)
	}
	return out
}
func bigSub(x, y *big.Float) *big.Float { return bigNew(0).Sub(x, y) }
func bigMul(x, y *big.Float) *big.Float { return bigNew(0).Mul(x, y) }
func bigQuo(x, y *big.Float) *big.Float { return bigNew(0).Quo(x, y) }
func bigNeg(x *big.Float) *big.Float    { return bigNew(0).Neg(x) }
func bigFloat(x *big.Float) float64     { v, _ := x.Float64(); return v }

// bigAtanh is Σ z^(2k+1)/(2k+1), for |z| ≤ 1/3.
func bigAtanh(z *big.Float) *big.Float {
	sum, power, zz := bigNew(0), bigAdd(z), bigMul(z, z)
	for k := 1; k < 2*bigPrec && power.Sign() != 0; k += 2 {
		sum.Add(sum, bigQuo(power, bigInt(k)))
		power.Mul(power, zz)
	}
	return sum
}

var bigLn2 = sync.OnceValue(func() *big.Float { return bigMul(bigInt(2), bigAtanh(bigQuo(bigInt(1), bigInt(3)))) })

func bigLog(x *big.Float) *big.Float {
	m := bigNew(0)
	e := x.MantExp(m)
	if m.Cmp(bigNew(0.7)) < 0 {
		m.Mul(m, bigInt(2))
		e--
	}
	z := bigQuo(bigSub(m, bigInt(1)), bigAdd(m, bigInt(1)))
	return bigAdd(bigMul(bigInt(2), bigAtanh(z)), bigMul(bigInt(e), bigLn2()))
}

func bigExp(x *big.Float) *big.Float {
	const halvings = 24
	z := bigNew(0).SetMantExp(x, -halvings)
	sum, term := bigInt(1), bigInt(1)
	for k := 1; k < 80; k++ {
		term = bigQuo(bigMul(term, z), bigInt(k))
		sum.Add(sum, term)
	}
	for range halvings {
		sum = bigMul(sum, sum)
	}
	return sum
}

// bigBernoulli are the Bernoulli numbers B₂, B₄, …, B₆₀.
var bigBernoulli = sync.OnceValue(func() []*big.Float {
	const n = 60
	b := make([]*big.Rat, n+1)
	for m := range b {
		b[m] = new(big.Rat)
		if m == 0 {
			b[0].SetInt64(1)
			continue
		}
		for k := range m {
			c := new(big.Rat).SetInt(new(big.Int).Binomial(int64(m+1), int64(k)))
			b[m].Sub(b[m], c.Mul(c, b[k]))
		}
		b[m].Quo(b[m], new(big.Rat).SetInt64(int64(m+1)))
	}
	var out []*big.Float
	for m := 2; m <= n; m += 2 {
		out = append(out, bigNew(0).SetRat(b[m]))
	}
	return out
})

// bigPi is by Machin's formula.
var bigPi = sync.OnceValue(func() *big.Float {
	atan := func(inverse int) *big.Float {
		sum, power := bigNew(0), bigQuo(bigInt(1), bigInt(inverse))
		zz := bigNeg(bigMul(power, power))
		for k := 1; k < bigPrec; k += 2 {
			sum.Add(sum, bigQuo(power, bigInt(k)))
			power.Mul(power, zz)
		}
		return sum
	}
	return bigSub(bigMul(bigInt(16), atan(5)), bigMul(bigInt(4), atan(239)))
})

// bigLgamma is log Γ(x), x > 0, by Stirling's series after a shift to x ≥ 70.
func bigLgamma(x *big.Float) *big.Float {
	z, product := bigAdd(x), bigInt(1)
	for z.Cmp(bigInt(70)) < 0 {
		product.Mul(product, z)
		z.Add(z, bigInt(1))
	}
	half := bigNew(0.5)
	out := bigSub(bigMul(bigSub(z, half), bigLog(z)), z)
	out.Add(out, bigMul(half, bigLog(bigMul(bigInt(2), bigPi()))))
	power, zz := bigAdd(z), bigMul(z, z)
	for i, b := range bigBernoulli() {
		k := 2 * (i + 1)
		out.Add(out, bigQuo(b, bigMul(bigInt(k*(k-1)), power)))
		power.Mul(power, zz)
	}
	return out.Sub(out, bigLog(product))
}

// bigLfact is log x!.
func bigLfact(x *big.Float) *big.Float { return bigLgamma(bigAdd(x, bigInt(1))) }

// bigXlogy is x log y, 0 for x = 0; nil, for minus infinity, for y = 0 else.
func bigXlogy(x, y *big.Float) *big.Float {
	if x.Sign() == 0 {
		return bigNew(0)
	}
	if y.Sign() == 0 {
		return nil
	}
	return bigMul(x, bigLog(y))
}

// bigSum is a sum in which nil is minus infinity.
func bigSum(x ...*big.Float) *big.Float {
	for _, v := range x {
		if v == nil {
			return nil
		}
	}
	return bigAdd(x...)
}

// bigSigmoid is 1/(1 + e⁻ˣ).
func bigSigmoid(x *big.Float) *big.Float {
	return bigQuo(bigInt(1), bigAdd(bigInt(1), bigExp(bigNeg(x))))
}

func TestBigArithmetic(t *testing.T) {
	for _, x := range []float64{1e-10, 0.3, 1, 2.5, 69, 1e9} {
		require.InEpsilon(t, 1+math.Log(x), 1+bigFloat(bigLog(bigNew(x))), 1e-14)
		l, _ := math.Lgamma(x)
		require.InEpsilon(t, 1+l, 1+bigFloat(bigLgamma(bigNew(x))), 1e-14)
		require.Less(t, math.Abs(bigFloat(bigSub(bigLog(bigExp(bigNew(min(x, 100)))), bigNew(min(x, 100))))), 1e-75)
		// The series of log Γ holds to all digits when it obeys Γ(x + 1) = x Γ(x) across the shift.
		y := bigNew(x + 69.5)
		require.Less(
			t,
			math.Abs(bigFloat(bigSub(bigLgamma(bigAdd(y, bigInt(1))), bigAdd(bigLgamma(y), bigLog(y))))),
			1e-60*math.Max(1, x),
		)
	}
	require.Equal(t, math.Pi, bigFloat(bigPi()))
	require.Equal(t, math.Ln2, bigFloat(bigLn2()))
}
