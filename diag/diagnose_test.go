package diag

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// stat is a statistic with the same numbers in all chains, zero but for the draws named.
func stat(m, n int, base, special float64, at ...int) [][]float64 {
	return filled(m, n, func(c, i int) float64 {
		for _, k := range at {
			if k == i {
				return special
			}
		}
		return base
	})
}

func codes(r *Report) map[Code]int {
	m := map[Code]int{}
	for _, f := range r.Findings {
		m[f.Code]++
	}
	return m
}

// A good run has no findings.
func TestDiagnoseClean(t *testing.T) {
	rng := source(20)
	x := normals(rng, 4, 500)
	d := container(t, []string{"x"}, [][][]float64{x},
		[]string{draws.StatDivergent, draws.StatTreeDepth, draws.StatEnergy},
		[][][]float64{stat(4, 500, 0, 0), stat(4, 500, 3, 3), normals(rng, 4, 500)})
	r, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	require.True(t, r.OK())
	require.Empty(t, r.Findings)
	require.Equal(t,
		"4 chains of 500 draws; checked divergence, tree_depth, ebfmi, rhat, ess_bulk, ess_tail.\nNo problems found.\n",
		r.String())
}

// What is worth knowing is told apart from problems, by a word before it.
func TestReportNotes(t *testing.T) {
	r := Report{Chains: 4, Draws: 500, Findings: []Finding{{Code: CodeConstant, Message: "x is 1 in all draws"}}}
	require.Equal(t, "4 chains of 500 draws.\nNo problems found. Notes:\ninfo: x is 1 in all draws\n", r.String())
	r.Findings = append(r.Findings, Finding{Code: CodeHeld, Severity: Warning, Message: "held"})
	require.NotContains(t, r.String(), "No problems")
}

// Each check finds what was put there, with its figure and threshold.
func TestDiagnoseFinds(t *testing.T) {
	rng := source(21)
	good, walk := normals(rng, 2, 500), ar1(1, 2, 500, 0.98)
	apart := filled(2, 500, func(c, i int) float64 { return good[c][i] + 5*float64(c) })
	constant, bad := stat(2, 500, 7, 7), stat(2, 500, 1, nan, 3)
	names := []string{"good", "apart", "constant", "bad"}
	x := [][][]float64{good, apart, constant, bad}
	for _, statNames := range [][]string{
		{draws.StatDivergent, draws.StatTreeDepth, draws.StatEnergy}, {"divergent__", "treedepth__", "energy__"},
		{"diverging", "tree_depth", "energy"},
	} {
		d := container(t, names, x, statNames, [][][]float64{stat(2, 500, 0, 1, 5, 6, 7), stat(2, 500, 4, 8, 9), walk})
		r, err := Diagnose(d, DiagnoseOptions{MaxTreeDepth: 8})
		require.NoError(t, err)
		require.False(t, r.OK())
		got := codes(r)
		require.Equal(t, map[Code]int{CodeDivergence: 1, CodeTreeDepth: 1, CodeEBFMI: 2, CodeRHat: 1, CodeESSBulk: 1,
			CodeESSTail:  got[CodeESSTail],
			CodeConstant: 1, CodeNotFinite: 1}, got)

		f := r.Of(CodeDivergence)[0]
		require.Equal(t, 6.0, f.Figure)
		require.Equal(t, Serious, f.Severity)
		require.Equal(t, "6 of 1000 transitions diverged (0.6%)", f.Message)
		require.Contains(t, f.Advice, "target acceptance")

		f = r.Of(CodeTreeDepth)[0]
		require.Equal(t, []float64{2, 8}, []float64{f.Figure, f.Threshold})

		f = r.Of(CodeEBFMI)[1]
		require.Equal(t, 1, f.Chain)
		require.InDelta(t, EBFMI(walk[1]), f.Figure, 1e-12)
		require.Equal(t, 0.3, f.Threshold)

		f = r.Of(CodeRHat)[0]
		require.Equal(t, "apart", f.Site)
		require.InDelta(t, RHat(apart), f.Figure, 1e-12)
		require.Equal(t, 1.01, f.Threshold)

		f = r.Of(CodeESSBulk)[0]
		require.Equal(t, "apart", f.Site)
		require.Equal(t, 200.0, f.Threshold)

		for i := 1; i < len(r.Findings); i++ {
			require.GreaterOrEqual(t, r.Findings[i-1].Severity, r.Findings[i].Severity)
		}
		require.Contains(t, r.String(), "serious: apart: R-hat is")
		require.Contains(t, r.String(), "info: constant is 7 in all draws")
	}
}

// What is missing is skipped and said so; what is short or alone is said too.
func TestDiagnoseSkips(t *testing.T) {
	d := container(t, []string{"x"}, [][][]float64{{{1, 2, 3}}}, nil, nil)
	r, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	require.Equal(t, map[Code]int{CodeSkipped: 3, codeOneChain: 1, codeFewDraws: 1}, codes(r))
	require.Contains(t, r.String(), `divergence was not checked: the draws have no statistic "divergent"`)
	require.Equal(t, []Code{CodeRHat, CodeESSBulk, CodeESSTail}, r.Checked)

	uneven, err := draws.New([]draws.Site{{Name: "x", Size: 1}}, nil, 2)
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, uneven.AppendChain(0, []float64{float64(i % 7)}, nil))
		if i < 40 {
			require.NoError(t, uneven.AppendChain(1, []float64{float64(i % 5)}, nil))
		}
	}
	r, err = Diagnose(uneven, DiagnoseOptions{})
	require.NoError(t, err)
	require.Equal(t, "chains have 40 to 50 draws: chain 1 has not finished", r.Of(codeUnequal)[0].Message)
}

func TestDiagnoseErrors(t *testing.T) {
	d := container(t, []string{"x"}, [][][]float64{{{1, 2, 3, 4}}}, nil, nil)
	for _, opt := range []DiagnoseOptions{{RHat: -1}, {RHat: nan}, {EBFMI: -1}, {ESSPerChain: -1}, {MaxTreeDepth: -1}} {
		_, err := Diagnose(d, opt)
		require.ErrorIs(t, err, draws.ErrRange)
	}
	_, err := Diagnose(d, DiagnoseOptions{Sites: []string{"y"}})
	require.ErrorIs(t, err, draws.ErrUnknownName)
	_, err = Diagnose(nil, DiagnoseOptions{})
	require.ErrorIs(t, err, draws.ErrNoDraws)
}

func TestSeverity(t *testing.T) {
	require.Equal(t, "serious", Serious.String())
	require.Equal(t, "severity(9)", Severity(9).String())
	require.False(t, math.IsNaN(float64(Info)))
}
