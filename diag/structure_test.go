package diag

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
)

// matrices are draws of a Cholesky factor of a 2x2 correlation, (1 0; r √(1 - r²)), and of a scalar that is 0.
func matrices(t *testing.T) *draws.Draws {
	t.Helper()
	d, err := draws.New([]draws.Site{{Name: "L", Shape: []int{2, 2}, Size: 4}, {Name: "zero", Offset: 4, Size: 1}},
		nil, 4)
	require.NoError(t, err)
	for c, chain := range normals(source(3), 4, 400) {
		for _, r := range chain {
			require.NoError(t, d.AppendChain(c, []float64{1, 0, r, r * r, 0}, nil))
		}
	}
	return d
}

// The zeros and ones of a matrix that moves elsewhere are neither findings nor lines of NaN; a scalar that never moves
// is.
func TestStructuralConstants(t *testing.T) {
	d := matrices(t)
	r, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	require.Len(t, r.Of(CodeConstant), 1, r.String())
	require.Equal(t, "zero", r.Of(CodeConstant)[0].Site)
	table, err := Summary(d, SummaryOptions{})
	require.NoError(t, err)
	require.Len(t, table.Rows, 5)
	require.NotContains(t, table.String(), "L[0,")
	require.Equal(t, 1+3, strings.Count(table.String(), "\n"))
}

// A chain of which all draws are the same, step sizes that differ by a factor of 100 and a chain that was cut off are
// named.
func TestChainsBesideOneAnother(t *testing.T) {
	x := normals(source(4), 4, 100)
	steps := filled(4, 100, func(c, _ int) float64 { return []float64{0.3, 0.4, 0.004, 0.35}[c] })
	for i := range x[2] {
		x[2][i] = 7
	}
	d := container(t, []string{"x"}, [][][]float64{x}, []string{draws.StatStepSize}, [][][]float64{steps})
	r, err := Diagnose(d, DiagnoseOptions{})
	require.NoError(t, err)
	require.Equal(t, "chain 2 never moved: all of its 100 draws are the same", r.Of(codeStill)[0].Message)
	require.Equal(t, Serious, r.Of(codeStill)[0].Severity)
	require.Equal(t, "the step sizes of the chains differ by a factor of 1e+02: 0.004 in chain 2, 0.4 in chain 1",
		r.Of(codeSteps)[0].Message)
	require.InDelta(t, 100, r.Of(codeSteps)[0].Figure, 1e-9)

	for method, found := range map[string]int{"hmc.NUTS": 4, "optim.LBFGS": 0, "laplace.DenseHessian": 0, "": 0} {
		same := container(t, []string{"x"}, [][][]float64{filled(4, 50, func(int, int) float64 { return 2 })}, nil, nil)
		same.SetAttr(draws.AttrMethod, method)
		r, err = Diagnose(same, DiagnoseOptions{})
		require.NoError(t, err)
		require.Len(t, r.Of(codeStill), found, method)
	}
}

// Deep trees are answered with a metric of low rank where its adaptation is cheap, in the words of the method.
func TestLowRankIsAdvised(t *testing.T) {
	for dim, advised := range map[int]bool{2: true, 999: true, 1000: false} {
		a := adviser{method: "hmc.NUTS", family: hamiltonian, depth: 10, dim: dim}
		require.Equal(t, advised, strings.Contains(a.of(CodeTreeDepth, 1), "hmc.NUTS{Metric: hmc.LowRank}"), dim)
	}
}
