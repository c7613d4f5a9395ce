package data_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Numbers, a factor and an interaction are the columns that they are by definition: the standard deviation of 1, 2, 3
// is 1 with divisor n-1, and that of 10, 20, 60 is √700.
func TestDesign(t *testing.T) {
	people := table(t,
		data.Column{Name: "age", Numbers: []float64{1, 2, 3}},
		data.Column{Name: "income", Numbers: []float64{10, 20, 60}},
		data.Column{Name: "region", Labels: []string{"south", "east", "north"}},
		data.Column{Name: "ill", Labels: []string{"yes", "no", "no"}},
	)
	age := data.Term{Column: "age", Scale: 1}
	region := data.Term{Column: "region", Reference: "north"}
	d, err := data.Spec{
		Terms: []data.Term{
			age, {Column: "income", Scale: 2}, {Column: "income", Map: math.Log10, As: "log income"}, region,
			{Product: []data.Term{age, region}},
		},
		Outcome: data.Term{Column: "ill"},
		Columns: []string{"income", "region"},
	}.Fit(people)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"age", "income", "log income", "region[east]", "region[south]", "age:region[east]", "age:region[south]",
	}, d.Names())
	assert.Equal(t, []string{"east", "north", "south"}, d.Levels("region"))
	assert.Equal(t, []string{"no", "yes"}, d.Levels("ill"))
	assert.Nil(t, d.Levels("age"))

	f := frame(t, d, people)
	r := 2 * math.Sqrt(700)
	want := [][]float64{
		{-1, -20 / r, 1, 0, 1, 0, -1},
		{0, -10 / r, math.Log10(20), 1, 0, 0, 0},
		{1, 30 / r, math.Log10(60), 0, 0, 0, 0},
	}
	for i := range want {
		assert.InDeltaSlice(t, want[i], f.X[i], 1e-15)
	}
	assert.Equal(t, []float64{1, 0, 0}, f.Y)
	assert.Equal(t, map[string][]float64{"income": {10, 20, 60}}, f.Numbers)
	assert.Equal(t, map[string][]int{"region": {2, 0, 1}}, f.Indices)
	assert.Equal(t, 3, f.Rows)
}

// New data are mapped with the means, the scales and the levels of the training data, in the training's order, whatever
// they hold themselves. The outcome may be absent.
func TestDesignNewData(t *testing.T) {
	train := table(t,
		data.Column{Name: "age", Numbers: []float64{1, 2, 3}},
		data.Column{Name: "region", Labels: []string{"b", "a", "c"}},
		data.Column{Name: "y", Numbers: []float64{4, 6, 8}})
	d, err := data.Spec{
		Terms:   []data.Term{{Column: "age", Scale: 1}, {Column: "region", Contrast: data.Indicator}},
		Outcome: data.Term{Column: "y", Scale: 1},
	}.Fit(train)
	require.NoError(t, err)
	assert.Equal(t, data.Scaling{Mean: 6, SD: 2}, d.Outcome())
	f := frame(t, d, table(t,
		data.Column{Name: "region", Labels: []string{"c"}}, data.Column{Name: "age", Numbers: []float64{100}}))
	assert.Equal(t, [][]float64{{98, 0, 0, 1}}, f.X)
	assert.Nil(t, f.Y)
	f = frame(t, d, table(t, data.Column{Name: "region", Labels: []string{"b"}},
		data.Column{Name: "age", Numbers: []float64{2}}, data.Column{Name: "y", Numbers: []float64{10}}))
	assert.Equal(t, []float64{2}, f.Y)
	assert.Equal(t, 10.0, d.Outcome().Back(f.Y[0]))
}

// Levels are unknown where the training rows have none of them, also where the file does; levels that were stated are
// known.
func TestDesignUnseenLevel(t *testing.T) {
	const text = "age,region\n1,east\n2,west\n3,east\n4,north\n"
	all := read(t, data.CSV{Name: "f.csv"}, text)
	train, err := all.Rows(0, 1, 2)
	require.NoError(t, err)
	spec := data.Spec{Terms: []data.Term{{Column: "region"}}}
	d, err := spec.Fit(train)
	require.NoError(t, err)
	assert.Equal(t, []string{"region[west]"}, d.Names())
	_, err = d.Frame(all)
	require.EqualError(t, err, `data: f.csv, line 5, column "region", value "north": `+
		`the training data do not have this level: they have "east", "west"`)
	e := wrong(t, err)
	assert.Equal(t, []any{5, 3, "region", "north"}, []any{e.Line, e.Row, e.Column, e.Value})

	stated := data.CSV{Levels: map[string][]string{"region": {"north", "east", "west"}}}
	train, err = read(t, stated, text).Rows(0, 1, 2)
	require.NoError(t, err)
	d, err = spec.Fit(train)
	require.NoError(t, err)
	assert.Equal(t, [][]float64{{1, 0}, {0, 1}, {1, 0}, {0, 0}}, frame(t, d, read(t, stated, text)).X)
}

