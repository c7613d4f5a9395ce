package regression_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat/distuv"
)

// clinics is a table of counts in three clinics, by age and treatment.
func clinics(t *testing.T) *data.Table {
	var y, age []float64
	var clinic, treatment []string
	for i := range 60 {
		age = append(age, float64(20+(i*37)%50))
		clinic = append(clinic, []string{"A", "B", "C"}[i%3])
		treatment = append(treatment, []string{"drug", "none"}[(i/3)%2])
		y = append(y, float64((i*i*7)%5+i%3))
	}
	return tableOf(t, numbers("y", y...), numbers("age", age...), labels("clinic", clinic...),
		labels("treatment", treatment...))
}

func sampled(t *testing.T, m *regression.Model, seed uint64) *draws.Draws {
	t.Helper()
	posterior, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 300, Draws: 50,
		Seed: seed, Observer: infer.Silent})
	require.NoError(t, err)
	return posterior
}

// at is an element of a draw by name.
func at(t *testing.T, d *draws.Draws, chain, draw int, name string) float64 {
	t.Helper()
	for i, n := range d.Names() {
		if n == name {
			return d.Row(chain, draw)[i]
		}
	}
	t.Fatalf("no element %q in %q", name, d.Names())
	return 0
}

// What is expected of known and new levels is the formula, draw by draw: new levels have the mean effect, or effects
// from the group's law; a level that is new without the option is an error that names it.
func TestExpected(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ age + treatment + (1 + age | clinic)", Family: regression.Poisson{}}.Fit(
		clinics(t))
	require.NoError(t, err)
	d := sampled(t, m, 1)
	ages := []float64{30, 60, 60}
	rows := regression.Rows{Table: tableOf(t, numbers("age", ages...), labels("treatment", "none", "drug", "drug"),
		labels("clinic", "B", "C", "new")), Seed: 5}
	_, err = m.Expected(d, rows)
	require.ErrorContains(t, err, `group clinic: the training data do not have the levels "new"`)
	rows.MeanNew = true
	got, err := m.Expected(d, rows)
	require.NoError(t, err)
	population := rows
	population.NoGroups = true
	alone, err := m.Expected(d, population)
	require.NoError(t, err)
	for c := range d.Chains() {
		for i := range d.Len(c) {
			for row, level := range []string{"B", "C", ""} {
				eta := at(t, d, c, i, "intercept") + at(t, d, c, i, "b[age]")*ages[row]
				if row == 0 {
					eta += at(t, d, c, i, "b[treatment[none]]")
				}
				require.InEpsilon(t, math.Exp(eta), alone.Row(c, i)[row], 1e-9)
				if level != "" {
					eta += at(t, d, c, i, "r_clinic["+level+",Intercept]") + at(t, d, c, i, "r_clinic["+level+",age]")*ages[row]
				}
				require.InEpsilon(t, math.Exp(eta), got.Row(c, i)[row], 1e-9)
			}
		}
	}

	rows.DrawNew = true
	_, err = m.Expected(d, rows)
	require.ErrorContains(t, err, "DrawNew and MeanNew are both set")
	rows.MeanNew = false
	eta, err := m.Linear(d, rows)
	require.NoError(t, err)
	again, err := m.Linear(d, rows)
	require.NoError(t, err)
	require.Equal(t, eta.Rows(), again.Rows())
	// The effect of a new level at age 60 has the variance of its law, draw by draw.
	n, sum := 0.0, 0.0
	for c := range d.Chains() {
		for i := range d.Len(c) {
			mean := at(t, d, c, i, "intercept") + 60*at(t, d, c, i, "b[age]")
			a, b := at(t, d, c, i, "sd_clinic[Intercept]"), 60*at(t, d, c, i, "sd_clinic[age]")
			v := a*a + b*b + 2*a*b*at(t, d, c, i, "cor_clinic[Intercept,age]")
			z := (eta.Row(c, i)[2] - mean) / math.Sqrt(v)
			sum += z * z
			n++
		}
	}
	require.InDelta(t, 1, sum/n, 4*math.Sqrt(2/n))
}

