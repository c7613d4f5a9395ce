package data_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const townsfolk = "age,income,region,dose,ill,weight\n31,1500,N,low,no,61.7\n45,2600,S,high,yes,80.1\n" +
	"28,1900,S,mid,no,70.3\n62,3900.5,N,low,yes,66\n50,3100,E,high,no,91.25\n"

// all is a design of everything that there is: scales, a map, every contrast, a reference, products, columns of their
// own, and an outcome that is a factor.
func all(t testing.TB) (*data.Design, *data.Table) {
	t.Helper()
	table := read(t, data.CSV{Levels: map[string][]string{"dose": {"low", "mid", "high"}}}, townsfolk)
	age := data.Term{Column: "age", Scale: 1}
	terms := []data.Term{age, {Column: "income", Map: math.Log, As: "log income", Scale: 2},
		{Column: "region", Reference: "S"}, {Product: []data.Term{age, age}}}
	for _, c := range []data.Contrast{data.Sum, data.Helmert, data.Polynomial, data.Indicator} {
		terms = append(terms, data.Term{Column: "dose", Contrast: c, As: string(rune('p' + int(c)))},
			data.Term{Product: []data.Term{age, {Column: "dose", Contrast: c, As: string(rune('p' + int(c)))}}})
	}
	d, err := data.Spec{Terms: terms, Outcome: data.Term{Column: "ill"}, Columns: []string{"region", "weight"}}.Fit(table)
	require.NoError(t, err)
	return d, table
}

// saved is a design after a way to disk and back.
func saved(t testing.TB, d *data.Design) *data.Design {
	t.Helper()
	path := filepath.Join(t.TempDir(), "design.json")
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	var back data.Design
	require.NoError(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again), "a file that is read and written is the same")
	return &back
}

// A design from disk maps tables to the same numbers, bit for bit, new ones too, and coefficients back to the same.
func TestDesignFromDisk(t *testing.T) {
	d, table := all(t)
	back, err := saved(t, d).WithMaps(map[string]func(float64) float64{"log income": math.Log})
	require.NoError(t, err)
	require.Equal(t, frame(t, d, table), frame(t, back, table))
	newcomer := read(t, data.CSV{Levels: map[string][]string{"dose": {"low", "mid", "high"}}},
		"region,age,income,dose,weight\nE,99,1.5,mid,1\n")
	require.Equal(t, frame(t, d, newcomer), frame(t, back, newcomer))
	assert.Equal(t, d.Names(), back.Names())
	assert.Equal(t, d.Outcome(), back.Outcome())
	for _, name := range []string{"region", "dose", "ill", "age"} {
		assert.Equal(t, d.Levels(name), back.Levels(name))
	}
	w := make([]float64, len(d.Names()))
	for i := range w {
		w[i] = 1 / float64(i+1)
	}
	one, w1, err1 := d.Original(0.5, w)
	two, w2, err2 := back.Original(0.5, w)
	assert.Equal(t, []any{one, w1, err1}, []any{two, w2, err2})

	_, err = back.Frame(read(t, data.CSV{Levels: map[string][]string{"dose": {"low", "mid", "high"}}},
		"region,age,income,dose,weight\nW,99,1.5,mid,1\n"))
	require.ErrorContains(t, err, `line 2, column "region", value "W": the training data do not have this level`)
}

// A map is a function, which a file does not keep: without it a frame is an error that names it.
func TestDesignFromDiskNeedsMaps(t *testing.T) {
	d, table := all(t)
	back := saved(t, d)
	_, err := back.Frame(table)
	require.ErrorContains(t, err, `column "income": the map "log income" is not in the file of the design`)
	for _, functions := range []map[string]func(float64) float64{
		{"log income": nil}, {"income": math.Log}, {"age": math.Log}, {"log income": math.Log, "other": math.Log},
	} {
		_, err = back.WithMaps(functions)
		require.ErrorContains(t, err, "the function is nil, or the design has no map of this name")
	}
}

// A file that was damaged, or is of something else, is an error and leaves the design as it was.
func TestDesignFromDamagedFile(t *testing.T) {
	d, table := all(t)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	before := frame(t, d, table)
	for _, c := range []struct{ from, to, want string }{
		{`"kelvin_design":1`, `"kelvin_design":2`, "its version is 2, expected 1"},
		{`"kelvin_design":1`, `"other":1`, "unknown field"},
		{`"sd":`, `"sd":-`, "has the standard deviation -"},
		{`"levels":["E","N","S"]`, `"levels":["E","N","N"]`, `the level "N" twice`},
		{`"levels":["E","N","S"]`, `"levels":["E","N"]`, "2 levels and a contrast with 3 rows"},
		{`"labels":["E","N"]`, `"labels":["E"]`, "a row of 2 numbers, expected 1"},
		{`"columns":[[[0,0]]`, `"columns":[[[0,1]]`, `variable "age" has no part 1`},
		{`"columns":[[[0,0]]`, `"columns":[[[99,0]]`, "variable 99"},
		{`"columns":[[[0,0]]`, `"columns":[[[0,0]],[[0,0]]`, `column "age" is there twice`},
		{`"columns":[[[0,0]]`, `"columns":[[]`, "it has 0 factors"},
		{`"own":[`, `"own":[-1,`, "variable -1 is no column of its own"},
		{`"outcome":`, `"outcome":9`, "its outcome is variable 9"},
	} {
		require.Contains(t, string(text), c.from)
		err := json.Unmarshal([]byte(strings.Replace(string(text), c.from, c.to, 1)), d)
		require.ErrorContains(t, err, c.want, "%s -> %s", c.from, c.to)
		wrong(t, err)
		require.Equal(t, before, frame(t, d, table))
	}
}

// Any bytes are a design or an error, and a design maps a table or gives an error.
func FuzzDesign(f *testing.F) {
	d, table := all(f)
	text, err := json.Marshal(d)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"kelvin_design":1,"variables":[{"column":"age","name":"age","mean":1e308,"sd":5e-324}],` +
		`"columns":[[[0,0],[0,0]]],"own":[],"outcome":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d data.Design
		if json.Unmarshal(text, &d) != nil {
			return
		}
		again, err := json.Marshal(&d)
		require.NoError(t, err)
		var back data.Design
		require.NoError(t, json.Unmarshal(again, &back))
		one, err1 := d.Frame(table)
		two, err2 := back.Frame(table)
		require.Equal(t, err1, err2)
		require.Equal(t, one, two)
	})
}