// What cannot be fitted or mapped is an error that names the column, and the row where there is one.
func TestDesignErrors(t *testing.T) {
	people := read(t, data.CSV{Name: "f.csv"}, "age,one,huge,region,single\n1,7,1e308,a,z\n2,7,-1e308,b,z\n,7,1,b,z\n")
	terms := func(terms ...data.Term) data.Spec { return data.Spec{Terms: terms} }
	for _, c := range []struct {
		spec data.Spec
		want string
	}{
		{data.Spec{}, "data: f.csv: the Spec is empty: it needs Terms, an Outcome or Columns"},
		{terms(data.Term{Column: "ages"}), `data: f.csv, column "ages": there is no such column: there are "age", "one", ` +
			`"huge", "region", "single"`},
		{terms(data.Term{Column: "age"}), `data: f.csv, line 4, column "age": it is missing: drop such ` +
			`rows with Table.DropMissing, or model them`},
		{terms(data.Term{Column: "one", Scale: 1}), `data: f.csv, column "one": it is 7 in every row and cannot be scaled`},
		{terms(data.Term{Column: "huge", Scale: 2}), `data: f.csv, column "huge": 2 standard deviations are +Inf, beyond ` +
			`the range of numbers`},
		{terms(data.Term{Column: "one", Scale: -1}), `column "one": Scale is -1: it must be finite and at least 0`},
		{terms(data.Term{Column: "one", Scale: math.NaN()}), `Scale is NaN: it must be finite and at least 0`},
		{terms(data.Term{Column: "one", Contrast: data.Sum}), `column "one": it is a number, which has no Contrast`},
		{terms(data.Term{Column: "region", Scale: 1}), `column "region": it is a factor, which has no Scale and no Map`},
		{terms(data.Term{Column: "region", Contrast: -1}), `column "region": contrast -1 is unknown`},
		{terms(data.Term{Column: "region", Contrast: 7}), `column "region": contrast 7 is unknown`},
		{terms(data.Term{Column: "single"}), `column "single": a contrast of 1 levels: it needs at least 2`},
		{terms(data.Term{Column: "region", Reference: "c"}), `column "region", value "c": Reference is a level`},
		{terms(data.Term{Column: "region", Reference: "a", Contrast: data.Sum}), `Reference is a level that Treatment`},
		{terms(data.Term{Column: "huge", Map: math.Log}), `a Term with a Map needs As`},
		{terms(data.Term{Column: "huge", Map: math.Log, As: "log"}), `data: f.csv, line 3, column "huge", value "-1e+308": ` +
			`log of it is NaN: expected a finite number`},
		{terms(data.Term{Column: "one"}, data.Term{Column: "huge", As: "one"}), `"one" is the name of something else`},
		{terms(data.Term{Column: "one"}, data.Term{Column: "one"}), `column "one": the design has it twice`},
		{terms(data.Term{Column: "one", Product: []data.Term{{Column: "huge"}}}), `2 to 8 factors and no other field`},
		{terms(data.Term{Product: []data.Term{{Column: "huge"}, {Column: "huge"}}}), `data: f.csv, line 2, ` +
			`column "huge:huge": the product is beyond the range of numbers: scale its factors`},
		{terms(
			data.Term{Product: []data.Term{{Column: "one"}, {Column: "region"}}},
			data.Term{Product: []data.Term{{Column: "region"}, {Column: "one"}}},
		), `column "region[b]:one": the design has it twice`},
		{data.Spec{Columns: []string{"region", "region"}}, `column "region": Spec.Columns has a name that is taken`},
		{data.Spec{Outcome: data.Term{Column: "one", Reference: "a"}}, `Spec.Outcome is a number or a factor`},
	} {
		_, err := c.spec.Fit(people)
		require.ErrorContains(t, err, c.want)
		wrong(t, err)
	}

	// The cell of b and y has no row: an error, or a column of zeros that new data may fill.
	pairs := table(t, data.Column{Name: "a", Labels: []string{"a", "a", "b"}},
		data.Column{Name: "x", Labels: []string{"x", "y", "x"}})
	product := terms(data.Term{Product: []data.Term{{Column: "a"}, {Column: "x"}}})
	_, err := product.Fit(pairs)
	require.ErrorContains(t, err, `column "a[b]:x[y]": no row is in this cell of the product`)
	product.EmptyCells = true
	kept, err := product.Fit(pairs)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{0}, {0}, {0}}, frame(t, kept, pairs).X)

	d, err := terms(data.Term{Column: "one"}, data.Term{Column: "region"}).Fit(people)
	require.NoError(t, err)
	_, err = d.Frame(table(t, data.Column{Name: "one", Numbers: []float64{1}}))
	require.ErrorContains(t, err, `column "region": there is no such column`)
	_, err = d.Frame(table(t, data.Column{Name: "one", Labels: []string{"x"}}))
	require.ErrorContains(t, err, `column "one": it is a factor here and was a number in the training data`)
	_, err = d.Frame(nil)
	require.ErrorContains(t, err, "there are no rows")
	_, _, err = d.Original(0, []float64{1})
	require.ErrorContains(t, err, `1 coefficients, expected 2, one for each of "one", "region[b]"`)
	_, err = d.Effects("one", []float64{1, 2})
	require.ErrorContains(t, err, `column "one": it is no factor`)
}

