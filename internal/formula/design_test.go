package formula_test

import (
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// What is read is written as it was understood.
func TestString(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"recall ~ age + treatment*dose + s(hour) + offset(log(time)) + (1 + dose | clinic) + (a || g) + (1 | g/h) + " +
			"(1 | mm(a,b))", "recall ~ age + treatment + dose + treatment:dose + s(hour) + offset(log(time)) + " +
			"(1 + dose | clinic) + (1 + a || g) + (1 | g:h) + (1 | mm(a, b))"},
		{"y~1", "y ~ 1"}, {"~0+x", "~ 0 + x"}, {"~ x - 1", "~ 0 + x"}, {"~ -1 + x", "~ 0 + x"}, {"~ 0 + x + 1", "~ x"},
		{"~ a:b + b:a + a", "~ a + a:b"}, {"~ (a+b+c)^2 - a:b", "~ a + b + c + a:c + b:c"},
		{"~ (a+b)/c", "~ a + b + a:b:c"},
		{"~ a/(b+c)", "~ a + a:b + a:c"}, {"~ b %in% a", "~ b:a"}, {"~ (1+a)*b", "~ a + b + a:b"}, {"~ a*b*c - a:b:c",
			"~ a + b + c + a:b + a:c + b:c"}, {"~ a:a", "~ a"}, {"~ I(-x^2/(2*(z+1)))", "~ I(-x^2 / (2 * (z + 1)))"},
		{"~ I(a-(b-c)-d)", "~ I(a - (b - c) - d)"}, {"~ I((a^b)^c) + I(a^b^c)", "~ I((a^b)^c) + I(a^b^c)"},
		{"~ `a b`:x_1", "~ `a b`:x_1"}, {"~ bs(x,knots=c(-1,2),degree=2)", "~ bs(x, knots = c(-1, 2), degree = 2)"},
		{"~ s(x,bs='cr',k=10)", "~ s(x)"}, {"~ s(x, 5, z)", "~ s(x, k = 5, by = z)"}, {"~ 1e6:x", ""},
		{"y | trunc(ub=9) + weights(w) + cens(c,u) ~ 1", "y | cens(c, u) + weights(w) + trunc(ub = 9) ~ 1"},
		{"~ (a*b | g + h)", "~ (1 + a + b + a:b | g) + (1 + a + b + a:b | h)"},
		{"~ (0+x|a:b) + (1 | mm(a, b, weights = cbind(v, w)))",
			"~ (0 + x | a:b) + (1 | mm(a, b, weights = cbind(v, w)))"},
		{"~ x ** 2 + x", "~ x"}, {"~ C(g, 'Sum')", ""}, {"~ C(g, Treatment('b'))", `~ C(g, Treatment("b"))`},
	} {
		f, err := formula.Parse(c.text)
		if c.want == "" {
			require.Error(t, err, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, f.String(), c.text)
	}
}

// Names, levels and groups are those of the training data; levels without a row are none.
func TestDesign(t *testing.T) {
	rows := table(t, data.Column{Name: "y", Numbers: []float64{1, 2, 3, 4, 5, 6}},
		data.Column{Name: "dose", Numbers: []float64{2, 1, 5, 2, 4, 9}},
		data.Column{Name: "arm", Labels: []string{"b", "a", "b", "a", "d", "d"}, Levels: []string{"d", "c", "b", "a"}},
		data.Column{Name: "site", Numbers: []float64{10, 10, 9, 9, 2.5, 2.5}})
	d := fit(t, "y ~ arm + dose + (0 + arm + dose | site) + (dose || site:arm)", rows, formula.Options{})
	require.Equal(t, []string{"arm[b]", "arm[a]", "dose"}, d.Names())
	require.True(t, d.Intercept())
	require.Equal(t, []formula.GroupDesign{
		{Name: "0 + arm + dose | site", Factor: "site", Levels: []string{"2.5", "9", "10"},
			Columns: []string{"arm[d]", "arm[b]", "arm[a]", "dose"}, Correlated: true, Members: 1},
		{Name: "1 + dose || site:arm", Factor: "site:arm", Levels: []string{"2.5:d", "9:b", "9:a", "10:b", "10:a"},
			Columns: []string{"Intercept", "dose"}, Members: 1}}, d.Groups())
	r := numbers(t, d, rows)
	require.Equal(t, []int{2, 2, 1, 1, 0, 0}, r.Groups[0].Index)
	require.Equal(t, []float64{0, 1, 0, 2, 0, 0, 1, 1}, r.Groups[0].X[:8])
	require.Equal(t, []int{3, 4, 1, 2, 0, 0}, r.Groups[1].Index)
	require.Empty(t, r.Groups[1].Unseen)
	require.Nil(t, r.Offset)
	fresh := table(t, data.Column{Name: "dose", Numbers: []float64{2, 3, 4}},
		data.Column{Name: "arm", Labels: []string{"a", "b", "a"}},
		data.Column{Name: "site", Numbers: []float64{10, 3, 2.5}})
	r = numbers(t, d, fresh)
	require.Nil(t, r.Y)
	require.Equal(t, []int{2, 3, 0}, r.Groups[0].Index)
	require.Equal(t, []string{"3"}, r.Groups[0].Unseen)
	require.Equal(t, []int{4, 6, 5}, r.Groups[1].Index)
	require.Equal(t, []string{"2.5:a", "3:b"}, r.Groups[1].Unseen)
}

