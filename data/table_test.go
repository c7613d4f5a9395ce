package data_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Columns in memory are checked as those of a file are.
func TestNewTableErrors(t *testing.T) {
	one := data.Column{Name: "a", Numbers: []float64{1}}
	for _, c := range []struct {
		columns []data.Column
		want    string
	}{
		{nil, "data: a table needs at least one column"},
		{[]data.Column{{Numbers: []float64{1}}}, "data: column 0 has no name"},
		{[]data.Column{{Name: "a"}}, `data: column "a": it is empty`},
		{[]data.Column{{Name: "a", Numbers: []float64{1}, Labels: []string{"x"}}},
			`data: column "a": it has both Numbers and Labels: give one of them`},
		{[]data.Column{one, {Name: "b", Labels: []string{"x", "y"}}}, `data: column "b": it has 2 rows, the table has 1`},
		{[]data.Column{{Name: "a", Numbers: []float64{1, math.Inf(1)}}},
			`data: row 1, column "a", value "+Inf": a number must be finite, or NaN where it is missing`},
		{[]data.Column{{Name: "a", Labels: []string{"x", "z"}, Levels: []string{"x", "y"}}},
			`data: row 1, column "a", value "z": it is not among the stated levels: "x", "y"`},
		{[]data.Column{one, one}, `data: column "a": the table has it already`},
	} {
		_, err := data.NewTable(c.columns...)
		require.EqualError(t, err, c.want)
	}
	_, err := table(t, one).Rows(0, 1)
	require.EqualError(t, err, "data: there is no row 1: there are 1")
}

// A table does not change: what changes one is another, and slices given and taken are copies.
func TestTableIsImmutable(t *testing.T) {
	numbers := []float64{1, 2}
	first := table(t, data.Column{Name: "a", Numbers: numbers})
	numbers[0] = 9
	second, err := first.With(data.Column{Name: "a", Numbers: []float64{3, 4}})
	require.NoError(t, err)
	third, err := second.With(data.Column{Name: "b", Labels: []string{"x", ""}})
	require.NoError(t, err)
	a, err := first.Column("a")
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 2}, a.Numbers)
	a.Numbers[0] = 7
	a, err = first.Column("a")
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 2}, a.Numbers)
	assert.Equal(t, []string{"a"}, second.Names())
	assert.Equal(t, []string{"a", "b"}, third.Names())
	b, err := third.Column("b")
	require.NoError(t, err)
	assert.Equal(t, data.Column{Name: "b", Labels: []string{"x", ""}, Levels: []string{"x"}}, b)
}

// Every row is in one part, in its order; the parts have the sizes asked for; one seed gives one split, another seed
// another. Each row is in the test data with probability Test: 2000 splits of 10 rows have each row 600 times, with a
// standard deviation of √(2000·0.3·0.7) = 20.5.
func TestSplit(t *testing.T) {
	rows := make([]float64, 10)
	for i := range rows {
		rows[i] = float64(i)
	}
	all := table(t, data.Column{Name: "row", Numbers: rows})
	of := func(part *data.Table) []float64 {
		c, err := part.Column("row")
		require.NoError(t, err)
		return c.Numbers
	}
	count := make([]int, len(rows))
	var first []float64
	same := 0
	for seed := range uint64(2000) {
		train, test, err := all.Split(data.SplitOptions{Test: 0.3, Seed: seed})
		require.NoError(t, err)
		require.True(t, slices.IsSorted(of(train)) && slices.IsSorted(of(test)))
		require.Equal(t, 3, test.Len())
		together := slices.Concat(of(train), of(test))
		slices.Sort(together)
		require.Equal(t, rows, together)
		for _, r := range of(test) {
			count[int(r)]++
		}
		if seed == 0 {
			first = of(test)
			_, again, err := all.Split(data.SplitOptions{Test: 0.3})
			require.NoError(t, err)
			require.Equal(t, first, of(again))
		} else if slices.Equal(first, of(test)) {
			same++
		}
	}
	for _, n := range count {
		assert.InDelta(t, 600, n, 4*20.5)
	}
	assert.InDelta(t, 2000/120., same, 4*math.Sqrt(2000/120.)) // there are 120 sets of 3 among 10
}

// Stratified, each value has its share: of 10 yes and 5 no, 30 % are 3 and 1.5; 15·0.3 = 4.5 rounds to 5, and the row
// left over goes to the larger remainder.
func TestSplitStratified(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]string{"yes"}, 10), slices.Repeat([]string{"no"}, 5))
	all := table(t, data.Column{Name: "ill", Labels: labels})
	for seed := range uint64(20) {
		train, test, err := all.Split(data.SplitOptions{Test: 0.3, Seed: seed, Stratify: "ill"})
		require.NoError(t, err)
		count := func(part *data.Table) (yes, no int) {
			c, err := part.Column("ill")
			require.NoError(t, err)
			for _, l := range c.Labels {
				if l == "yes" {
					yes++
				} else {
					no++
				}
			}
			return yes, no
		}
		yes, no := count(test)
		assert.Equal(t, []int{3, 2}, []int{yes, no})
		yes, no = count(train)
		assert.Equal(t, []int{7, 3}, []int{yes, no})
	}
}

