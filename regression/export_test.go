package regression_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/stretchr/testify/require"
)

// fields is a table of n rows with columns of each kind, of which row i has others from other seeds.
func fields(t *testing.T, n, seed int) *data.Table {
	columns := map[string][]float64{}
	of := map[string][]string{}
	for i := range n {
		k := i + seed
		wave := func(a, b float64) float64 { return math.Sin(a*float64(k)) + math.Cos(b*float64(k)) }
		for name, v := range map[string]float64{
			"x": wave(1.3, 0.7), "z": 3 + wave(0.4, 2.1), "dose": float64(1 + k%4), "trials": float64(5 + k%3),
			"y": wave(0.9, 1.7), "count": float64((k * 7) % 5), "yes": float64((k * k) % 5 % 2), "rating": float64(1 + (k*3)%4),
			"won": float64((k * 5) % 5), "share": 0.5 + 0.4*math.Sin(2*float64(k)), "w": wave(2.2, 0.3),
			"positive": 0.2 + math.Abs(wave(1.1, 1.9)), "low": -3, "hour": float64(k % 24)} {
			columns[name] = append(columns[name], v)
		}
		for name, v := range map[string]string{"g": string(rune('a' + k%3)), "h": string(rune('p' + k/3%4)),
			"kind": string(rune('u' + (k*3+k/5)%3)), "size": []string{"s", "m", "l"}[(k+k/7)%3]} {
			of[name] = append(of[name], v)
		}
	}
	var all []data.Column
	for name, v := range columns {
		all = append(all, numbers(name, v...))
	}
	for name, v := range of {
		all = append(all, labels(name, v...))
	}
	return tableOf(t, all...)
}

// What a process without libtorch predicts for new rows is what the library predicts, draw by draw, for every family
// and every kind of term.
func TestExportFitted(t *testing.T) {
	cases := []struct {
		mean   string
		params map[string]string
		family regression.Family
		most   func(*regression.Formula)
	}{
		{"y ~ x*g + I(z^2) + scale(z) + log(positive)", nil, nil, nil},
		{"y ~ 1", nil, nil, nil},
		{"count ~ 1 + (1 | g)", nil, regression.Poisson{}, nil},
		{"count ~ x + offset(log(positive)) + (1 + x + g || h)", nil, regression.Poisson{}, nil},
		{"yes ~ poly(x, 3) + bs(z, df = 5) + C(g, Sum)", nil, regression.Bernoulli{}, nil},
		{"y ~ s(x, k = 5) + s(z, k = 4, by = g) + (1 | g/h)", nil, regression.StudentT{}, nil},
		{"y ~ t2(x, z, k = 4) + factor(dose)", map[string]string{"sigma": "~ x + (1 | g)"}, nil, nil},
		{"y ~ gp(x, k = 6) + mo(dose) + mo(size)", nil, nil, nil},
		{"y ~ (1 | mm(g, kind, weights = cbind(positive, dose)))", nil, regression.SkewNormal{}, nil},
		{"won | trials(trials) ~ x", nil, regression.Binomial{}, nil},
		{"won | trials(trials) ~ x", nil, regression.BetaBinomial{}, nil},
		{"y | trunc(lb = low) ~ x", nil, nil, nil},
		{"y | se(positive) + weights(dose) ~ x", nil, nil, nil},
		{"rating ~ x + (1 | g)", nil, regression.Cumulative{}, nil},
		{"rating ~ x", nil, regression.Sequential{}, nil},
		{"kind ~ x + (1 | g)", nil, regression.Categorical{}, nil},
		{"share ~ x", nil, regression.Beta{}, nil},
		{"positive ~ x", nil, regression.Gamma{}, nil},
		{"positive ~ x", nil, regression.Hurdle{Of: regression.LogNormal{}}, nil},
		{"count ~ x", map[string]string{"zi": "~ z"}, regression.ZeroInflated{Of: regression.NegativeBinomial{}}, nil},
		{"mvbind(y, w) ~ x + (1 | g)", nil, nil, nil},
		{"y ~ x + z + w", nil, nil, func(f *regression.Formula) { f.Horseshoe = &models.Horseshoe{} }},
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d %s", i, c.mean), func(t *testing.T) {
			f := regression.Formula{Mean: c.mean, Params: c.params, Family: c.family}
			if c.most != nil {
				c.most(&f)
			}
			m, err := f.Fit(fields(t, 60, 0))
			require.NoError(t, err)
			posterior, _ := infertest.PosteriorAt(t, m.Program, 12)
			loaded := exportedFit(t, m, posterior)
			for _, n := range []int{1, 7} {
				predictsAlike(t, m, posterior, loaded, fields(t, n, 17))
			}
			updatesAlike(t, m, posterior, loaded, fields(t, 60, 0))
			grad := make([]float64, loaded.Dim())
			require.False(t, math.IsNaN(loaded.LogDensity(make([]float64, loaded.Dim()), grad)))
		})
	}
}

