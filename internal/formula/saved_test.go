package formula_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/internal/formula"
	"github.com/stretchr/testify/require"
)

// learned is a design with each kind of term, and its training data.
func learned(t *testing.T) (*formula.Design, *data.Table) {
	var x, z, dose []float64
	var g, h []string
	for i := range 40 {
		x, z = append(x, math.Sin(float64(i))), append(z, 2+math.Cos(3*float64(i)))
		dose = append(dose, float64(i*i%4))
		g, h = append(g, string(rune('a'+i%3))), append(h, string(rune('p'+i/3%4)))
	}
	table, err := data.NewTable(data.Column{Name: "x", Numbers: x}, data.Column{Name: "z", Numbers: z},
		data.Column{Name: "dose", Numbers: dose}, data.Column{Name: "g", Labels: g}, data.Column{Name: "h", Labels: h})
	require.NoError(t, err)
	f, err := formula.Parse("~ poly(x, 2)*g + C(h, Helmert) + factor(dose):x + bs(z, df = 4) + scale(log(z)) + " +
		"s(x, k = 4) + s(z, k = 4, by = g) + s(x, k = 5, by = z) + t2(x, z, k = 3) + gp(x, k = 4) + mo(dose) + " +
		"offset(center(z)) + " +
		"(1 + x + g || h) + (0 + x | mm(g, h, weights = cbind(z, dose + 1)))")
	require.NoError(t, err)
	d, err := f.Fit(table, formula.Options{Collinear: true, EmptyCells: true})
	require.NoError(t, err)
	return d, table
}

// A design that was written and read makes the same numbers of rows, to the bit.
func TestSaved(t *testing.T) {
	d, table := learned(t)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	var again formula.Design
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, d.Names(), again.Names())
	require.Equal(t, d.Groups(), again.Groups())
	require.Equal(t, d.Smooths(), again.Smooths())
	some, err := table.Rows(3, 1, 4, 15)
	require.NoError(t, err)
	want, err := d.Rows(some)
	require.NoError(t, err)
	got, err := again.Rows(some)
	require.NoError(t, err)
	require.Equal(t, want, got)
	second, err := json.Marshal(&again)
	require.NoError(t, err)
	require.Equal(t, string(text), string(second))
}

// What is no design is an error, and what looks like one never panics.
func TestSavedDamaged(t *testing.T) {
	d, table := learned(t)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	try := func(text string) error {
		var made formula.Design
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			return err
		}
		_, err := made.Rows(table)
		return err
	}
	numbers := regexp.MustCompile(`[0-9][0-9.e-]*|"[^"]*"|,|\[[^\[\]]*\]`).FindAllIndex(text, -1)
	refused := 0
	for i, at := range numbers {
		with := []string{"-1", "99", "[]", "null", `""`}[i%5]
		if try(string(text[:at[0]])+with+string(text[at[1]:])) != nil {
			refused++
		}
	}
	t.Logf("%d of %d changes are refused", refused, len(numbers))
	require.Greater(t, refused, len(numbers)/2)
	for words, change := range map[string][2]string{
		"its version is 2": {`"kelvin_formula":1`, `"kelvin_formula":2`}, "unknown field": {`"formula":`, `"other":`},
		"is of variable 99": {`"parts":[[0,`, `"parts":[[99,`}, "has learned": {`"poly(x, 2)":[`, `"poly(x, 2)":[1,`},
		"is no spline": {`"knots":[`, `"knots":[-9,`}, "is 77 of": {`"of":0`, `"of":77`},
		"groups, and its formula": {`"groups":[`, `"groups":[{"levels":["a"],"columns":[]},`}} {
		require.ErrorContains(t, try(strings.Replace(string(text), change[0], change[1], 1)), words)
	}
}
