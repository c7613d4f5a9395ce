package diag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

var nan, inf = math.NaN(), math.Inf(1)

type lcg = testkit.LCG

var (
	filled      = testkit.Filled
	goldenAR    = testkit.GoldenAR
	goldenHeavy = testkit.GoldenHeavy
	goldenTies  = testkit.GoldenTies
	source      = testkit.Source
	normals     = testkit.Normals
	near        = testkit.Near
	ar1         = testkit.AR1
	meanSE      = testkit.MeanSE
)

// container has one scalar site for each name and the statistics given, [name][chain][draw].
func container(t *testing.T, names []string, x [][][]float64, statNames []string, stats [][][]float64) *draws.Draws {
	t.Helper()
	var sites []draws.Site
	for i, name := range names {
		sites = append(sites, draws.Site{Name: name, Offset: i, Size: 1})
	}
	d, err := draws.New(sites, statNames, len(x[0]))
	require.NoError(t, err)
	for c := range x[0] {
		for i := range x[0][c] {
			var row, stat []float64
			for _, v := range x {
				row = append(row, v[c][i])
			}
			for _, v := range stats {
				stat = append(stat, v[c][i])
			}
			require.NoError(t, d.AppendChain(c, row, stat))
		}
	}
	return d
}

// The parts of RHat and of MCSESD, for chains as RHat takes them.
func rhatBulk(x [][]float64) float64 {
	return ifUsable(x, func(u [][]float64) float64 { return rhat(normalScores(split(u))) })
}

func rhatFolds(x [][]float64) float64 { return ifUsable(x, rhatFolded) }

func rhatSplit(x [][]float64) float64 {
	return ifUsable(x, func(u [][]float64) float64 { y, _ := standardised(u); return rhat(split(y)) })
}

func rhatClassic(x [][]float64) float64 {
	if len(x) < 2 {
		return nan
	}
	return ifUsable(x, func(u [][]float64) float64 { y, _ := standardised(u); return rhat(y) })
}

func essSD(x [][]float64) float64 {
	return ifUsable(x, func(u [][]float64) float64 { y, _ := standardised(u); return ess(split(squares(y))) })
}

// ifUsable is f of chains of equal length, NaN where nothing is defined.
func ifUsable(x [][]float64, f func([][]float64) float64) float64 {
	if u := usable(x); u != nil {
		return f(u)
	}
	return nan
}

// autocovariance is what Autocorrelation divides by its value at lag 0.
func autocovariance(x []float64) []float64 {
	cov := make([]float64, len(x))
	newTransform(len(x)).autocovariance(cov, x)
	return cov
}
