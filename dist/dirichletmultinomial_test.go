package dist_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// bigDirichletMultinomial is the textbook formula.
func bigDirichletMultinomial(a, x []*big.Float) *big.Float {
	n, all := bigAdd(x...), bigAdd(a...)
	sum := bigSum(bigLfact(n), bigLgamma(all), bigNeg(bigLgamma(bigAdd(n, all))))
	for i := range a {
		sum = bigSum(sum, bigLgamma(bigAdd(x[i], a[i])), bigNeg(bigLgamma(a[i])), bigNeg(bigLfact(x[i])))
	}
	return sum
}

func TestDirichletMultinomial(t *testing.T) {
	countScope(t, func() {
		// Values and gradients against the textbook formula in high precision, small and large.
		rng := rand.New(rand.NewPCG(3, 3))
		for _, scale := range []float64{1, 1e-3, 1e6} {
			for range 10 {
				a, x, total := make([]float64, 4), make([]float64, 4), 0.0
				for i := range a {
					a[i] = scale * math.Exp(1.5*rng.NormFloat64())
					x[i] = float64(rng.IntN(int(10 + scale/10)))
					total += x[i]
				}
				leaf := torch.Must(torch.Leaf(torch.Of(countTensor(a))))
				p := dist.DirichletMultinomial(total, leaf).LogProb(torch.Of(countTensor(x))).T()
				require.Empty(t, countShape(p))
				// Logarithms are rounded, 1e-14 each.
				countClose(t, bigFloat(bigDirichletMultinomial(bigs(a), bigs(x))), countFloats(p)[0], 1e-10, 2e-13, "%v %v", a, x)
				grad := countGrad(p, []torch.Tensor{leaf})[0]
				for i := range a {
					h := bigNew(1e-30)
					up, down := bigs(a), bigs(a)
					up[i], down[i] = bigAdd(up[i], h), bigSub(down[i], h)
					slope := bigQuo(bigSub(bigDirichletMultinomial(up, bigs(x)), bigDirichletMultinomial(down, bigs(x))),
						bigMul(bigInt(2), h))
					countClose(t, bigFloat(slope), grad[i], 1e-8, 1e-12/scale, "gradient in concentration %d of %v at %v", i, a, x)
				}
			}
		}
		// It sums to 1 over all outcomes, and without trials there is one.
		mass := 0.0
		w := countTensor([]float64{0.3, 1.2, 4})
		for i := range 8 {
			for j := range 8 - i {
				x := countTensor([]float64{float64(i), float64(j), float64(7 - i - j)})
				mass += math.Exp(countFloats(dist.DirichletMultinomial(7, w).LogProb(torch.Of(x)).T())[0])
			}
		}
		assert.InDelta(t, 1, mass, 1e-12)
		none := dist.DirichletMultinomial(0, w).LogProb(torch.Of(countTensor([]float64{0, 0, 0}))).T()
		assert.InDelta(t, 0, countFloats(none)[0], 1e-14)
		// Outside: another sum, a negative count, half a count.
		for _, x := range [][]float64{{1, 1, 1}, {-1, 4, 4}, {0.5, 0.5, 6}} {
			p := dist.DirichletMultinomial(7, w).LogProb(torch.Of(countTensor(x))).T()
			assert.Equal(t, []float64{math.Inf(-1)}, countFloats(p), "%v", x)
		}
		// Concentrations without bound make it the multinomial distribution, here to the relative order n²/A.
		x := countTensor([]float64{2, 3, 7})
		far := dist.DirichletMultinomial(12, countTensor([]float64{2e14, 3e14, 5e14})).LogProb(torch.Of(x)).T()
		near := dist.Multinomial(12, countTensor([]float64{2, 3, 5})).LogProb(torch.Of(x)).T()
		assert.InDelta(t, countFloats(near)[0], countFloats(far)[0], 1e-12)

		// Draws: the marginal laws are beta-binomial.
		a := []float64{0.5, 2, 1.5}
		for _, d := range []dist.Distribution{dist.DirichletMultinomial(12, countTensor(a)).Expand(2),
			dist.DirichletMultinomial(countTensor([]float64{12, 12}), countTensor(a))} {
			require.NoError(t, d.Validate())
			require.Equal(t, "DirichletMultinomial", d.Name())
			require.Equal(t, []int{2}, d.BatchShape())
			require.Equal(t, []int{3}, d.EventShape())
			require.Len(t, d.(dist.Parameterised).Params(), 2)
			draws := d.Sample(torch.NewSource(5, 0), 4000).T()
			require.Equal(t, []int{4000, 2, 3}, countShape(draws))
			require.NoError(t, d.Support().Check(draws))
			for i := range a {
				mass := countFamily("BetaBinomial").countMass([]float64{12, a[i], 4 - a[i]})
				chiSquare(t, mass, countFloats(draws.MustSelect(-1, int64(i), false)), "category %d", i)
				mean, variance := massMoments(mass)
				countClose(t, mean, countFloats(d.Mean().T())[3+i], 1e-12, 0, "mean of category %d", i)
				countClose(t, variance, countFloats(d.Variance().T())[3+i], 1e-12, 0, "variance of category %d", i)
			}
		}
		countVmap(t, "DirichletMultinomial",
			func(p ...any) dist.Distribution { return dist.DirichletMultinomial(p[0], p[1]) },
			[]torch.Tensor{torch.Of(countTensor([]float64{5, 9})), torch.Of(countTensor([]float64{1, 2, 3, 3, 1, 4}, 2, 3))},
			countTensor([]float64{1, 1, 3, 4, 0, 5}, 2, 3))

		for want, f := range map[string]func(){
			"concentration is a number: a tensor with a last dimension": func() { dist.DirichletMultinomial(3, 0.5).Support() },
			"total is 0.5: it must be a whole number, at least 0":       func() { dist.DirichletMultinomial(0.5, w).Support() },
		} {
			err := torch.Do(func(*torch.Scope) error { f(); return nil })
			require.ErrorContains(t, err, "dist.DirichletMultinomial: "+want)
		}
		require.ErrorContains(t, dist.DirichletMultinomial(3, countTensor([]float64{1, 0})).Validate(),
			"concentration is 0 at element 1 of shape [2]: it must be greater than 0")
	})
}