func TestSplitErrors(t *testing.T) {
	all := table(t, data.Column{Name: "a", Labels: []string{"x", "x", "y"}},
		data.Column{Name: "b", Numbers: []float64{1, 1, math.NaN()}})
	for _, c := range []struct {
		o    data.SplitOptions
		want string
	}{
		{data.SplitOptions{}, "SplitOptions.Test is 0: it must be between 0 and 1"},
		{data.SplitOptions{Test: math.NaN()}, "SplitOptions.Test is NaN"},
		{data.SplitOptions{Test: 0.5, Stratify: "c"}, `column "c": there is no such column`},
		{data.SplitOptions{Test: 0.5, Stratify: "a"}, `row 2, column "a", value "y": it is the only row of this value`},
		{data.SplitOptions{Test: 0.5, Stratify: "b"}, `row 2, column "b": it is missing: rows cannot be stratified by it`},
	} {
		_, _, err := all.Split(c.o)
		require.ErrorContains(t, err, c.want)
	}
	_, _, err := table(t, data.Column{Name: "a", Numbers: []float64{1}}).Split(data.SplitOptions{Test: 0.5})
	require.ErrorContains(t, err, "1 rows cannot be split")
}

// Draws of coefficients come back draw by draw, with the names of the design, the statistics and the notes: for a
// number of mean 2 and standard deviation 1, slope w and intercept b, those are w and b - 2w.
func TestDesignDraws(t *testing.T) {
	d, err := data.Spec{Terms: []data.Term{{Column: "age", Scale: 1}}}.Fit(
		table(t, data.Column{Name: "age", Numbers: []float64{1, 2, 3}}))
	require.NoError(t, err)
	posterior, err := draws.New([]draws.Site{
		{Name: "b", Size: 1}, {Name: "sigma", Size: 1, Offset: 1}, {Name: "w", Shape: []int{1}, Size: 1, Offset: 2},
	}, []string{draws.StatLP}, 2)
	require.NoError(t, err)
	require.NoError(t, posterior.AppendChain(0, []float64{10, 1, 3}, []float64{-5}))
	require.NoError(t, posterior.AppendChain(1, []float64{20, 1, -4}, []float64{-6}))
	posterior.AddNote(draws.Note{Kind: "note"})

	back, err := d.Draws(posterior, "b", "w")
	require.NoError(t, err)
	assert.Equal(t, []string{"intercept", "age"}, back.Names())
	assert.Equal(t, []float64{4, 3}, back.Row(0, 0))
	assert.Equal(t, []float64{28, -4}, back.Row(1, 0))
	lp, err := back.Stat(draws.StatLP, 1)
	require.NoError(t, err)
	assert.Equal(t, []float64{-6}, lp)
	assert.Equal(t, posterior.Notes(), back.Notes())
	back, err = d.Draws(posterior, "", "w") // a model without an intercept has one on the scale of the file
	require.NoError(t, err)
	assert.Equal(t, []float64{-6, 3}, back.Row(0, 0))
	_, err = d.Draws(posterior, "b", "weights")
	require.ErrorContains(t, err, `the draws have no site "weights" of 1 elements: they have "b", "sigma", "w[0]"`)
	_, err = d.Draws(nil, "b", "w")
	require.Error(t, err)
}

// Tables that grow from one table see their own columns and none of each other's.
func TestTablesThatGrowApart(t *testing.T) {
	one, err := data.NewTable(data.Column{Name: "a", Numbers: []float64{1}})
	require.NoError(t, err)
	with := func(t0 *data.Table, name string, v float64) *data.Table {
		out, err := t0.With(data.Column{Name: name, Numbers: []float64{v}})
		require.NoError(t, err)
		return out
	}
	left := with(one, "b", 2)
	right := with(with(one, "b", 3), "c", 4)
	other := with(left, "c", 5)
	replaced := with(other, "a", 6)
	for _, c := range []struct {
		table *data.Table
		want  map[string]float64
	}{{one, map[string]float64{"a": 1}}, {left, map[string]float64{"a": 1, "b": 2}},
		{right, map[string]float64{"a": 1, "b": 3, "c": 4}}, {other, map[string]float64{"a": 1, "b": 2, "c": 5}},
		{replaced, map[string]float64{"a": 6, "b": 2, "c": 5}}} {
		require.Len(t, c.table.Names(), len(c.want))
		for name, v := range c.want {
			column, err := c.table.Column(name)
			require.NoError(t, err)
			require.Equal(t, []float64{v}, column.Numbers)
		}
	}
	_, err = one.Column("b")
	require.ErrorContains(t, err, "there is no such column")
}

// Eight times the columns take about eight times the memory, at once and one after the other: copies of all columns for
// each would make it sixty-four times.
func TestManyColumns(t *testing.T) {
	columns := func(n int) (all []data.Column) {
		for i := range n {
			all = append(all, data.Column{Name: fmt.Sprint("c", i), Numbers: []float64{1}})
		}
		return all
	}
	for name, grow := range map[string]func(all []data.Column) (*data.Table, error){
		"NewTable": func(all []data.Column) (*data.Table, error) { return data.NewTable(all...) },
		"With": func(all []data.Column) (*data.Table, error) {
			table, err := data.NewTable(all[0])
			for _, c := range all[1:] {
				if err == nil {
					table, err = table.With(c)
				}
			}
			return table, err
		},
	} {
		bytes := func(n int) float64 {
			all := columns(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			table, err := grow(all)
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.Len(t, table.Names(), n)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		require.Less(t, bytes(8000)/bytes(1000), 16.0, name) // slices and maps double
	}
}
