package lower_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/lower"
	"github.com/stretchr/testify/require"
)

// uncertain is what rounding decides at a point where a factorisation meets a matrix that is nearly singular: the plan
// is evaluated many times, and each number that it computes moves to a neighbour or stays, by chance. The slack is four
// times the range of the finite ones of the value and of the gradient's elements.
//
// Moving the point alone does not tell: L·Lᵀ moves with it and stays positive definite, whereas its own rounding, of
// the size of its largest element times 2^-53, can be more than its least eigenvalue.
func uncertain(t testing.TB, s lower.Source, plan *ir.Plan, x []float64, weight float64) (of slack) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, uint64(len(x))))
	m, err := ir.NewMachine(plan, batchOf(t, s))
	require.NoError(t, err)
	m.Round = func(x float64) float64 {
		if x == 0 || x-x != 0 {
			return x
		}
		return [3]float64{math.Nextafter(x, 0), x, math.Nextafter(x, math.Inf(1)*x)}[rng.IntN(3)]
	}
	var all [][]float64
	for range 24 {
		grad := make([]float64, s.Dim)
		value := m.Eval(x, weight, grad, nil)
		all = append(all, append(grad, value))
	}
	spread := func(i int) (width float64, unsure bool) {
		low, high, finite := math.Inf(1), math.Inf(-1), 0
		for _, e := range all {
			if e[i]-e[i] == 0 {
				low, high, finite = min(low, e[i]), max(high, e[i]), finite+1
			}
		}
		return max(0, 4*(high-low)), finite > 0 && finite < len(all)
	}
	for i := range s.Dim {
		width, unsure := spread(i)
		of.grad, of.unsureGrad = max(of.grad, width), of.unsureGrad || unsure
	}
	of.value, of.unsureValue = spread(s.Dim)
	return of
}
