package diag

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// summaryDraws are the scalar mu and the vector theta of the golden table.
func summaryDraws(t *testing.T) *draws.Draws {
	t.Helper()
	mu := sample.Mapped(goldenAR(4, 100, 0.3, 0, 9), func(v float64) float64 { return 1000 * v })
	a, b := goldenAR(4, 100, 0.6, 0, 1), goldenAR(4, 100, 0.3, 1.5, 6)
	d, err := draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int{2}, Offset: 1, Size: 2}},
		nil, 4)
	require.NoError(t, err)
	for i := range 100 {
		for c := range 4 {
			require.NoError(t, d.AppendChain(c, []float64{mu[c][i], a[c][i], b[c][i]}, nil))
		}
	}
	return d
}

// az.summary of ArviZ 0.23.4 on the same draws, printed by pandas.
const goldenTable = `
           mean       sd   hdi_3%  hdi_97%  mcse_mean  mcse_sd  ess_bulk  ess_tail  r_hat
mu        6.605  300.203 -496.807  546.032     19.312    8.437     233.0     260.0   1.01
theta[0]  0.012    0.349   -0.629    0.631      0.032    0.014     120.0     242.0   1.03
theta[1]  2.252    1.705   -0.321    4.999      0.805    0.329       5.0      38.0   2.86
`

// The same with hdi_prob=0.9 and round_to=6, which also rounds R-hat and ESS to six digits; compared by number.
var goldenSummary = [][]float64{
	{6.604818, 300.203099, -395.579862, 586.550697, 19.311980, 8.437493, 232.954096, 260.112679, 1.006433},
	{0.012103, 0.349209, -0.519234, 0.612867, 0.031639, 0.013521, 120.466462, 241.568854, 1.029617},
	{2.251861, 1.704689, -0.460195, 4.641884, 0.805067, 0.329083, 4.999223, 37.687760, 2.856948},
}

func TestSummaryGolden(t *testing.T) {
	d := summaryDraws(t)
	table, err := Summary(d, SummaryOptions{})
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(goldenTable, "\n"), table.String())

	table, err = Summary(d, SummaryOptions{HDIProb: 0.9, Decimals: 6})
	require.NoError(t, err)
	for i, want := range goldenSummary {
		r := table.Rows[i]
		got := []float64{r.Mean, r.SD, r.HDILow, r.HDIHigh, r.MCSEMean, r.MCSESD, r.ESSBulk, r.ESSTail, r.RHat}
		for k := range want {
			require.InDelta(t, want[k], got[k], 0.5000001e-6, "%s, column %d", r.Name, k)
		}
	}
	require.Contains(t, table.String(), "hdi_5%")
	require.Contains(t, table.String(), "-395.579862")
}

// Quantiles take the place of the interval; NumPy's quantiles of theta[0] are those of draws, of type 7.
func TestSummaryQuantiles(t *testing.T) {
	d := summaryDraws(t)
	table, err := Summary(d, SummaryOptions{Sites: []string{"theta", "mu"}, Quantiles: []float64{0.05, 0.5, 0.95}})
	require.NoError(t, err)
	require.Equal(t, "theta[0]", table.Rows[0].Name)
	require.Equal(t, "mu", table.Rows[2].Name)
	q, err := d.Quantile("theta")
	require.NoError(t, err)
	for k := range q {
		require.InDelta(t, q[k][0], table.Rows[0].Quantiles[k], 1e-14)
	}
	head, _, _ := strings.Cut(table.String(), "\n")
	require.Equal(t, []string{"mean", "sd", "q5%", "q50%", "q95%", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail",
		"r_hat"}, strings.Fields(head))
	require.True(t, math.IsNaN(table.Rows[0].HDILow))

	table, err = Summary(d, SummaryOptions{HDIProb: 0.5, Quantiles: []float64{0.5}})
	require.NoError(t, err)
	head, _, _ = strings.Cut(table.String(), "\n")
	require.Equal(t, []string{"mean", "sd", "hdi_25%", "hdi_75%", "q50%"}, strings.Fields(head)[:5])
}

func TestSummaryOddities(t *testing.T) {
	x := [][][]float64{
		{{1, 2, 3, 4, 5}, {2, 3, 4, 5}}, // unequal: one draw is dropped
		{{7, 7, 7, 7, 7}, {7, 7, 7, 7}},
		{{1, 2, nan, 4, 5}, {2, 3, 4, 5}},
		{{1, 2, inf, 4, 5}, {2, 3, 4, 5}},
		{{1e308, -1e308, 1e308, -1e308}, {1e308, -1e308, 1e308, -1e308}},
	}
	d, err := draws.New([]draws.Site{{Name: "x", Size: 5, Shape: []int{5}}}, nil, 2)
	require.NoError(t, err)
	for c := range 2 {
		for i := range []int{5, 4}[c] {
			var row []float64
			for _, v := range x {
				row = append(row, v[c][min(i, len(v[c])-1)])
			}
			require.NoError(t, d.AppendChain(c, row, nil))
		}
	}
	table, err := Summary(d, SummaryOptions{Quantiles: []float64{1}})
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 1}, []int{table.Chains, table.Draws, table.Dropped})
	require.InDelta(t, 3, table.Rows[0].Mean, 1e-15) // of 1 2 3 4 and 2 3 4 5
	require.Equal(t, 5.0, table.Rows[0].Quantiles[0])
	require.Equal(t, 7.0, table.Rows[1].Mean)
	require.Equal(t, 0.0, table.Rows[1].SD)
	require.True(t, math.IsNaN(table.Rows[1].RHat))
	require.True(t, math.IsNaN(table.Rows[2].Mean) && math.IsNaN(table.Rows[2].SD) &&
		math.IsNaN(table.Rows[2].Quantiles[0]))
	require.True(t, math.IsInf(table.Rows[3].Mean, 1) && math.IsNaN(table.Rows[3].SD))
	require.InDelta(t, 1e308*math.Sqrt(8.0/7), table.Rows[4].SD, 1e294)
	require.Contains(t, table.String(), "inf")
}

