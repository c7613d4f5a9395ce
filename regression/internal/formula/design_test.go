package formula_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
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

// A formula made of values is that of the text.
func TestByHand(t *testing.T) {
	x, g := formula.Of("x"), formula.Of("g")
	f := formula.Formula{
		Outcome:   formula.Outcome{Value: formula.Of("y"), Weights: formula.Apply("log", formula.Of("z"))},
		Intercept: true,
		Terms:     []formula.Term{{Factors: []formula.Expr{x}}, {Factors: []formula.Expr{g, x}}},
		Groups:    []formula.Group{{Intercept: true, Factors: []formula.Expr{formula.Of("h")}, Correlated: true}},
		Smooths:   []formula.Smooth{{X: formula.Of("z"), K: 5}},
		Offsets:   []formula.Expr{formula.Apply("^", x, formula.Const(2))},
	}
	require.Equal(t, "y | weights(log(z)) ~ x + g:x + s(z, k = 5) + offset(x^2) + (1 | h)", f.String())
	require.Equal(t, []string{"y", "z", "x", "g", "h"}, f.Columns())
	d, err := f.Fit(small(t), formula.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"x", "g[b]:x", "g[c]:x", "s(z, k = 5)[linear]"}, d.Names())
	f.Terms[0].Factors[0] = formula.Of("xx")
	_, err = f.Fit(small(t), formula.Options{})
	require.EqualError(t, err, "formula, column 23: there is no column \"xx\": the nearest is \"x\"\n"+
		"  y | weights(log(z)) ~ xx + g:x + s(z, k = 5) + offset(x^2) + (1 | h)\n                        ^")
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
	require.Equal(t, []string{"d", "b", "a"}, d.Levels("arm"))
	require.Nil(t, d.OutcomeLevels())
	require.Equal(t, []formula.GroupDesign{
		{Name: "0 + arm + dose | site", Factor: "site", Levels: []string{"2.5", "9", "10"},
			Columns: []string{"arm[d]", "arm[b]", "arm[a]", "dose"}, Correlated: true, Members: 1},
		{Name: "1 + dose || site:arm", Factor: "site:arm", Levels: []string{"2.5:d", "9:b", "9:a", "10:b", "10:a"},
			Columns: []string{"Intercept", "dose"}, Members: 1}}, d.Groups())
	r := numbers(t, d, rows)
	require.Equal(t, []int{2, 2, 1, 1, 0, 0}, r.Groups[0].Index)
	require.Equal(t, []float64{0, 1, 0, 2, 0, 0, 1, 1}, r.Groups[0].X[:8])
	require.Equal(t, []int{3, 4, 1, 2, 0, 0}, r.Groups[1].Index)
	require.Nil(t, r.Groups[1].Unseen)
	require.Nil(t, r.Offset)
	fresh := table(t, data.Column{Name: "dose", Numbers: []float64{2, 3, 4}},
		data.Column{Name: "arm", Labels: []string{"a", "b", "a"}},
		data.Column{Name: "site", Numbers: []float64{10, 3, 2.5}})
	r = numbers(t, d, fresh)
	require.Nil(t, r.Y)
	require.Equal(t, []int{2, -1, 0}, r.Groups[0].Index)
	require.Equal(t, []string{"3"}, r.Groups[0].Unseen)
	require.Equal(t, []int{4, -1, -1}, r.Groups[1].Index)
	require.Equal(t, []string{"2.5:a", "3:b"}, r.Groups[1].Unseen)
	require.Equal(t, []int{-1, 1, 0}, r.Groups[1].New)
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
	require.Equal(t, []int{-1, 1}, r.Index)
	require.Equal(t, []string{"z"}, r.Unseen)
	require.Equal(t, []int{0, -1}, r.New)
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
	require.Equal(t, []float64{4, 4, 5, 6}, r.Trials)
	require.Equal(t, []float64{1, 0, 2, 1}, r.Weights)
	require.Equal(t, []float64{2, 2, 2.5, 3}, r.SE)
	r = numbers(t, fit(t, "y | cens(c, u) + trunc(lb = 0, ub = n) ~ 1 + offset(n) + offset(2)", rows, loose), rows)
	require.Equal(t, []int{0, -1, 1, 2}, r.Censored)
	require.Equal(t, 7.0, r.Upper[3])
	require.Equal(t, []float64{0, 0, 0, 0}, r.Lower)
	require.Equal(t, []float64{4, 4, 5, 6}, r.Above)
	require.Equal(t, []float64{6, 6, 7, 8}, r.Offset)
	d := fit(t, "grade | weights(w) ~ y", rows, loose)
	require.Equal(t, []string{"low", "mid", "top", "max"}, d.OutcomeLevels())
	r = numbers(t, d, rows)
	require.Equal(t, []float64{0, 2, 1, 0}, r.Y)
	require.Equal(t, d.OutcomeLevels(), r.Levels)
	r = numbers(t, d, table(t, data.Column{Name: "y", Numbers: []float64{3}}))
	require.Nil(t, r.Y)
	require.Nil(t, r.Weights)
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
	require.ErrorContains(t, err, "Options.EmptyCells")
	d := fit(t, "y ~ age + months + site:arm", mistaken(t), loose)
	require.Len(t, d.Names(), 7)
	nothing := table(t, data.Column{Name: "x", Numbers: []float64{0, 0}})
	require.Equal(t, []string{"x"}, fit(t, "~ 0 + x", nothing, formula.Options{EmptyCells: true}).Names())
}

// A design is the same to the bit after it was written and read. What no design can be is refused.
func TestJSON(t *testing.T) {
	rows := small(t)
	for _, text := range []string{"y ~ scale(x)*g + poly(z, 3) + bs(x, df = 5) + (1 + x | g/h) + (0 + h || w)",
		"g ~ s(x) + s(z, k = 5, by = h) + C(w, Treatment(\"2\")) + center(log(z)) + offset(scale(x)) + " +
			"(1 | mm(g, h))"} {
		checkRows(t, fit(t, text, rows, loose), rows)
	}
	d := fit(t, "y ~ scale(x) + g + s(z, k = 3)", rows, formula.Options{})
	text, err := json.Marshal(d)
	require.NoError(t, err)
	for _, c := range []struct{ from, to, problem string }{
		{`"kelvin_formula":1`, `"kelvin_formula":2`, "its version is 2, expected 1"},
		{`{"kelvin_formula"`, `{"more":1,"kelvin_formula"`, "unknown field"},
		{`y ~ scale`, `y ~ ~ scale`, "expected a column"},
		{`scale(x) + g`, `scale(z) + g`, "scale(z) has the mean and standard deviation []"},
		{`["a","b","c"]`, `["a","b","b"]`, `or "b" twice`},
		{`["a","b","c"]`, `["a"]`, "g has 1 levels"},
		{`k = 3`, `k = 4`, "s(z, k = 4) has 0 numbers"},
		{`(z, k = 3)"`, `(z, k = 3) + (1 | h)"`, `the group "1 | h" has no levels`},
	} {
		changed := []byte(replaceOnce(t, string(text), c.from, c.to))
		was := *d
		err := json.Unmarshal(changed, d)
		require.ErrorContains(t, err, c.problem, c.from)
		require.Equal(t, was, *d)
	}
	_, err = json.Marshal(&formula.Design{})
	require.ErrorContains(t, err, "Formula.Fit makes a design")
}

func replaceOnce(t testing.TB, s, from, to string) string {
	require.Contains(t, s, from)
	return strings.Replace(s, from, to, 1)
}
