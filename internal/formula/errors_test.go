package formula_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// mistakes are those of texts.
var mistakes = []struct {
	text    string
	column  int
	problem string
}{
	{``, 1, `expected a column, a function, a number or a parenthesis, not the end of the formula`},
	{`y`, 2, `a formula has a ~, with the outcome on its left: y ~ x; or ~ x without one`},
	{`y ~`, 4, `expected a column, a function, a number or a parenthesis, not the end of the formula`},
	{`y ~ x ~ z`, 7, `this is a second ~: a formula has one, between the outcome and the terms`},
	{`y ~ (x + z`, 5, `this parenthesis is not closed: it needs a )`},
	{`y ~ x)`, 6, `expected an operator or the end, not ")"`},
	{`y ~ x z`, 7, `expected an operator or the end, not "z"`},
	{`y ~ x + * z`, 9, `expected a column, a function, a number or a parenthesis, not "*"`},
	{`y ~ x & z`, 7, `'&' is no sign of a formula: put a comparison into a column of the table`},
	{`y ~ x$z`, 6,
		`'$' is no sign of a formula: name a column, in backquotes where it has other characters than ` +
			`letters, digits, _ and .`},
	{`y ~ x %o% z`, 7, `the only sign with % is %in%`},
	{`y ~ 3x`, 5,
		`it is no number that is written as 2, 0.5 or 1e-3 and at most 1.8e308; a name that begins with a ` +
			`digit stands in backquotes`},
	{"y ~ `x", 5, "the quotation has no end: it needs another `"},
	{"y ~ ``", 5, `a name must not be empty`},
	{`y ~ 'x'`, 5, `a term is a column or a function of columns, not "x"`},
	{`y ~ TRUE`, 5, `a term is a column or a function of columns, not TRUE`},
	{`y ~ .`, 5, `a point for all other columns is not read: name them`},
	{`y ~ 2*x`, 5, `a number is no factor of a product: arithmetic stands in I()`},
	{`y ~ x + 2`, 9, `2 is no term: 1 is the constant, 0 leaves it out, and arithmetic stands in I()`},
	{`y ~ x^z`, 7, `the power of terms is a whole number from 1 to 20: a power of a column is I(x^2)`},
	{`y ~ x^0.5`, 7, `the power of terms is a whole number from 1 to 20: a power of a column is I(x^2)`},
	{`y ~ -x`, 5, `a minus takes a term out of those before it: there is none`},
	{`y ~ lag(x)`, 5,
		`there is no function "lag": the nearest is "log"; other functions go into a column of the table`},
	{`y ~ sqr(x)`, 5,
		`there is no function "sqr": the nearest is "sqrt"; other functions go into a column of the table`},
	{`y ~ log(x, 2)`, 5,
		`log() takes one argument, and is the natural logarithm: others are log2() and log10()`},
	{`y ~ pow(x)`, 5, `pow() takes a number and its power`},
	{`y ~ I(x:z)`, 8, `: is no arithmetic: it makes terms, outside functions`},
	{`y ~ log(poly(x, 2))`, 9, `poly() is a term, and no number for another function`},
	{`y ~ log(s(x))`, 9, `s() does not stand here: it is added to the right or the left side, or groups`},
	{`y ~ log('x')`, 9, `expected a number or a column, not "x"`},
	{`y ~ poly(x, 0)`, 13, `the degree of poly() is a whole number from 1 to 50`},
	{`y ~ poly(x, 2, raw = 1)`, 22, `expected TRUE or FALSE, not 1`},
	{`y ~ poly(x, 2, TRUE, 3)`, 22, `poly() has too many arguments: it takes "x", "degree", "raw"`},
	{`y ~ poly(x, knots = 3)`, 21, `poly() has no argument "knots": it takes "x", "degree", "raw"`},
	{`y ~ poly(x, 2, degree = 3)`, 25, `poly() has the argument "degree" twice`},
	{`y ~ poly()`, 5, `poly() needs an argument: it takes "x", "degree", "raw"`},
	{`y ~ bs(x)`, 5, `bs() takes df, as bs(x, df = 5), or knots, as bs(x, knots = c(1, 2)), and not both`},
	{`y ~ bs(x, df = 2)`, 16, `df of bs() is a whole number from 3 to 1000`},
	{`y ~ bs(x, knots = z)`, 19, `knots are numbers: c(1, 2)`},
	{`y ~ factor(x + z)`, 5, `factor() takes a column`},
	{`y ~ C(x, Foo)`, 10, `the contrast of C() is Treatment, Treatment("level"), Sum, Helmert or Poly`},
	{`y ~ C(x, Sum("a"))`, 14, `only Treatment leaves out a level, as Treatment("b")`},
	{`y ~ C(x, Treatment(b))`, 20, `the reference is a level in quotes`},
	{`y ~ 1 | g`, 7, `a group stands in parentheses: (1 | g)`},
	{`y ~ x:(1 | g)`, 10, `a group is added, as x + (1 | g): it has no products and cannot be taken away`},
	{`y ~ x - (1 | g)`, 12, `a group is added, as x + (1 | g): it has no products and cannot be taken away`},
	{`y ~ (1 + (1 | g) | h)`, 13, `a group stands in another group: add them, as (1 | g) + (1 | h)`},
	{`y ~ (1 | p | g)`, 8, `a group has one bar: names of correlations, as in (1 | id | g), are not read`},
	{`y ~ (0 | g)`, 8, `the group has no terms: (1 | g) has a constant of each level`},
	{`y ~ (1 | g) + (1 + x | g)`, 22, `"g" has a constant of each level twice: write 0 + in one of the groups`},
	{`y ~ (x | g) + (0 + x | g)`, 22, `"g" has "x" twice: take it out of one of the groups`},
	{`y ~ (1 | log(g))`, 10, `right of the bar stands a factor: g, g:h, g/h, factor(x) or mm(a, b)`},
	{`y ~ (1 | mm(g))`, 10, `mm() takes at least two factors, and a weight for each or none`},
	{`y ~ (1 | mm(g, h, weights = x))`, 29, `mm() takes factors, and weights = cbind(v, w)`},
	{`y ~ (1 | mm(g, h):x)`, 18, `mm() stands alone right of the bar`},
	{`y ~ x:s(z)`, 7, `s() is added, outside groups and products: one for each level of a factor is s(x, by = g), ` +
		`and times a number s(x, by = z)`},
	{`y ~ (1 + mo(z) | g)`, 10, `mo() is added or multiplied outside groups`},
	{`y ~ mi()`, 5, `mi() needs an argument: it takes "x"`},
	{`y ~ x:gp(z)`, 7, `gp() is added, outside groups and products: one for each level of a factor is gp(x, by = g), ` +
		`and times a number gp(x, by = z)`},
	{`y ~ mo(log(z))`, 8, `mo() takes a column`},
	{`y ~ gp(z, bs = x)`, 16, `gp() has no argument "bs": it takes "x", "k", "by"`},
	{`y ~ s(z, k = 2)`, 14,
		`s() is of one number, and k, the dimension of its basis, is a whole number from 3 to 1000`},
	{`y ~ s(x, z)`, 10,
		`s() is of one number, and k, the dimension of its basis, is a whole number from 3 to 1000`},
	{`y ~ s(x, bs = "tp")`, 15,
		`bs is "cr", the cubic regression spline, which is the default: there is no other`},
	{`y ~ s(x, by = log(z))`, 15, `by is a column: a factor or a number`},
	{`y ~ s(1)`, 7, `s() takes a column`},
	{`y ~ x:offset(z)`, 7, `an offset is added, outside groups and products: its coefficient is 1`},
	{`y ~ offset()`, 5, `offset() needs an argument: it takes "x"`},
	{`y ~ (s(x) | g)`, 6,
		`s() is added, outside groups and products: one for each level of a factor is s(x, by = g), and times a number ` +
			`s(x, by = z)`},
	{`y | foo(x) ~ 1`, 5,
		`right of the bar stand trials(n), weights(w), se(s), cens(c), cens(c, upper) and trunc(lb = l, ub ` +
			`= u), added to each other`},
	{`y || cens(x) ~ 1`, 3, `the left side has one bar: y | trials(n)`},
	{`y | trials(n) + trials(m) ~ 1`, 17, `trials() is there twice`},
	{`y | cens(x + 1) ~ 1`, 12, `cens() takes a column: -1 or left, 0 or none, 1 or right, 2 or interval`},
	{`mvbind(y, log(z)) ~ 1`, 1, `mvbind() is of at least two columns`},
	{`mvbind(y) ~ 1`, 1, `mvbind() is of at least two columns`},
	{`cbind(y, log(z)) ~ 1`, 1,
		`cbind() is of at least two columns, of counts or shares; successes of trials are y | trials(n)`},
	{`y ~ t2(x)`, 5, `t2() takes two numbers, t2(x, z); a smooth of one is s(x)`},
	{`y ~ t2(x, z, k = 2)`, 18,
		`t2() is of two numbers, and k, the dimension of each basis, is a whole number from 3 to 30`},
	{`y ~ x * t2(x, z)`, 9, `t2() is added, outside groups and products`},
	{`1 ~ x`, 1, `the outcome is a column, or a number made of columns, as log(y)`},
	{`y + s(x) ~ x`, 5, `s() does not stand here: it is added to the right or the left side, or groups`},
	{`y ~ te(x, z)`, 5, `there is no function "te": a smooth of two numbers is t2(x, z)`},
	{`y ~ sqrt(x, z)`, 5, `sqrt() takes one argument`},
	{`factor(y) ~ x`, 1, `the outcome is a column, or a number made of columns, as log(y)`},
	{`y | trunc() ~ 1`, 5, `trunc() needs an argument: it takes "lb", "ub"`},
}