func TestSummaryErrors(t *testing.T) {
	empty, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, nil, 2)
	require.NoError(t, err)
	_, err = Summary(empty, SummaryOptions{})
	require.ErrorIs(t, err, draws.ErrNoDraws)
	_, err = Summary(nil, SummaryOptions{})
	require.ErrorIs(t, err, draws.ErrNoDraws)
	d := summaryDraws(t)
	_, err = Summary(d, SummaryOptions{Sites: []string{"nu"}})
	require.ErrorIs(t, err, draws.ErrUnknownName)
	for _, opt := range []SummaryOptions{{HDIProb: 2}, {HDIProb: nan}, {Quantiles: []float64{-1}}, {Decimals: -1},
		{Decimals: 99}} {
		_, err = Summary(d, opt)
		require.ErrorIs(t, err, draws.ErrRange)
	}
}

// Format writes what String says, and passes on the error of the writer.
func TestFormat(t *testing.T) {
	d := summaryDraws(t)
	table, err := Summary(d, SummaryOptions{})
	require.NoError(t, err)
	report, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	for _, v := range []interface {
		Format(io.Writer) error
		String() string
	}{table, report} {
		var b strings.Builder
		require.NoError(t, v.Format(&b))
		require.Equal(t, v.String(), b.String())
		_, closed := io.Pipe()
		require.NoError(t, closed.Close())
		require.ErrorIs(t, v.Format(closed), io.ErrClosedPipe)
	}
}

func TestTrimZeros(t *testing.T) {
	require.Equal(t, []string{"1.0", "2.0", "NaN"}, trimZeros([]string{"1.00", "2.00", "NaN"}))
	require.Equal(t, []string{"1.25", "2.00"}, trimZeros([]string{"1.25", "2.00"}))
	require.Equal(t, []string{"NaN"}, trimZeros([]string{"NaN"}))
	require.Equal(t, "0.000", fixed(-0.0001, 3))
}

// Huge and tiny figures are in scientific notation, with the digits that the sd gives a meaning; the others
// are as they were.
func TestScientific(t *testing.T) {
	rng := source(97)
	z := normals(rng, 4, 500)
	scaled := func(centre, scale float64) [][]float64 {
		return sample.Mapped(z, func(v float64) float64 { return centre + scale*v })
	}
	table, err := Summary(container(t, []string{"usual", "huge", "tiny", "offset", "small", "constant"},
		[][][]float64{scaled(0, 1), scaled(0, 1e12), scaled(3e-7, 1e-7), scaled(1e9, 1), scaled(2, 0.01),
			scaled(1e-9, 0)}, nil, nil), SummaryOptions{})
	require.NoError(t, err)
	lines := map[string][]string{}
	for _, line := range strings.Split(table.String(), "\n")[1:7] {
		f := strings.Fields(line)
		lines[f[0]] = f[1:]
	}
	for i, name := range []string{"usual", "huge", "tiny", "offset", "small"} {
		row := table.Rows[i]
		for k, want := range []float64{row.Mean, row.SD, row.HDILow, row.HDIHigh, row.MCSEMean, row.MCSESD} {
			got, err := strconv.ParseFloat(lines[name][k], 64)
			require.NoError(t, err)
			// Half a unit of the last of three decimals, or of the last of two digits of a standard error.
			require.InDelta(t, want, got, max(0.0005, 0.05*math.Abs(want)), name)
			if k < 4 && name != "usual" && name != "small" {
				require.InDelta(t, want, got, 1e-3*row.SD, name)
			}
			require.LessOrEqual(t, len(lines[name][k]), 15, "%s: %s", name, lines[name][k])
			require.NotZero(t, got, name)
		}
	}
	require.Regexp(t, `^-?\d\.\d{3}e\+1[01]$`, lines["huge"][0])
	require.Equal(t, fmt.Sprintf("%.3e", table.Rows[1].SD), lines["huge"][1])
	require.Regexp(t, `^\d\.\d{3,4}e-07$`, lines["tiny"][0])
	require.Regexp(t, `^\d\.\de-04$`, lines["small"][4])
	require.Equal(t, "1.000e-09", lines["constant"][0])
	require.Regexp(t, `^-?0\.\d{1,3}$`, lines["usual"][0])
}

// One element of four chains of 1000 draws.
func BenchmarkSummarise(b *testing.B) {
	x := ar1(1, 4, 1000, 0.5)
	for b.Loop() {
		summarise(x, SummaryOptions{HDIProb: 0.94})
	}
}