// Predictions have the mean of what is expected, and counts are whole.
func TestPredict(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ treatment", Family: regression.Poisson{}}.Fit(clinics(t))
	require.NoError(t, err)
	d := sampled(t, m, 2)
	expected, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	predicted, err := m.Predict(d, regression.Rows{Seed: 3})
	require.NoError(t, err)
	require.Equal(t, []string{"y[0]", "y[1]"}, predicted.Names()[:2])
	sum, variance := 0.0, 0.0
	for c := range d.Chains() {
		for i := range d.Len(c) {
			for row, v := range predicted.Row(c, i) {
				require.Equal(t, math.Trunc(v), v)
				sum += v - expected.Row(c, i)[row]
				variance += expected.Row(c, i)[row]
			}
		}
	}
	require.Less(t, math.Abs(sum), 4*math.Sqrt(variance))
}

// Comparisons and slopes are differences and derivatives of what is expected, averaged over rows.
func TestEffects(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ age + treatment", Family: regression.Poisson{}}.Fit(clinics(t))
	require.NoError(t, err)
	d := sampled(t, m, 3)
	ratio, err := m.Compare(d, regression.Rows{}, regression.Comparison{Column: "treatment", Ratio: true})
	require.NoError(t, err)
	require.Equal(t, []string{"treatment[none / drug]"}, ratio.Names())
	slope, err := m.Slope(d, regression.Rows{}, "age", "")
	require.NoError(t, err)
	by, err := m.Slope(d, regression.Rows{}, "age", "treatment")
	require.NoError(t, err)
	require.Equal(t, []string{"age[drug]", "age[none]"}, by.Names())
	mean, err := m.Average(d, regression.Rows{}, "")
	require.NoError(t, err)
	step, err := m.Compare(d, regression.Rows{}, regression.Comparison{Column: "age", Step: 10, By: "treatment"})
	require.NoError(t, err)
	parts, err := m.Average(d, regression.Rows{}, "treatment")
	require.NoError(t, err)
	for c := range d.Chains() {
		for i := range d.Len(c) {
			b := at(t, d, c, i, "b[age]")
			require.InEpsilon(t, math.Exp(at(t, d, c, i, "b[treatment[none]]")), ratio.Row(c, i)[0], 1e-9)
			require.InDelta(t, b*mean.Row(c, i)[0], slope.Row(c, i)[0], 1e-6)
			require.InDelta(t, slope.Row(c, i)[0], (by.Row(c, i)[0]+by.Row(c, i)[1])/2, 1e-9)
			for k := range 2 {
				require.InDelta(t, (math.Exp(10*b)-1)*parts.Row(c, i)[k], step.Row(c, i)[k], 1e-9)
			}
		}
	}
	grid, err := m.Grid("age", 5)
	require.NoError(t, err)
	require.Equal(t, 5, grid.Len())
	_, err = m.Compare(d, regression.Rows{}, regression.Comparison{Column: "treatment", To: "placebo"})
	require.ErrorContains(t, err, `it must be one of the levels ["drug" "none"]`)
	_, err = m.Slope(d, regression.Rows{}, "treatment", "")
	require.ErrorContains(t, err, "is a factor: use Compare")
}

