package regression_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/regression"
)

// The columns of a formula are those that it reads, of a model those of its effects and of its predictions.
func TestColumns(t *testing.T) {
	f := regression.Formula{Mean: "log(y + 1) ~ treatment + s(age) + (1 | clinic)",
		Params: map[string]string{"sigma": "~ age"}}
	columns, err := f.Columns()
	require.NoError(t, err)
	require.Equal(t, []string{"age", "clinic", "treatment", "y"}, columns)
	m, err := f.Fit(clinics(t))
	require.NoError(t, err)
	require.Equal(t, []string{"age", "treatment"}, m.Covariates())
	require.Equal(t, []string{"age", "clinic", "treatment"}, m.Predictors())
	require.Len(t, m.Observed(), 60)

	m, err = regression.Formula{Mean: "y | trials(age) ~ treatment", Family: regression.Binomial{}}.Fit(clinics(t))
	require.NoError(t, err)
	grid, err := m.Grid("treatment", 2)
	require.NoError(t, err)
	trials, err := grid.Column("age")
	require.NoError(t, err)
	require.Equal(t, math.Trunc(trials.Numbers[0]), trials.Numbers[0], "a number of trials is whole")
	_, err = regression.Formula{Mean: "y ~ (1 | "}.Columns()
	require.ErrorContains(t, err, "column 10")
}
