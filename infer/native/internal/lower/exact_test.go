package lower_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
)

// exactNormal is the log density of a centred normal vector x with the covariance W·Wᵀ + diag(d), in arithmetic of
// 2000 bits: by the pivots of Σ, whose product is its determinant, and by elimination.
func exactNormal(x []float64, w [][]float64, d []float64) float64 {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(v) }
	n := len(x)
	a := make([][]*big.Float, n) // Σ, with x beside it
	for i := range n {
		a[i] = make([]*big.Float, n+1)
		for j := range n {
			a[i][j] = number(0)
			for k := range w[i] {
				a[i][j].Add(a[i][j], number(0).Mul(number(w[i][k]), number(w[j][k])))
			}
			if i == j {
				a[i][j].Add(a[i][j], number(d[i]))
			}
		}
		a[i][n] = number(x[i])
	}
	lp := -float64(n) * math.Log(2*math.Pi) / 2
	square := number(0)
	for k := range n {
		for i := k + 1; i < n; i++ {
			f := number(0).Quo(a[i][k], a[k][k])
			for j := k; j <= n; j++ {
				a[i][j].Sub(a[i][j], number(0).Mul(f, a[k][j]))
			}
		}
		// x'Σ⁻¹x is the sum of squares of the eliminated x over the pivots.
		square.Add(square, number(0).Quo(number(0).Mul(a[k][n], a[k][n]), a[k][k]))
		var mantissa big.Float
		power := a[k][k].MantExp(&mantissa)
		m, _ := mantissa.Float64()
		lp -= (math.Log(m) + float64(power)*math.Ln2) / 2
	}
	q, _ := square.Float64()
	return lp - q/2
}

// Far out, where factors are far larger than the diagonal, eager evaluation is exact: what compiled code is compared
// with is the density.
func TestFarOutEagerIsExact(t *testing.T) {
	s := densitySource(densities["LowRankMultivariateNormal"])
	for _, p := range points(30, dim, 60, 6) {
		x, w, d := make([]float64, 4), make([][]float64, 4), make([]float64, 4)
		for i := range 4 {
			x[i], w[i], d[i] = p[i]-p[4+i], p[8+2*i:10+2*i], math.Exp(p[16+i])
		}
		exact := exactNormal(x, w, d)
		value, grad, _ := eager(t, s, p, 1)
		slack := sensitivity(t, s, p, 1, value, grad).value
		off := max(1e-10*math.Abs(exact), slack)
		assert.True(t, near(value, exact, math.Abs(exact), off), "%v, exact %v", value, exact)
	}
}
