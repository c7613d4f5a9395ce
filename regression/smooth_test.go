package regression_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/gp"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// sameDensity compares the log density of a regression with that of a model that is written by hand, with the same
// sites in the same order, at points from which chains may start.
func sameDensity(t *testing.T, m *regression.Model, hand ppl.Model) {
	t.Helper()
	p, err := ppl.Compile(hand, m.Batch())
	require.NoError(t, err)
	for seed := range uint64(3) {
		start, err := m.Start(m.Batch(), 1, seed+1)
		require.NoError(t, err)
		values, err := start.Values()
		require.NoError(t, err)
		var of [2]float64
		for k, target := range []infer.Target{m.Target(), p.Target()} {
			require.NoError(t, torch.Do(func(*torch.Scope) error {
				point, err := infer.NewParams([]*infer.Layout{m.Layout(), p.Layout()}[k], values)
				if err != nil {
					return err
				}
				logp, _ := target.LogPosterior(point, m.Batch())
				of[k], err = torch.Item(logp)
				of[k] *= float64(target.Data)
				return err
			}))
		}
		require.InDelta(t, of[1], of[0], 1e-10*math.Max(1, math.Abs(of[1])))
	}
}

// column is data of a model.
func column(x ...float64) torch.Tensor { return torch.Of(torch.Must(torch.FromSlice(x))) }

// A monotonic effect is b times the number of steps, times the sum of the shares of the steps below a level: in the
// density, beside a model written by hand, and in predictions; levels are those of the factor, or whole numbers.
func TestMonotonic(t *testing.T) {
	x, y := []float64{2, 5, 3, 3, 2, 5}, []float64{1, 3, 2, 5, 1.5, 4}
	words := []string{"low", "high", "mid", "mid", "low", "high"}
	table := tableOf(t, numbers("x", x...), numbers("y", y...),
		data.Column{Name: "w", Labels: words, Levels: []string{"low", "mid", "high"}})
	m, err := regression.Formula{Mean: "y ~ mo(x)"}.Fit(table)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, m.Covariates())
	mean, s := stat.MeanStdDev(y, nil)
	sameDensity(t, m, func(c *ppl.Ctx) {
		intercept := c.Sample("intercept", dist.Normal(mean, 2.5*s))
		b := c.Sample("b[mo(x)]", dist.Normal(0, 2.5*s/stat.StdDev([]float64{0, 3, 1, 1, 0, 3}, nil)))
		shares := c.Sample("simplex_mo(x)", dist.Dirichlet(column(1, 1, 1)))
		sigma := c.Sample("sigma", dist.Exponential(1/s))
		none, first, all := torch.Zeros(1), shares.Slice(0, 0, 1).Mul(3), shares.Sum().Mul(3).Reshape(1)
		effect := torch.Cat(0, none, all, first, first, none, all)
		c.Observe("y", dist.Normal(effect.Mul(b).Add(intercept), sigma), column(y...))
	})
	d := sampled(t, m, 1)
	require.Equal(t, []string{"intercept", "b[mo(x)]", "sigma", "simplex_mo(x)"}, m.Reported(d))
	eta, err := m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 2, 3, 4, 5))})
	require.NoError(t, err)
	for i, v := range eta.Row(0, 3) {
		want := at(t, d, 0, 3, "intercept")
		for k := range i {
			want += 3 * at(t, d, 0, 3, "b[mo(x)]") * at(t, d, 0, 3, []string{"simplex_mo(x)[3]", "simplex_mo(x)[4]",
				"simplex_mo(x)[5]"}[k])
		}
		require.InDelta(t, want, v, 1e-12)
	}
	_, err = m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 2, 6))})
	require.ErrorContains(t, err, `row 1, column "x", value "6": the training data do not have this level of mo()`)
	_, err = m.Slope(d, regression.Rows{}, "x", "")
	require.ErrorContains(t, err, `"x" has whole numbers alone: use Compare`)
	grid, err := m.Grid("x", 50)
	require.NoError(t, err)
	along, err := grid.Column("x")
	require.NoError(t, err)
	require.Equal(t, []float64{2, 3, 4, 5}, along.Numbers)
	_, err = m.Linear(d, regression.Rows{Table: grid})
	require.NoError(t, err)
	_, err = regression.Formula{Mean: "y ~ mo(y)"}.Fit(table)
	require.ErrorContains(t, err, "mo() is of a factor with its levels in order, or of whole numbers")

	m, err = regression.Formula{Mean: "y ~ mo(w)", Priors: regression.Priors{"b[mo(w)]": dist.Normal(0, 1)}}.Fit(table)
	require.NoError(t, err)
	d = sampled(t, m, 1)
	eta, err = m.Linear(d, regression.Rows{})
	require.NoError(t, err)
	require.InDelta(t, at(t, d, 0, 0, "intercept")+2*at(t, d, 0, 0, "b[mo(w)]"), eta.Row(0, 0)[1], 1e-12)
}

