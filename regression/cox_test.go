package regression_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
)

const kidney = "../bench/regression/data/kidney.csv"

// With flat priors mode and curvature are the estimates and standard errors of coxph of R's survival 3.5, with Efron's
// ties, for the same file. Entries are times by 0, 0.3, 0.7 and 0.1 in turn, rounded down.
func TestCox(t *testing.T) {
	table, err := data.CSV{Factors: []string{"patient"}}.Open(kidney)
	require.NoError(t, err)
	time, err := table.Column("time")
	require.NoError(t, err)
	entry := data.Column{Name: "entry"}
	for i, v := range time.Numbers {
		entry.Numbers = append(entry.Numbers, float64(int(v*[]float64{0, 0.3, 0.7, 0.1}[i%4])))
	}
	table, err = table.With(entry)
	require.NoError(t, err)
	for outcome, want := range map[string][2][]float64{
		"time | cens(censored)": {{0.0031806978, 1.4831372517, -0.2628376460, -1.7819019586, -0.3507941982},
			{0.011146145, 0.358229550, 0.377916626, 0.613352684, 0.399717447}},
		"time | cens(censored) + trunc(lb = entry)": {
			{-0.0019444439, 1.0219628830, -0.1540803426, -1.0925731333, -0.3095455560},
			{0.010414657, 0.349853339, 0.387171540, 0.592679462, 0.395953377}},
	} {
		m, err := regression.Formula{Mean: outcome + " ~ age + sex + disease", Family: regression.Cox{},
			Priors: regression.Priors{"b": dist.Flat()}}.Fit(table)
		require.NoError(t, err)
		require.NotContains(t, m.String(), "intercept")
		const n = 10000
		fit, err := infer.Sample(context.Background(), m, laplace.DenseHessian{}, infer.Options{Seed: 1, Chains: 1, Draws: n})
		require.NoError(t, err)
		mean, err := fit.Mean("b")
		require.NoError(t, err)
		sd, err := fit.SD("b")
		require.NoError(t, err)
		for k, se := range want[1] { // 4 standard errors of n independent draws
			require.InDelta(t, want[0][k], mean[k], 4*se/100, "%s %d", outcome, k)
			require.InEpsilon(t, se, sd[k], 4/141.4, "%s %d", outcome, k)
		}
		hazard, err := m.Expected(fit, regression.Rows{})
		require.NoError(t, err)
		linear, err := m.Linear(fit, regression.Rows{})
		require.NoError(t, err)
		require.InEpsilon(t, hazard.Row(0, 7)[3]/hazard.Row(0, 7)[4],
			math.Exp(linear.Row(0, 7)[3]-linear.Row(0, 7)[4]), 1e-12)
	}
}

// Patients may have frailties of their own; what a partial likelihood does not have is an error that says so.
func TestCoxGroups(t *testing.T) {
	table, err := data.CSV{Factors: []string{"patient"}}.Open(kidney)
	require.NoError(t, err)
	m, err := regression.Formula{Mean: "time | cens(censored) ~ age + sex + (1 | patient)",
		Family: regression.Cox{}}.Fit(table)
	require.NoError(t, err)
	posterior, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Seed: 1, Chains: 2, Draws: 200})
	require.NoError(t, err)
	require.NotContains(t, posterior.Attrs()["gradient"], "eager")
	ratio, err := m.Compare(posterior, regression.Rows{NoGroups: true}, regression.Comparison{Column: "sex", Ratio: true})
	require.NoError(t, err)
	mean, err := ratio.Mean("sex")
	require.NoError(t, err)
	require.Greater(t, mean[0], 2.0) // men have infections sooner
	for name, fails := range map[string]func() error{
		"Predict":       func() error { _, err := m.Predict(posterior, regression.Rows{}); return err },
		"LOO":           func() error { _, err := m.LOO(posterior); return err },
		"LogLikelihood": func() error { _, err := m.LogLikelihood(posterior); return err },
		"Check":         func() error { _, err := m.Check(posterior, 1); return err },
		"R2":            func() error { _, err := m.R2(posterior); return err },
		"KFold": func() error {
			_, err := m.KFold(context.Background(), posterior, hmc.NUTS{}, infer.Options{}, regression.Folds{})
			return err
		},
	} {
		require.ErrorContains(t, fails(), "regression."+name+": the partial likelihood")
	}
}

func TestCoxErrors(t *testing.T) {
	table := tableOf(t, numbers("t", 1, 2, 3, 4), numbers("x", 1, 0, 1, 1), labels("c", "none", "right", "left", "none"),
		labels("all", "right", "right", "right", "right"), numbers("e", 0, 1, 1, 4), numbers("low", -1, 2, 3, 4))
	for formula, want := range map[string]string{
		"t | cens(c) ~ x":                     `row 2, column "t", value "3": it is censored from the left`,
		"t | cens(all) ~ x":                   "needs an event",
		"t | trunc(lb = e) ~ x":               "row 3, column \"t\", value \"4\": its entry 4",
		"t | trunc(lb = e, ub = 10) ~ x":      "trunc(lb = entry)",
		"t | weights(x) ~ x":                  "trunc(lb = entry)",
		"t | trials(4) ~ x":                   "trials() is of",
		"low ~ x":                             `row 0, column "low", value "-1": of the family cox it must be a time`,
		"t ~ 1":                               "no intercept",
		"cbind(t, x) ~ e":                     "cbind",
		"t | cens(all) + trunc(lb = low) ~ x": `row 1, column "t", value "2": its entry 2`,
	} {
		_, err := regression.Formula{Mean: formula, Family: regression.Cox{}}.Fit(table)
		require.ErrorContains(t, err, want, formula)
		require.NotContains(t, strings.ToLower(err.Error()), "panic")
	}
}
