package dist

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/torch"
)

// log P(a, t), log Q(a, t) and the derivative in a of the smaller one, from 60 digits of mpmath.
var incompleteGammas = [][5]float64{
	{1e-10, 1e-08, -1.784346508913308e-9, -20.144213591087605, 9999999991.1243606},
	{1e-07, 0.6, -4.5437954312747799e-8, -16.906918105791698, 10000000.65176869},
	{0.03, 1e-200, -13.798923704086704, -1.0167256963409409e-6, -459.98809751152371},
	{0.3, 2.5, -0.011916036651282463, -4.4358222703339107, 4.6839955917940841},
	{0.9, 3.99, -0.014878339176504317, -4.2152788163533609, 2.3424158062689309},
	{1, 4, -0.018485446825886561, -4.0, 2.1698556759224793},
	{2.5, 40, -8.3918251148316136e-16, -34.714103456537936, 3.011008971120079},
	{5.5, 0.01, -30.999458752931675, -3.4443408434378177e-14, -6.3983184278771799},
	{7.9, 3.9, -3.0080426392580587, -0.050649559359574236, -0.83658275085820489},
	{7.9, 4.1, -2.7795994860178258, -0.06407287985170779, -0.79142001728601776},
	{8, 8, -0.60323483285056643, -0.79194967051533501, 0.31465908431375468},
	{8, 1, -11.488311228656885, -1.0249249198016814e-5, -2.1540233100634039},
	{12, 60, -9.7028804496624532e-15, -32.26635359990989, 1.671525771230196},
	{33, 20, -5.3543745082631327, -0.0047386351570191985, -0.55103320603780938},
	{60, 60.5, -0.61108634257448358, -0.78254888350356135, 0.11209636266991756},
	{150, 120, -5.389678268114548, -0.0045738855891200239, -0.24757073675842057},
	{200, 900, 0, -404.00762845711567, 1.5080028403063294},
	{3000, 2950, -1.7097488890902533, -0.19956279525817789, -0.026640869090690146},
	{1e6, 999000, -1.8410218993793996, -0.17275373105601131, -0.0015253899380142494},
	{1e6, 1004000, -3.2345970438739146e-5, -10.339037279116504, 0.004218044753205066},
	{1e9, 1e9, -0.69313877015357276, -0.69315559103705339, 2.5231537430679785e-5},
	{1e9, 1000200000, -1.2731986554013602e-10, -22.784318569656976, 2.0475700837593851e-4},
}

// Of each number by itself, of all at once and of a chain for each under vmap; to 1e-12 and what a rounding of the
// argument changes.
func TestIncompleteGammaValues(t *testing.T) {
	var a, x []float64
	for _, c := range incompleteGammas {
		a, x = append(a, c[0]), append(x, c[1])
	}
	check := func(i int, lower, upper []float64) {
		c := incompleteGammas[i]
		slack := 1e-12 + 0x1p-52*math.Abs(c[0]*c[4])
		require.InDelta(t, 1, math.Exp(lower[i]-c[2]), slack, "log P%v is %v", c, lower[i])
		require.InDelta(t, 1, math.Exp(upper[i]-c[3]), slack, "log Q%v is %v", c, upper[i])
	}
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		leaf := func(x []float64) *ts.Tensor { return torch.Must(torch.Leaf(torch.New(x))).T() }
		as, xs := leaf(a), leaf(x)
		lower, upper := gammaTails(torch.Of(as), torch.Of(xs))
		small := torch.Choose(lower.Lt(upper), lower, upper)
		grad := torch.Must(torch.Grad([]torch.Tensor{small.Sum()}, []torch.Tensor{torch.Of(as), torch.Of(xs)}, nil))
		inA, inX := torch.Must(torch.ToSlice[float64](grad[0])), torch.Must(torch.ToSlice[float64](grad[1]))
		mapped, err := torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
			l, u := gammaTails(in[0], in[1])
			return []torch.Tensor{l, u}, nil
		}, []torch.Tensor{torch.Of(as), torch.Of(xs)}, nil)
		require.NoError(t, err)
		ml, mu := mapped[0].Values(), mapped[1].Values()
		one, other := make([]float64, len(a)), make([]float64, len(a))
		for i, c := range incompleteGammas {
			l, u := gammaTails(torch.Of(a[i]), torch.Of(x[i]))
			one[i], other[i] = l.Item(), u.Item()
			check(i, lower.Values(), upper.Values())
			check(i, ml, mu)
			check(i, one, other)
			slack := 1e-11 + 0x1p-52*math.Abs(c[0]*c[4])
			require.InEpsilon(t, c[4], inA[i], slack, "in a at %v", c)
			density := math.Exp(gammaKernel(torch.Of(a[i]), torch.Of(x[i])).Item() - min(c[2], c[3]))
			require.InEpsilon(t, density, math.Abs(inX[i]), 1e-10+slack, "in t at %v", c)
		}
		return nil
	}))
}