// Priors by coefficient, class and group are those of the model; one that names nothing is an error with the names that
// there are.
func TestPriors(t *testing.T) {
	f := regression.Formula{Mean: "y ~ age + treatment + (1 | clinic)", Family: regression.Poisson{},
		Priors: regression.Priors{"b[age]": dist.Normal(0, 0.1), "sd_clinic": dist.Exponential(2),
			"b": dist.StudentT(3, 0, 1)}}
	m, err := f.Fit(clinics(t))
	require.NoError(t, err)
	var own []string
	for _, p := range m.Priors() {
		if p.Own {
			own = append(own, p.Name+" "+p.Law)
		}
	}
	require.Equal(t, []string{"b[treatment[none]] StudentT(df 3, loc 0, scale 1)", "b[age] Normal(loc 0, scale 0.1)",
		"sd_clinic[Intercept] Exponential(rate 2)"}, own)
	d := sampled(t, m, 4)
	require.Equal(t, []string{"intercept", "b", "b[age]", "sd_clinic"}, m.Reported(d))
	got, err := m.Expected(d, regression.Rows{})
	require.NoError(t, err)
	age, err := clinics(t).Column("age")
	require.NoError(t, err)
	eta := at(t, d, 0, 0, "intercept") + at(t, d, 0, 0, "b[age]")*age.Numbers[0] + at(t, d, 0, 0, "r_clinic[A,Intercept]")
	require.InEpsilon(t, math.Exp(eta), got.Row(0, 0)[0], 1e-9)

	f.Priors = regression.Priors{"b[ages]": dist.Normal(0, 1)}
	_, err = f.Fit(clinics(t))
	require.ErrorContains(t, err, `Priors is of "b[ages]": the model has nothing of that name; it has b[age]`)
}