// Each mistake in a text has its place and its message.
func TestParseErrors(t *testing.T) {
	for _, c := range mistakes {
		_, err := formula.Parse(c.text)
		var e *formula.Error
		require.True(t, errors.As(err, &e), c.text)
		require.Equal(t, formula.Error{Text: c.text, Column: c.column, Problem: c.problem}, *e)
	}
}

// The caret is below the place, in runes; a long formula is cut around it.
func TestCaret(t *testing.T) {
	_, err := formula.Parse("süß ~ x +\tlgo(é)")
	require.EqualError(t, err, `formula, column 11: there is no function "lgo": the nearest is "log"; other functions `+
		"go into a column of the table\n  süß ~ x + lgo(é)\n            ^")
	long := "y ~ x"
	for i := range 60 {
		long += fmt.Sprintf(" + x%02d", i)
	}
	_, err = formula.Parse(long + " + 2")
	require.ErrorContains(t, err, "\n  …x50 + x51")
	require.ErrorContains(t, err, " + x59 + 2\n  "+fmt.Sprintf("%62s", "^"))
}

// mistaken is a table with what goes wrong in tables.
func mistaken(t testing.TB) *data.Table {
	one := func(v ...float64) []float64 { return v }
	return table(t,
		data.Column{Name: "y", Numbers: one(1, 2, 0, 4, 3, 6)},
		data.Column{Name: "age", Numbers: one(3, -1, 4, 1, 5, 9)},
		data.Column{Name: "months", Numbers: one(36, -12, 48, 12, 60, 108)},
		data.Column{Name: "same", Numbers: one(2, 2, 2, 2, 2, 2)},
		data.Column{Name: "gap", Numbers: one(1, 2, math.NaN(), 4, math.NaN(), 6)},
		data.Column{Name: "big", Numbers: one(1e300, 1, 2, 3, 4, 5)},
		data.Column{Name: "site", Labels: []string{"a", "a", "b", "b", "c", "c"}},
		data.Column{Name: "arm", Labels: []string{"p", "p", "q", "p", "q", "q"}},
		data.Column{Name: "one", Labels: []string{"k", "k", "k", "k", "k", "k"}},
		data.Column{Name: "hole", Labels: []string{"k", "", "m", "k", "m", ""}},
		data.Column{Name: "code", Labels: []string{"left", "none", "none", "right", "rigth", "none"}},
		data.Column{Name: "cut", Numbers: one(0, 0, 2, 0, 0, 0)})
}