// A Gaussian process has the Hilbert-space approximation of models/gp: in the density beside a model written by hand,
// in predictions, less its mean over the data; beyond its reach there are errors.
func TestProcess(t *testing.T) {
	x, y := []float64{0, 0.5, 1, 2, 3, 4}, []float64{1, 3, 2, 5, 1.5, 4}
	m, err := regression.Formula{Mean: "y ~ gp(x, k = 12)"}.Fit(tableOf(t, numbers("x", x...), numbers("y", y...)))
	require.NoError(t, err)
	mean, s := stat.MeanStdDev(y, nil)
	h := gp.Hilbert{Center: []float64{2}, Half: []float64{2}, Functions: []int{12}}
	sameDensity(t, m, func(c *ppl.Ctx) {
		intercept := c.Sample("intercept", dist.Normal(mean, 2.5*s))
		sd := c.Sample("sd_gp(x, k = 12)", dist.HalfNormal(2.5*s))
		length := c.Sample("length_gp(x, k = 12)", dist.LogNormal(0, 0.7))
		z := c.Sample("z_gp(x, k = 12)", dist.Normal(0, 1).Expand(12))
		sigma := c.Sample("sigma", dist.Exponential(1/s))
		f := h.Basis(column(x...)).MatMul(h.Scales(gp.SquaredExponential{Scale: sd, Length: length}).Mul(z))
		c.Observe("y", dist.Normal(f.Sub(f.Mean()).Add(intercept), sigma), column(y...))
	})
	d := sampled(t, m, 2)
	require.Equal(t, []string{"intercept", "sigma", "length_gp(x, k = 12)", "sd_gp(x, k = 12)"}, m.Reported(d))
	eta, err := m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 2.5, -1))})
	require.NoError(t, err)
	for k, u := range []float64{0.5, -3} { // the box is 3 beyond the centre on both sides
		want := at(t, d, 0, 3, "intercept")
		sd, length := at(t, d, 0, 3, "sd_gp(x, k = 12)"), at(t, d, 0, 3, "length_gp(x, k = 12)")
		for j := range 12 {
			w := math.Pi * float64(j+1) / 6
			spectrum := sd * sd * length * math.Sqrt(2*math.Pi) * math.Exp(-length*length*w*w/2)
			mean := 0.0
			for _, v := range x {
				mean += math.Sin(w*(v-2+3)) / 6
			}
			want += math.Sqrt(spectrum/3) * (math.Sin(w*(u+3)) - mean) * at(t, d, 0, 3, fmt.Sprintf("z_gp(x, k = 12)[%d]", j))
		}
		require.InDelta(t, want, eta.Row(0, 3)[k], 1e-10)
	}
	_, err = m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 2, 6))})
	require.ErrorContains(t, err, "row 2: gp(x, k = 12) is 6, and predictions of it reach from -1 to 5")
	_, err = m.Linear(d, regression.Rows{})
	require.NoError(t, err)
}