// Each row of each level has the same fitted mean under every contrast: the contrasts span the same space, so that
// least squares have the same predictions. The effects of the levels follow from them by the way back: with the
// intercept they are the means of the levels, 1, 2, 4 and 9.
func TestContrastsSpanTheSameSpace(t *testing.T) {
	people := table(t,
		data.Column{Name: "dose", Labels: []string{"a", "a", "b", "b", "c", "c", "d", "d"}},
		data.Column{Name: "y", Numbers: []float64{0.5, 1.5, 2, 2, 3, 5, 9, 9}})
	for _, contrast := range []data.Contrast{data.Treatment, data.Sum, data.Helmert, data.Polynomial} {
		d, err := data.Spec{
			Terms: []data.Term{{Column: "dose", Contrast: contrast}}, Outcome: data.Term{Column: "y"},
		}.Fit(people)
		require.NoError(t, err)
		intercept, w := leastSquares(t, frame(t, d, people))
		effects, err := d.Effects("dose", w)
		require.NoError(t, err)
		for level, mean := range []float64{1, 2, 4, 9} {
			assert.InDelta(t, mean, intercept+effects[level], 1e-13, "contrast %d", contrast)
		}
		switch contrast { // and each coefficient means what its contrast says
		case data.Treatment:
			assert.InDeltaSlice(t, []float64{1, 3, 8}, w, 1e-13)
		case data.Sum: // the mean of the means is 4
			assert.InDelta(t, 4, intercept, 1e-13)
			assert.InDeltaSlice(t, []float64{-3, -2, 0}, w, 1e-13)
		case data.Helmert: // (2-1)/2, (4-1.5)/3, (9-7/3)/4
			assert.InDeltaSlice(t, []float64{1. / 2, 2.5 / 3, (9 - 7./3) / 4}, w, 1e-13)
		case data.Polynomial: // the linear trend: Σ (2i-5) mean_i/√20
			assert.InDelta(t, (-3*1-1*2+1*4+3*9)/math.Sqrt(20), w[0], 1e-13)
		}
	}
}

// A reference level elsewhere shifts effects by a number and leaves predictions.
func TestReference(t *testing.T) {
	people := table(t,
		data.Column{Name: "dose", Labels: []string{"a", "b", "c", "d"}},
		data.Column{Name: "y", Numbers: []float64{1, 2, 4, 9}})
	for reference, want := range map[string][]float64{
		"a": {0, 1, 3, 8}, "b": {-1, 0, 2, 7}, "c": {-3, -2, 0, 5}, "d": {-8, -7, -5, 0},
	} {
		d, err := data.Spec{
			Terms: []data.Term{{Column: "dose", Reference: reference}}, Outcome: data.Term{Column: "y"},
		}.Fit(people)
		require.NoError(t, err)
		_, w := leastSquares(t, frame(t, d, people))
		effects, err := d.Effects("dose", w)
		require.NoError(t, err)
		assert.InDeltaSlice(t, want, effects, 1e-13)
	}
}