// misfits are what tables show to be wrong.
var misfits = []struct{ text, problem string }{
	{`y ~ agee`, `column 5: there is no column "agee": the nearest is "age"`},
	{`y ~ gender`,
		`column 5: there is no column "gender": there are "y", "age", "months", "same", "gap", "big", ` +
			`"site", "arm", "one", "hole", "code", "cut"`},
	{`y ~ (1 | sit)`, `column 10: there is no column "sit": the nearest is "site"`},
	{`y ~ s(hour)`, `column 7: there is no column "hour": the nearest is "hole"`},
	{`y ~ log(age)`, `data: row 1, column "age", value "-1": log of it is NaN: it must be above 0`},
	{`y ~ sqrt(age - 4)`,
		`data: row 0, column "age - 4", value "-1": sqrt of it is NaN: it must be at least 0`},
	{`y ~ I(1/(age - 4))`,
		`data: row 2, column "1 / (age - 4)", value "1": it is +Inf: expected a finite number`},
	{`y ~ exp(big)`, `data: row 0, column "big", value "1e+300": exp of it is +Inf: expected a finite number`},
	{`y ~ big:big + I(big^2)`,
		`data: row 0, column "big^2", value "1e+300": it is +Inf: expected a finite number`},
	{`y ~ age + months`,
		`column 11: other columns determine "months": it is 12 age; leave one of them out, or keep all ` +
			`with Formula.Collinear`},
	{`y ~ same`,
		`column 5: other columns determine "same": it is 2; leave one of them out, or keep all with ` +
			`Formula.Collinear`},
	{`y ~ age + I(2 * age + 1)`,
		`column 11: other columns determine "I(2 * age + 1)": it is 1 + 2 age; leave one of them out, or ` +
			`keep all with Formula.Collinear`},
	{`y ~ one`,
		`column 5: one has one level in the training data, "k": a term needs at least two; leave it out`},
	{`y ~ (1 | one) + C(one, Sum)`,
		`column 17: C(one, Sum) has one level in the training data, "k": a term needs at least two; leave ` +
			`it out`},
	{`y ~ gap`,
		`data: row 2, column "gap": it is missing, and so are 1 more of the column: drop such rows with ` +
			`Table.DropMissing, or model them`},
	{`y ~ (1 | hole)`,
		`data: row 1, column "hole": it is missing, and so are 1 more of the column: drop such rows with ` +
			`Table.DropMissing, or model them`},
	{`y ~ log(site)`,
		`column 9: "site" is a factor, and a number is needed here: its levels are "a", "b", "c"`},
	{`y ~ s(site)`, `column 7: "site" is a factor, and a number is needed here: its levels are "a", "b", "c"`},
	{`y ~ scale(same)`, `column 5: same cannot be scaled: its standard deviation is 0`},
	{`y ~ poly(arm, 2)`, `column 10: "arm" is a factor, and a number is needed here: its levels are "p", "q"`},
	{`y ~ poly(same, 2)`, `column 5: same has one value in all rows: poly() of degree 2 needs at least 3`},
	{`y ~ poly(age, 6)`, `column 5: age has 6 different values: poly() of degree 6 needs at least 7`},
	{`y ~ bs(same, df = 4)`, `column 5: same is 2 in every row: bs() needs different values`},
	{`y ~ bs(age, knots = 20)`,
		`column 5: knot 20 is not inside the range of age, from -1 to 9: state knots inside, or a smaller ` +
			`df`},
	{`y ~ C(site, Treatment("d"))`, `column 5: site has no level "d": the nearest are "a", "b", "c"`},
	{`y ~ s(age)`,
		`column 5: age has 6 different values, and the basis of s() has dimension 10: write s(age, k = 6)`},
	{`y ~ s(same)`,
		`column 5: same has one value in all rows, and the basis of s() has dimension 10: a factor or a ` +
			`line is enough for so few`},
	{`y ~ s(age, by = one, k = 4)`,
		`column 17: one has one level in the training data, "k": a term needs at least two; leave it out`},
	{`y ~ site * arm`,
		`column 5: other columns determine "site[b]:arm[q]": it is -site[c] + arm[q]; leave one of them ` +
			`out, or keep all with Formula.Collinear; no row of the training data has site "a" with arm "q"`},
	{`y ~ site + arm + factor(age)`,
		`column 18: other columns determine "factor(age)[1]": it is site[b] + site[c] - arm[q]; leave one ` +
			`of them out, or keep all with Formula.Collinear`},
	{`y ~ site / arm + age * same`,
		`column 5: "site[a]:arm[q]": no row of the training data has site "a" with arm "q": merge levels, ` +
			`leave the product out, or keep it with Formula.EmptyCells`},
	{`log(y) ~ age`, `data: row 2, column "y", value "0": log of it is -Inf: it must be above 0`},
	{`arm | trials(age) ~ 1`, `data: row 1, column "age", value "-1": trials are whole numbers from 0`},
	{`y | trials(age) ~ 1`, `data: row 1, column "age", value "-1": trials are whole numbers from 0`},
	{`age | trials(y) ~ 1`,
		`data: row 0, column "age", value "3": it must be from 0 to its number of trials, 1`},
	{`y | weights(age) ~ 1`, `data: row 1, column "age", value "-1": a weight is at least 0`},
	{`y | se(age) ~ 1`, `data: row 1, column "age", value "-1": a standard error is above 0`},
	{`y | cens(code) ~ 1`,
		`data: row 4, column "code", value "rigth": censoring is -1 or left, 0 or none, 1 or right, 2 or ` +
			`interval`},
	{`y | cens(age) ~ 1`,
		`data: row 0, column "age", value "3": censoring is -1 or left, 0 or none, 1 or right, 2 or ` +
			`interval`},
	{`y | cens(cut) ~ 1`,
		`data: row 2, column "y", value "0": it is censored in an interval, whose end is missing: write ` +
			`cens(c, upper)`},
	{`y | cens(cut, gap) ~ 1`,
		`data: row 2, column "gap": it is missing, and the outcome is censored in an interval in this row`},
	{`y | cens(cut, y) ~ 1`,
		`data: row 2, column "y", value "0": the end of its interval, 0, must be above it`},
	{`y | trunc(lb = 1) ~ 1`, `data: row 2, column "y", value "0": it is below its lower bound, 1`},
	{`y | trunc(ub = 5) ~ 1`, `data: row 5, column "y", value "6": it is above its upper bound, 5`},
	{`y | trunc(lb = 5, ub = 5) ~ 1`,
		`data: row 0, column "y", value "1": its lower bound 5 is not below its upper bound 5`},
	{`y ~ age + offset(log(age))`,
		`data: row 1, column "age", value "-1": log of it is NaN: it must be above 0`},
	{`y ~ (1 | mm(site, arm, weights = cbind(age, y)))`,
		`data: row 1, column "age", value "-1": a weight of mm() is at least 0`},
	{`y ~ (1 | mm(site, arm, weights = cbind(cut, cut)))`,
		`data: row 0, column "cut": the weights of mm() have the sum 0: it must be above 0`},
	{`big ~ poly(big, 4, raw = TRUE)`,
		`data: row 0, column "poly(big, 4, raw = TRUE)", value "1e+300": its basis is +Inf there: expected ` +
			`a finite number`},
	{`yy ~ 1`, `column 1: there is no column "yy": the nearest is "y"`},
	{`y ~ big:I(big*1e7)`,
		`data: row 0, column "big:I(big * 10000000)": the product is beyond the range of numbers: scale its ` +
			`factors`},
	{`y ~ site:arm`,
		`column 5: "site[c]:arm[p]": no row of the training data has site "c" with arm "p": merge levels, ` +
			`leave the product out, or keep it with Formula.EmptyCells`},
}