// Formulas, families and outcomes that do not fit are errors that say what would.
func TestWrong(t *testing.T) {
	for name, c := range map[string]struct {
		f    regression.Formula
		says string
	}{
		"no outcome": {regression.Formula{Mean: "~ age"}, "it needs an outcome before the ~"},
		"no column":  {regression.Formula{Mean: "y ~ agee"}, `"age"`},
		"a link": {regression.Formula{Mean: "y ~ age", Family: regression.Poisson{Link: "logit"}},
			`its links are ["log" "identity"]`},
		"a parameter": {regression.Formula{Mean: "y ~ age", Params: map[string]string{"phi": "~ age"}},
			`are ["sigma"]`},
		"outcomes": {regression.Formula{Mean: "y ~ age", Family: regression.Bernoulli{}},
			`value "3": of the family bernoulli it must be 0 or 1`},
		"negative": {regression.Formula{Mean: "I(y - 3) ~ age", Family: regression.Poisson{}}, "it must be a count"},
		"trials":   {regression.Formula{Mean: "y ~ age", Family: regression.Binomial{}}, "write y | trials(n)"},
		"no trials": {regression.Formula{Mean: "y | trials(9) ~ age"},
			"trials() is of the families binomial and beta_binomial"},
		"a factor": {regression.Formula{Mean: "clinic ~ age"}, `it is a factor of levels ["A" "B" "C"]`},
		"gates": {regression.Formula{Mean: "y ~ age", Family: regression.ZeroInflated{Of: regression.Gamma{}}},
			"ZeroInflated is of Poisson"},
		"collinear": {regression.Formula{Mean: "y ~ age + I(2*age)"}, "age"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.f.Fit(clinics(t))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// The model and predictions read a formula alike: the log density of each row is that of a normal law with what Linear
// gives, for every kind of term, also where the rows are a table; and standard deviations follow their own formula.
func TestModelAndPredictionsAgree(t *testing.T) {
	table := clinics(t)
	other := make([]string, table.Len())
	for i := range other {
		other[i] = []string{"C", "A", "B", "B"}[i%4]
	}
	table, err := table.With(labels("second", other...))
	require.NoError(t, err)
	dose := make([]float64, table.Len())
	for i := range dose {
		dose[i] = math.Sin(float64(3 * i))
	}
	table, err = table.With(numbers("dose", dose...))
	require.NoError(t, err)
	y, err := table.Column("y")
	require.NoError(t, err)
	for _, f := range []regression.Formula{
		{Mean: "y ~ 1"}, {Mean: "y ~ 0 + treatment"},
		{Mean: "y ~ age*treatment"}, {Mean: "y ~ poly(age, 3) + C(clinic, Sum)"},
		{Mean: "y ~ s(age)"}, {Mean: "y ~ s(age, by = treatment)"}, {Mean: "y ~ bs(age, df = 5)"},
		{Mean: "y ~ offset(log(age)) + scale(age)"}, {Mean: "y ~ age + (1 | clinic/treatment)"},
		{Mean: "y ~ age + (1 + age || clinic)"}, {Mean: "y ~ (1 | mm(clinic, second))"},
		{Mean: "y ~ (1 | clinic) + (0 + age | clinic)"}, {Mean: "y ~ (0 + treatment | clinic)"},
		{Mean: "y ~ age", Horseshoe: &models.Horseshoe{}}, {Mean: "y ~ age*treatment", R2D2: &models.R2D2{Mean: 0.3}},
		{Mean: "y ~ t2(age, dose, k = 3)"},
		{Mean: "y ~ age", Params: map[string]string{"sigma": "~ s(age) + (1 | clinic)"}},
	} {
		t.Run(f.Mean, func(t *testing.T) {
			m, err := f.Fit(table)
			require.NoError(t, err)
			d, err := infer.Sample(context.Background(), m, hmc.NUTS{}, infer.Options{Chains: 1, Warmup: 50, Draws: 5,
				Observer: infer.Silent})
			require.NoError(t, err)
			loglik, err := m.LogLikelihood(d)
			require.NoError(t, err)
			eta, err := m.Linear(d, regression.Rows{Table: table})
			require.NoError(t, err)
			same, err := m.Linear(d, regression.Rows{})
			require.NoError(t, err)
			require.InDeltaSlice(t, eta.Row(0, 4), same.Row(0, 4), 1e-12)
			for row, value := range y.Numbers {
				normal := distuv.Normal{Mu: eta.Row(0, 4)[row]}
				if f.Params == nil {
					normal.Sigma = at(t, d, 0, 4, "sigma")
					require.InDelta(t, normal.LogProb(value), loglik.Row(0, 4)[row], 1e-8)
				}
			}
			_, err = m.R2(d)
			require.NoError(t, err)
			_, err = m.Predict(d, regression.Rows{Table: table, Seed: 1})
			require.NoError(t, err)
		})
	}
}

// The standard deviation has a formula of its own, on the scale of its logarithm.
func TestDistributional(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ 1", Params: map[string]string{"sigma": "~ age"}}.Fit(
		tableOf(t, numbers("y", 1, 2, 5), numbers("age", 1, 2, 6)))
	require.NoError(t, err)
	loglik, err := m.LogLikelihood(one(t, map[string][]float64{"intercept": {1.5}, "b_sigma": {0.3},
		"intercept_centred_sigma": {0.2}}))
	require.NoError(t, err)
	for i, y := range []float64{1, 2, 5} {
		normal := distuv.Normal{Mu: 1.5, Sigma: math.Exp(0.2 + 0.3*([]float64{1, 2, 6}[i]-3))}
		require.InDelta(t, normal.LogProb(y), loglik.Row(0, 0)[i], 1e-12)
	}
}

// Categories have no mean: averages of what is expected of them are refused.
func TestEffectsOfCategories(t *testing.T) {
	table := clinics(t)
	m, err := regression.Formula{Mean: "clinic ~ age + treatment", Family: regression.Categorical{}}.Fit(table)
	require.NoError(t, err)
	d := sampled(t, m, 6)
	_, err = m.Compare(d, regression.Rows{}, regression.Comparison{Column: "treatment"})
	require.ErrorContains(t, err, "regression.Compare: the family categorical has an expected value for each category")
	_, err = m.Slope(d, regression.Rows{}, "age", "")
	require.ErrorContains(t, err, "regression.Slope: the family categorical")
	_, err = m.Average(d, regression.Rows{}, "")
	require.ErrorContains(t, err, "regression.Average: the family categorical")
}