// A linear model without noise has exact coefficients. Fitted on the scale of the design, they come back on the scale
// of the file: those that made the data, with factors, a map, a power, products of two and of three, and scales of 1
// and 2.
func TestOriginalCoefficients(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	const n = 60
	age, income, region, y := make([]float64, n), make([]float64, n), make([]string, n), make([]float64, n)
	for i := range n {
		age[i], income[i], region[i] = 20+50*rng.Float64(), math.Exp(8+rng.NormFloat64()), strconv.Itoa(rng.IntN(3))
	}
	a := data.Term{Column: "age", Scale: 1}
	l := data.Term{Column: "income", Map: math.Log, As: "log income", Scale: 2}
	r := data.Term{Column: "region", Contrast: data.Sum}
	spec := data.Spec{
		Terms: []data.Term{a, l, r, {Product: []data.Term{a, a}}, {Product: []data.Term{l, a}},
			{Product: []data.Term{a, r}}, {Product: []data.Term{l, r}}, {Product: []data.Term{a, l, r}}},
		Outcome: data.Term{Column: "y", Scale: 1},
	}
	// intercept, age, log income, region S.0 and S.1, age², age·log, and so on
	want := []float64{3, 0.5, -2, 1.5, -1, 0.01, 0.25, -0.125, 0.0625, 0.75, -0.5, 0.03, -0.02}
	for i := range n {
		la := math.Log(income[i])
		s := [][]float64{{1, 0}, {0, 1}, {-1, -1}}[int(region[i][0]-'0')]
		x := []float64{1, age[i], la, s[0], s[1], age[i] * age[i], la * age[i], age[i] * s[0], age[i] * s[1], la * s[0],
			la * s[1], age[i] * la * s[0], age[i] * la * s[1]}
		for j := range x {
			y[i] += want[j] * x[j]
		}
	}
	people := table(t, data.Column{Name: "age", Numbers: age}, data.Column{Name: "income", Numbers: income},
		data.Column{Name: "region", Labels: region}, data.Column{Name: "y", Numbers: y})
	d, err := spec.Fit(people)
	require.NoError(t, err)
	f := frame(t, d, people)
	intercept, w := leastSquares(t, f)
	back, original, err := d.Original(intercept, w)
	require.NoError(t, err)
	assert.InDelta(t, want[0], back, 1e-9)
	assert.InDeltaSlice(t, want[1:], original, 1e-9)
	for i, row := range f.X { // and predictions by their own way back
		z := intercept
		for j := range row {
			z += row[j] * w[j]
		}
		assert.InDelta(t, y[i], d.Outcome().Back(z), 1e-9)
	}
}

// A product of scaled numbers needs its main effects on the scale of the file, and says which.
func TestOriginalNeedsMainEffects(t *testing.T) {
	people := table(t, data.Column{Name: "a", Numbers: []float64{1, 2, 4}},
		data.Column{Name: "b", Numbers: []float64{1, 3, 2}})
	a, b := data.Term{Column: "a", Scale: 1}, data.Term{Column: "b", Scale: 1}
	d, err := data.Spec{Terms: []data.Term{a, {Product: []data.Term{a, b}}}}.Fit(people)
	require.NoError(t, err)
	_, _, err = d.Original(0, []float64{1, 1})
	require.EqualError(t, err, `data: column "a:b": on the scale of the file it has a part in "b", which is no term: `+
		`add it, or scale nothing in the product`)
}

// Means and standard deviations of large numbers do not overflow, and a large mean takes no digits: the deviations of
// these numbers from 1e9 are exact, and their variance is 1 + 1/3.
func TestScalingOfLargeNumbers(t *testing.T) {
	d, err := data.Spec{Terms: []data.Term{{Column: "a", Scale: 1}, {Column: "b", Scale: 1}}}.Fit(table(t,
		data.Column{Name: "a", Numbers: []float64{1e308, -1e308, 1e308, -1e308}},
		data.Column{Name: "b", Numbers: []float64{1e9 - 1, 1e9 + 1, 1e9 - 1, 1e9 + 1}}))
	require.NoError(t, err)
	sd := math.Sqrt(4. / 3)
	for _, row := range frame(t, d, table(t, data.Column{Name: "a", Numbers: []float64{1e308}},
		data.Column{Name: "b", Numbers: []float64{1e9 + 1}})).X {
		assert.InDeltaSlice(t, []float64{1 / sd, 1 / sd}, row, 1e-14)
	}
	_, err = d.Frame(table(t, data.Column{Name: "a", Numbers: []float64{1}},
		data.Column{Name: "b", Numbers: []float64{math.MaxFloat64}}))
	require.NoError(t, err) // divided by a number above 1
}