// Each mistake that a table shows has its message: with the place in the formula, or with the row and the column.
func TestFitErrors(t *testing.T) {
	for _, c := range misfits {
		f, err := formula.Parse(c.text)
		require.NoError(t, err)
		_, err = f.Fit(mistaken(t), formula.Options{})
		var e *formula.Error
		if errors.As(err, &e) {
			require.Equal(t, c.text, e.Text)
			require.Equal(t, c.problem, fmt.Sprintf("column %d: %s", e.Column, e.Problem))
			continue
		}
		var d *data.Error
		require.True(t, errors.As(err, &d), c.text)
		require.EqualError(t, err, c.problem)
	}
}

// New data have errors of their own.
func TestRowsErrors(t *testing.T) {
	numbers := func(v ...float64) data.Column { return data.Column{Name: "x", Numbers: v} }
	labels := func(name string, v ...string) data.Column { return data.Column{Name: name, Labels: v} }
	train := table(t, numbers(1, 2, 4, 3), labels("g", "a", "b", "a", "b"), labels("y", "no", "yes", "no", "yes"))
	for _, c := range []struct {
		text    string
		of      *data.Table
		problem string
	}{
		{"~ x + g", table(t, numbers(1)), `data: column "g": there is no column "g": the nearest is "x"`},
		{"~ x + g", table(t, numbers(1, 2), labels("g", "a", "c")),
			`data: row 1, column "g", value "c": the training data do not have this level: they have "a", "b"`},
		{"~ C(g, Sum)", table(t, labels("g", "c")),
			`data: row 0, column "g", value "c": the training data do not have this level: they have "a", "b"`},
		{"~ factor(x)", table(t, numbers(1, 5)),
			`data: row 1, column "x", value "5": the training data do not have this level: they have "1", "2", "3", ` +
				`"4"`},
		{"~ x", table(t, labels("x", "a")),
			`data: column "x": "x" is a factor, and a number is needed here: its levels are "a"`},
		{"~ g", table(t, data.Column{Name: "g", Numbers: []float64{1}}),
			`data: column "g": it is a number here, and was a factor in the training data`},
		{"~ log(x)", table(t, numbers(1, 0)),
			`data: row 1, column "x", value "0": log of it is -Inf: it must be above 0`},
		{"~ x", table(t, numbers(1, math.NaN())), `data: row 1, column "x": it is missing: drop ` +
			`such rows with Table.DropMissing, or model them`},
		{"y ~ 1", table(t, labels("y", "maybe")), `data: row 0, column "y", value "maybe": the outcome does not ` +
			`have this level in the training data: it has "no", "yes"`},
		{"~ x:I(2 * x)", table(t, numbers(1, 1e200)), `data: row 1, column "x:I(2 * x)": the product is beyond the ` +
			`range of numbers: scale its factors`},
		{"~ x", nil, `data: there are no rows`},
	} {
		_, err := fit(t, c.text, train, loose).Rows(c.of)
		var d *data.Error
		require.True(t, errors.As(err, &d), c.text)
		require.EqualError(t, err, c.problem)
	}
}