// More elements than a piece are the same as each alone, in a shape that broadcasts, and at the ends.
func TestIncompleteGammaChunks(t *testing.T) {
	require.NoError(t, torch.Do(func(*torch.Scope) error {
		x := torch.Must(torch.NewSource(1, 0).Uniform([]int{70, 100}, gotch.Double, torch.CPU)).Mul(20)
		a := torch.New([]float64{0.5, 11}, 2, 1, 1)
		lower, upper := gammaTails(a, x)
		require.Equal(t, []int{2, 70, 100}, lower.Shape())
		require.InDelta(t, 0, lower.Exp().Add(upper.Exp()).Sub(1).Abs().T().MustMax(false).Float64Values()[0], 1e-14)
		one, _ := gammaTails(torch.Of(11.0), x.At(69, 99))
		lower, _ = gammaTails(torch.Of(11).Add(x.At(0, 0).Mul(0)).Reshape(1, 1, 1), x)
		require.Equal(t, []int{1, 70, 100}, lower.Shape())
		require.InDelta(t, one.Item(), lower.At(0, 69, 99).Item(), 1e-13)
		lower, _ = gammaTails(a, x)
		require.InDelta(t, one.Item(), lower.At(1, 69, 99).Item(), 1e-13)
		ends := torch.New([]float64{0, math.Inf(1)})
		lower, upper = gammaTails(torch.Of(2.5), ends)
		require.Equal(t, []float64{math.Inf(-1), 0}, lower.Values())
		require.Equal(t, []float64{0, math.Inf(-1)}, upper.Values())
		return nil
	}))
}

// Second derivatives against central differences of the first.
func TestIncompleteGammaCurvature(t *testing.T) {
	for _, at := range [][]float64{{0.4, 1.3}, {3, 6}, {9, 9}, {9, 14}, {40, 30}} {
		first := func(p *ts.Tensor) *ts.Tensor {
			v := torch.Of(p)
			lower, _ := gammaTails(v.At(0), v.At(1))
			return torch.Must(torch.Grad([]torch.Tensor{lower}, []torch.Tensor{torch.Of(p)},
				&torch.GradOptions{CreateGraph: true}))[0].T()
		}
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			leaf := func(x []float64) *ts.Tensor { return torch.Must(torch.Leaf(torch.New(x))).T() }
			p := leaf(at)
			g := torch.Of(first(p))
			for i := range at {
				row := torch.Must(torch.Grad([]torch.Tensor{g.At(i)}, []torch.Tensor{torch.Of(p)},
					&torch.GradOptions{KeepGraph: true}))[0].Values()
				for j := range at {
					const h = 1e-5
					up, down := append([]float64{}, at...), append([]float64{}, at...)
					up[j] += h
					down[j] -= h
					diff := (torch.Of(first(leaf(up))).Values()[i] - torch.Of(first(leaf(down))).Values()[i]) / (2 * h)
					// Differences of derivatives good to 1e-14 in steps of 1e-5, and a term of h².
					require.InDelta(t, diff, row[j], 1e-8, "%d, %d at %v", i, j, at)
				}
			}
			return nil
		}))
	}
}
