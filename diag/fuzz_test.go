package diag

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// FuzzDiag gives any numbers to everything: nothing panics, figures are in their ranges, and those that have no unit
// are the same for draws in another unit, also where squares over- or underflow.
func FuzzDiag(f *testing.F) {
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	testkit.FuzzNumbers(f, [][]float64{
		{},
		{1},
		slices.Repeat([]float64{0, tiny}, 20),
		slices.Repeat([]float64{tiny, 0, 3 * tiny, -tiny}, 8),
		slices.Repeat([]float64{-huge, huge, 0, huge, 1, 2, -3}, 5),
		slices.Repeat([]float64{1e-170, 3e-170, 2e-170, 7e-170}, 5),
		slices.Repeat([]float64{2}, 20),
		{math.NaN(), inf, -inf, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4},
		slices.Repeat([]float64{1, math.Nextafter(1, 2), 1}, 8),
		{1e-76, -9e-308, 1e-76, 2.61773395118493e-310, 2.617733951185e-310, -9e-308, 2.61773395118493e-310, 1e-76},
		slices.Concat(slices.Repeat([]float64{0, tiny}, 4), []float64{0, 6.95e-310},
			slices.Repeat([]float64{0, 256 * tiny}, 12)),
		{9e-308, 9e-308, 4.5e-308, 9e-308, 4.5e-308, 4.5e-308, 3e-303, 4.5e-308},
	}, func(t *testing.T, x []float64) {
		checkFigures(t, x)
		checkTables(t, x)
	})
}

// unitless are figures of two chains.
func unitless(t *testing.T, x []float64) []float64 {
	n := len(x) / 2
	chains := [][]float64{x[:n], x[n : 2*n]}
	figures := append([]float64{RHat(chains), ESSBulk(chains), ESSMean(chains), ESSBasic(chains), EBFMI(x)},
		Autocorrelation(x)...)
	if nested, err := NestedRHat(chains, 2); n > 1 {
		require.NoError(t, err)
		figures = append(figures, nested)
	}
	return figures
}

func checkFigures(t *testing.T, x []float64) {
	first := unitless(t, x)
	for i, v := range first[:4] {
		require.True(t, math.IsNaN(v) || v >= 0, "figure %d of %v is %v", i, x, v)
		require.True(t, i == 0 || !math.IsInf(v, 0), "figure %d of %v is %v", i, x, v)
	}
	largest := 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(v))
	}
	if largest < 0x1p900 { // exact, of subnormal numbers too
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v * 0x1p100
		}
		for i, want := range unitless(t, y) {
			if have := first[i]; !(math.IsNaN(want) && math.IsNaN(have) || want == have) {
				require.InDelta(t, want, have, 1e-9*max(1, math.Abs(want)), "figure %d of %v", i, x)
			}
		}
	}
	chains := [][]float64{x[:len(x)/2], x[len(x)/2:]}
	ESSTail(chains)
	for _, p := range []float64{0, 0.05, 0.5, 1} {
		_, err := ESSQuantile(chains, p)
		require.NoError(t, err)
		_, err = MCSEQuantile(chains, p)
		require.NoError(t, err)
		if low, high, err := HDI(x, p); err == nil && !math.IsNaN(low) {
			require.True(t, low <= high && slices.Contains(x, low) && slices.Contains(x, high), "%v of %v", p, x)
		}
	}
	for _, k := range []Kernel{nil, IMQ{Beta: -0.3}, Gaussian{}} {
		if r, err := KSD(chains[0], chains[1][:len(chains[0])], 1, k); err == nil {
			require.False(t, math.IsNaN(r.KSD) || math.IsInf(r.KSD, 0), "%v", x)
		}
	}
}

// checkTables summarises and diagnoses two chains whose statistics are numbers of the same kind.
func checkTables(t *testing.T, x []float64) {
	stats := []string{draws.StatDivergent, draws.StatEnergy, draws.StatTreeDepth, draws.StatMaxDepth, draws.StatHeld,
		draws.StatStepSize, draws.StatAccept, draws.StatLP, draws.StatTemperature}
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1}}, stats, 2)
	require.NoError(t, err)
	for i, v := range x {
		stat := make([]float64, len(stats))
		for k := range stat {
			stat[k] = x[(i+k)%len(x)]
		}
		require.NoError(t, d.AppendChain(i%2, []float64{v, x[len(x)-1-i]}, stat))
	}
	for _, method := range []string{"", "hmc.NUTS", "sgmcmc.SGLD", "optim.Adam", "vi.Diag"} {
		d.SetAttr(draws.AttrMethod, method)
		if report, err := Diagnose(d, DiagnoseOptions{}); err == nil {
			require.NotEmpty(t, report.String())
		}
	}
	table, err := Summary(d, SummaryOptions{HDIProb: 0.9, Quantiles: []float64{0, 0.5, 1}})
	if err != nil {
		require.ErrorIs(t, err, draws.ErrNoDraws)
		return
	}
	require.NotEmpty(t, table.String())
	for _, r := range table.Rows {
		require.True(t, math.IsNaN(r.SD) || r.SD >= 0 && !math.IsInf(r.Mean, 0), "%+v of %v", r, x)
	}
}