// Multi-memberships share levels, and have weights of sum 1.
func TestMembers(t *testing.T) {
	rows := table(t, data.Column{Name: "a", Labels: []string{"s", "t", "s"}},
		data.Column{Name: "b", Labels: []string{"u", "s", "u"}}, data.Column{Name: "v", Numbers: []float64{1, 2, 0}},
		data.Column{Name: "w", Numbers: []float64{3, 2, 7}})
	d := fit(t, "~ (1 | mm(a, b))", rows, formula.Options{})
	require.Equal(t, []string{"s", "t", "u"}, d.Groups()[0].Levels)
	require.Equal(t, 2, d.Groups()[0].Members)
	r := numbers(t, d, rows).Groups[0]
	require.Equal(t, []int{0, 2, 1, 0, 0, 2}, r.Index)
	require.Equal(t, slices.Repeat([]float64{0.5}, 6), r.Weights)
	r = numbers(t, fit(t, "~ (1 | mm(a, b, weights = cbind(v, w)))", rows, formula.Options{}), rows).Groups[0]
	require.Equal(t, []float64{0.25, 0.75, 0.5, 0.5, 0, 1}, r.Weights)
	r = numbers(t, d, table(t, data.Column{Name: "a", Labels: []string{"z"}},
		data.Column{Name: "b", Labels: []string{"t"}})).Groups[0]
	require.Equal(t, []int{3, 1}, r.Index)
	require.Equal(t, []string{"z"}, r.Unseen)
}

// The left side gives numbers, indices of levels, and what is added.
func TestOutcome(t *testing.T) {
	rows := table(t, data.Column{Name: "y", Numbers: []float64{1, 2, 3, 4}},
		data.Column{Name: "n", Numbers: []float64{4, 4, 5, 6}}, data.Column{Name: "w", Numbers: []float64{1, 0, 2, 1}},
		data.Column{Name: "c", Labels: []string{"none", "left", "right", "interval"}},
		data.Column{Name: "u", Numbers: []float64{math.NaN(), math.NaN(), math.NaN(), 7}},
		data.Column{Name: "grade", Labels: []string{"low", "top", "mid", "low"},
			Levels: []string{"low", "mid", "top", "max"}})
	r := numbers(t, fit(t, "log(y) | trials(n) + weights(w) + se(n / 2) ~ 1", rows, loose), rows)
	require.Equal(t, []float64{math.Log(1), math.Log(2), math.Log(3), math.Log(4)}, r.Y)
	require.Equal(t, []float64{4, 4, 5, 6}, r.Added["trials"])
	require.Equal(t, []float64{1, 0, 2, 1}, r.Added["weights"])
	require.Equal(t, []float64{2, 2, 2.5, 3}, r.Added["se"])
	r = numbers(t, fit(t, "y | cens(c, u) + trunc(lb = 0, ub = n) ~ 1 + offset(n) + offset(2)", rows, loose), rows)
	require.Equal(t, []float64{0, -1, 1, 2}, r.Added["cens"])
	require.Equal(t, 7.0, r.Added["upper"][3])
	require.Equal(t, []float64{0, 0, 0, 0}, r.Added["lower"])
	require.Equal(t, []float64{4, 4, 5, 6}, r.Added["above"])
	require.Equal(t, []float64{6, 6, 7, 8}, r.Offset)
	d := fit(t, "grade | weights(w) ~ y", rows, loose)
	r = numbers(t, d, rows)
	require.Equal(t, []float64{0, 2, 1, 0}, r.Y)
	require.Equal(t, []string{"low", "mid", "top", "max"}, r.Levels)
	r = numbers(t, d, table(t, data.Column{Name: "y", Numbers: []float64{3}}))
	require.Nil(t, r.Y)
	require.Nil(t, r.Added["weights"])
	_, err := d.Rows(table(t, data.Column{Name: "y", Numbers: []float64{3}},
		data.Column{Name: "grade", Labels: []string{"low"}}))
	require.EqualError(t, err, `data: column "w": there is no column "w": the nearest is "y"`)
}

