package kernel

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag"
)

// On standard normal laws of any dimension, where all trajectories of one length come back at once, the default has no
// resonance. A random phase leaves squares correlated by E cos² = ½, so that a third of the draws are effective in the
// tails. The bound of R-hat is for the largest of 1,000 elements of such chains, √(1 + 4·7/300). Variances are right
// within five standard errors.
func TestHMCDoesNotResonate(t *testing.T) {
	for _, d := range []int{1, 3, 10, 50, 200} {
		rhat, least, off := 1.0, math.Inf(1), 0.0
		for seed := range uint64(20) {
			r := run(t, gaussian(slices.Repeat([]float64{1}, d)...), Options{Kernel: HMC{}, Chains: 4, Warmup: 500,
				Draws: 500, Seed: seed})
			for j := range min(d, 25) {
				x := make([][]float64, 4)
				for k := range r.Chains {
					for i := range r.Chains[k].Len() {
						x[k] = append(x[k], r.Chains[k].Draw(i)[j])
					}
				}
				rhat = max(rhat, diag.RHat(x))
				least = min(least, diag.ESSBulk(x), diag.ESSTail(x))
				squares := make([][]float64, 4)
				for k := range x {
					for _, v := range x[k] {
						squares[k] = append(squares[k], v*v)
					}
				}
				off = max(off, math.Abs(stat.Mean(slices.Concat(squares...), nil)-1)/math.Sqrt(2/diag.ESSMean(squares)))
			}
		}
		t.Logf("d = %d: R-hat %.3f, effective %.0f of 2000, variance off by %.1f standard errors", d, rhat, least, off)
		assert.Less(t, rhat, 1.05, "d = %d", d)
		assert.Greater(t, least, 300.0, "d = %d", d)
		assert.Less(t, off, 5.0, "d = %d", d)
	}
}