// Texts and designs that are too large are errors, not long waits.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ text, problem string }{
		{"~ " + strings.Repeat("x", 1<<14), "it has 16386 characters: at most 16384 are read"},
		{"~ " + strings.Repeat("(", 200), "more than 100 parentheses stand in each other"},
		{"~ (a+b+c+d+e+f+g+h+i+j+k+l+m+n)^14", "there are more than 2000 terms here"},
		{"~ 1 + x:(y | ", "expected a column"},
	} {
		_, err := formula.Parse(c.text)
		require.ErrorContains(t, err, c.problem)
	}
	labels, other := make([]string, 300), make([]string, 300)
	for i := range labels {
		labels[i], other[i] = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	rows := table(t, data.Column{Name: "a", Labels: labels}, data.Column{Name: "b", Labels: other})
	f, err := formula.Parse("~ 0 + a:b")
	require.NoError(t, err)
	_, err = f.Fit(rows, loose)
	require.ErrorContains(t, err, "more than 50000 columns")
	var terms []string
	var columns []data.Column
	for i := range 11 {
		name := fmt.Sprint("f", i)
		terms = append(terms, name)
		columns = append(columns, data.Column{Name: name, Labels: []string{"u", "v"}})
	}
	f, err = formula.Parse("~ " + strings.Join(terms, ":"))
	require.NoError(t, err)
	_, err = f.Fit(table(t, columns...), loose)
	require.ErrorContains(t, err, "has 11 factors of levels: at most 10")
}