// Options keep what is an error otherwise.
func TestOptions(t *testing.T) {
	f, err := formula.Parse("y ~ age + months + site:arm")
	require.NoError(t, err)
	_, err = f.Fit(mistaken(t), formula.Options{EmptyCells: true})
	require.ErrorContains(t, err, "other columns determine")
	_, err = f.Fit(mistaken(t), formula.Options{Collinear: true})
	require.ErrorContains(t, err, "Formula.EmptyCells")
	d := fit(t, "y ~ age + months + site:arm", mistaken(t), loose)
	require.Len(t, d.Names(), 7)
	nothing := table(t, data.Column{Name: "x", Numbers: []float64{0, 0}})
	require.Equal(t, []string{"x"}, fit(t, "~ 0 + x", nothing, formula.Options{EmptyCells: true}).Names())
}

// A monotonic effect has the places of levels, of a factor or of whole numbers, a Gaussian process its numbers, and
// counts of several categories a column for each.
func TestFunctions(t *testing.T) {
	rows := table(t, data.Column{Name: "a", Numbers: []float64{1, 0, 4}},
		data.Column{Name: "b", Numbers: []float64{2, 3, 0}},
		data.Column{Name: "n", Numbers: []float64{3, 3, 4}}, data.Column{Name: "x", Numbers: []float64{3, 1, 4}},
		data.Column{Name: "size", Labels: []string{"big", "small", "mid"}, Levels: []string{"small", "mid", "big"}})
	d := fit(t, "cbind(a, b) | trials(n) ~ mo(x) + mo(size) + gp(x, k = 5) + gp(n)", rows, loose)
	require.Equal(t, []formula.SmoothDesign{
		{Name: "mo(x)", Kind: "product", Columns: 1, K: 10,
			Factors: []formula.Factor{{Column: "x", Levels: []string{"1", "2", "3", "4"}}}},
		{Name: "mo(size)", Kind: "product", Columns: 1, K: 10,
			Factors: []formula.Factor{{Column: "size", Levels: []string{"small", "mid", "big"}}}},
		{Name: "gp(x, k = 5)", Kind: "gp", Columns: 1, K: 5}, {Name: "gp(n)", Kind: "gp", Columns: 1, K: 30}}, d.Smooths())
	r := numbers(t, d, rows)
	require.Equal(t, [][]float64{{2, 0, 3}, {2, 0, 1}, {3, 1, 4}, {3, 3, 4}}, r.Smooths)
	require.Equal(t, []float64{1, 2, 0, 3, 4, 0}, r.Y)
	require.Equal(t, []string{"a", "b"}, r.Levels)
	for text, says := range map[string]string{
		"~ mo(b):zero": "it is 0 in each row",
		"~ mo(b)":      "", "~ mo(s)": "there is no column", "~ gp(same)": "gp() needs different ones",
		"~ mo(half)": "mo() is of a factor with its levels in order", "cbind(a, size) ~ 1": "a number is needed here",
		"cbind(a, b) | trials(x) ~ 1": `value "3": the sum of its counts must be its number of trials, 1`,
	} {
		f, err := formula.Parse(text)
		require.NoError(t, err)
		with, err := rows.With(data.Column{Name: "same", Numbers: []float64{1, 1, 1}})
		require.NoError(t, err)
		with, err = with.With(data.Column{Name: "zero", Numbers: []float64{0, 0, 0}})
		require.NoError(t, err)
		with, err = with.With(data.Column{Name: "half", Numbers: []float64{1, 1.5, 2}})
		require.NoError(t, err)
		_, err = f.Fit(with, formula.Options{Collinear: true})
		if says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, says, text)
	}
	_, err := d.Rows(table(t, data.Column{Name: "x", Numbers: []float64{5}},
		data.Column{Name: "n", Numbers: []float64{5}},
		data.Column{Name: "size", Labels: []string{"mid"}}))
	require.ErrorContains(t, err, "the training data do not have this level of mo()")
}