// A product with mo() has shares of steps of its own, as in brms: in the density beside a model written by hand, and in
// predictions. That of two has both.
func TestMonotonicProducts(t *testing.T) {
	x, z, y := []float64{2, 4, 3, 3, 2, 4}, []float64{1, -1, 0.5, 2, 3, 1}, []float64{1, 3, 2, 5, 1.5, 4}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...), numbers("w", 0, 1, 2, 1, 2, 0))
	m, err := regression.Formula{Mean: "y ~ mo(x)*z"}.Fit(table)
	require.NoError(t, err)
	mean, s := stat.MeanStdDev(y, nil)
	level := []float64{0, 2, 1, 1, 0, 2}
	product := make([]float64, len(z))
	for i := range z {
		product[i] = level[i] * z[i]
	}
	sameDensity(t, m, func(c *ppl.Ctx) {
		b := c.Sample("b", dist.Normal(0, column(2.5*s/stat.StdDev(z, nil))))
		intercept := c.Sample("intercept_centred", dist.Normal(mean, 2.5*s))
		eta := column(z...).Sub(stat.Mean(z, nil)).Mul(b).Add(intercept)
		alone := c.Sample("b[mo(x)]", dist.Normal(0, 2.5*s/stat.StdDev(level, nil)))
		eta = eta.Add(steps(c.Sample("simplex_mo(x)", dist.Dirichlet(column(1, 1)))).Mul(alone))
		with := c.Sample("b[mo(x):z]", dist.Normal(0, 2.5*s/stat.StdDev(product, nil)))
		eta = eta.Add(steps(c.Sample("simplex_mo(x):z", dist.Dirichlet(column(1, 1)))).Mul(with).Mul(column(z...)))
		sigma := c.Sample("sigma", dist.Exponential(1/s))
		c.Observe("y", dist.Normal(eta, sigma), column(y...))
	})
	d := sampled(t, m, 1)
	of := func(name string) float64 { return at(t, d, 0, 3, name) }
	eta, err := m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 3), numbers("z", 1.5))})
	require.NoError(t, err)
	want := of("intercept") + of("b[z]")*1.5 + 2*of("b[mo(x)]")*of("simplex_mo(x)[3]") +
		2*of("b[mo(x):z]")*of("simplex_mo(x):z[3]")*1.5
	require.InDelta(t, want, eta.Row(0, 3)[0], 1e-12)
	require.Contains(t, m.Covariates(), "x")
	require.True(t, m.Whole("x"))

	m, err = regression.Formula{Mean: "y ~ mo(x):mo(w)"}.Fit(table)
	require.NoError(t, err)
	d = sampled(t, m, 1)
	eta, err = m.Linear(d, regression.Rows{Table: tableOf(t, numbers("x", 4), numbers("w", 1))})
	require.NoError(t, err)
	require.InDelta(t, of("intercept")+2*of("b[mo(x):mo(w)]")*2*of("simplex_mo(x):mo(w)_2[1]"), eta.Row(0, 3)[0], 1e-12)
}

// steps are the sums of shares before the levels 2, 4, 3, 3, 2, 4 of three, times 2.
func steps(shares torch.Tensor) torch.Tensor {
	none, one, both := torch.Zeros(1), shares.Slice(0, 0, 1).Mul(2), shares.Sum().Mul(2).Reshape(1)
	return torch.Cat(0, none, both, one, one, none, both)
}

// gp(x, by = g) is a process with a scale and a length of its own for each level, less its mean in the rows of that
// level, and gp(x, by = z) one that z multiplies, whole.
func TestProcessBy(t *testing.T) {
	x, z, y := []float64{0, 0.5, 1, 2, 3, 4}, []float64{1, -1, 0.5, 2, 3, 1}, []float64{1, 3, 2, 5, 1.5, 4}
	g := []string{"u", "v", "u", "v", "u", "v"}
	table := tableOf(t, numbers("x", x...), numbers("z", z...), numbers("y", y...), labels("g", g...))
	mean, s := stat.MeanStdDev(y, nil)
	h := gp.Hilbert{Center: []float64{2}, Half: []float64{2}, Functions: []int{6}}
	process := func(c *ppl.Ctx, name string) torch.Tensor {
		sd := c.Sample("sd_"+name, dist.HalfNormal(2.5*s))
		length := c.Sample("length_"+name, dist.LogNormal(0, 0.7))
		w := c.Sample("z_"+name, dist.Normal(0, 1).Expand(6))
		return h.Basis(column(x...)).MatMul(h.Scales(gp.SquaredExponential{Scale: sd, Length: length}).Mul(w))
	}
	m, err := regression.Formula{Mean: "y ~ gp(x, k = 6, by = g)"}.Fit(table)
	require.NoError(t, err)
	sameDensity(t, m, func(c *ppl.Ctx) {
		eta := c.Sample("intercept", dist.Normal(mean, 2.5*s))
		for _, level := range []string{"u", "v"} {
			in := make([]float64, len(g))
			for i := range g {
				if g[i] == level {
					in[i] = 1
				}
			}
			f := process(c, "gp(x, k = 6, by = g)["+level+"]")
			eta = eta.Add(f.Sub(f.Mul(column(in...)).Sum().Div(3)).Mul(column(in...)))
		}
		c.Observe("y", dist.Normal(eta, c.Sample("sigma", dist.Exponential(1/s))), column(y...))
	})
	sampled(t, m, 1)
	m, err = regression.Formula{Mean: "y ~ gp(x, k = 6, by = z)"}.Fit(table)
	require.NoError(t, err)
	sameDensity(t, m, func(c *ppl.Ctx) {
		eta := c.Sample("intercept", dist.Normal(mean, 2.5*s)).Add(process(c, "gp(x, k = 6, by = z)").Mul(column(z...)))
		c.Observe("y", dist.Normal(eta, c.Sample("sigma", dist.Exponential(1/s))), column(y...))
	})
	_, err = m.Linear(sampled(t, m, 1), regression.Rows{Table: tableOf(t, numbers("x", 2), numbers("z", 2))})
	require.NoError(t, err)
}