// updatesAlike compares the weights that a row of the training data gives the draws with its log likelihoods, by the
// effective number of particles. Outcomes that are censored, weighted or truncated have no updates.
func updatesAlike(t *testing.T, m *regression.Model, posterior *draws.Draws, loaded *serve.Model, table *data.Table) {
	t.Helper()
	u, err := loaded.Online("", 1)
	if err != nil {
		require.ErrorContains(t, err, "exported without updates: ")
		t.Log(err)
		return
	}
	each, err := m.LogLikelihood(posterior)
	require.NoError(t, err)
	if each.Dim() != table.Len() {
		t.Logf("%d log likelihoods of %d rows", each.Dim(), table.Len())
		return
	}
	for row := range table.Len() {
		ll := each.Pooled(row)
		sum, squares := 0.0, 0.0
		for _, v := range ll {
			w := math.Exp(v - slices.Max(ll))
			sum, squares = sum+w, squares+w*w
		}
		want := sum * sum / squares
		if want < 0.51*float64(len(ll)) {
			continue
		}
		one, err := table.Rows(row)
		require.NoError(t, err)
		in, err := loaded.RowsOf(one)
		require.NoError(t, err)
		require.NoError(t, u.Update(context.Background(), 1, in))
		require.InEpsilon(t, want, u.ESS(), 1e-8)
		return
	}
	t.Log("no row leaves half the particles")
}

// A service of a regression takes the outcome by its column's name, and says so in its description and its errors.
func TestUpdatesByColumns(t *testing.T) {
	m, err := regression.Formula{Mean: "y ~ x + (1 | g)"}.Fit(fields(t, 60, 0))
	require.NoError(t, err)
	posterior, _ := infertest.PosteriorAt(t, m.Program, 12)
	loaded := exportedFit(t, m, posterior)
	u, err := loaded.Online("", 1)
	require.NoError(t, err)
	service := serve.Service{Model: loaded, Online: u}
	h, err := service.Handler()
	require.NoError(t, err)
	asked := func(method, path, body string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Body.String()
	}
	require.Contains(t, asked("POST", "/update", `{"rows": [{"x": 1, "g": "a"}]}`), `give the columns [\"y\"] too`)
	require.Contains(t, asked("GET", "/openapi.json", ""), `"required":["g","x","y"]`)
	require.Contains(t, asked("POST", "/predict", `{"rows": [{"x": 1, "g": "a"}]}`), `"predictions"`)
}

func exportedFit(t *testing.T, m *regression.Model, posterior *draws.Draws) *serve.Model {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, m.ExportFitted(&file, posterior))
	loaded, err := serve.Load(&file)
	require.NoError(t, err)
	return loaded
}

// predictsAlike compares predictions for new rows, to 1e-12 of the largest.
func predictsAlike(t *testing.T, m *regression.Model, posterior *draws.Draws, loaded *serve.Model, table *data.Table) {
	t.Helper()
	rows := regression.Rows{Table: table, Seed: 9}
	expected, err := m.Expected(posterior, rows)
	require.NoError(t, err)
	drawn, err := m.Predict(posterior, rows)
	require.NoError(t, err)
	in, err := loaded.RowsOf(table)
	require.NoError(t, err)
	got, err := loaded.Predict(nil, table.Len(), in, 9)
	require.NoError(t, err)
	for name, want := range map[string]*draws.Draws{"expected": expected, m.Outcome(): drawn} {
		one, err := got.Select(name)
		require.NoError(t, err)
		for chain := range want.Chains() {
			for k := range want.Len(chain) {
				far := infertest.Distance(t, one.Row(chain, k), want.Row(chain, k))
				require.LessOrEqual(t, far, 1e-12, "%s of draw %d", name, k)
			}
		}
	}
}

// A level that the training data do not have is an error that names it, and so are rows beyond a Gaussian process and
// missing values of mi(); where they are there, a column of mi() is one like others.
func TestExportFittedRefuses(t *testing.T) {
	table := fields(t, 60, 0)
	x, err := table.Column("x")
	require.NoError(t, err)
	x.Numbers[3] = math.NaN()
	m, err := regression.Formula{Mean: "y ~ mi(x) + g + gp(z, k = 5) + (1 | h)"}.Fit(table)
	require.NoError(t, err)
	posterior, _ := infertest.PosteriorAt(t, m.Program, 8)
	loaded := exportedFit(t, m, posterior)
	predictsAlike(t, m, posterior, loaded, fields(t, 5, 17))
	row := func(x, z float64, g, h string) *data.Table {
		return tableOf(t, numbers("x", x), numbers("z", z), labels("g", g), labels("h", h))
	}
	for words, table := range map[string]*data.Table{
		`"new"`: row(1, 3, "new", "p"), `group h: the training data do not have the levels "new"`: row(1, 3, "a", "new"),
		"predictions of it reach from": row(1, 300, "a", "p"), "row 1: x is missing": row(math.NaN(), 3, "a", "p"),
		`there is no column "h"`: tableOf(t, numbers("x", 1), numbers("z", 3), labels("g", "a"))} {
		_, err := loaded.RowsOf(table)
		require.ErrorContains(t, err, words)
	}
	_, err = loaded.RowsOf(nil)
	require.ErrorContains(t, err, "there is no table")
	short, err := posterior.Select("sigma")
	require.NoError(t, err)
	require.ErrorContains(t, m.ExportFitted(&bytes.Buffer{}, short), "the draws do not have it")
	require.ErrorIs(t, m.ExportFitted(&bytes.Buffer{}, nil), draws.ErrNoDraws)
}
