package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/regression"
)

// gridSteps is how many values of a column a picture has.
const gridSteps = 50

// mostBands is how many levels of a second column a picture has room for.
const mostBands = 7

// pictures writes the conditional effect of each column of the mean, and keeps it for the report.
func (r *results) pictures(dir string) error {
	for _, column := range r.model.Covariates() {
		e, err := newEffect(r.model, r.posterior, nil, column, "")
		if err == nil {
			err = e.write(filepath.Join(dir, pictureName(column, "")))
		}
		var b bytes.Buffer
		if err == nil {
			err = e.draw(&b, "svg")
		}
		if err != nil {
			return fmt.Errorf("the picture of %s: %w", column, err)
		}
		r.drawn = append(r.drawn, page.Picture{Name: column, SVG: b.Bytes()})
	}
	return nil
}

// pictureName is the name of the file of an effect.
func pictureName(by, column string) string {
	name := "effect-" + by
	if column != "" {
		name += "-" + column
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, name) + ".png"
}

// effect is a picture of what is expected over a column.
type effect struct {
	by, column, outcome string
	levels              []string
	bands               []plot.Band
}

// newEffect is what is expected over a column, for each level of another one of a table, or at its quartiles, where there
// is one. Other columns have their mean, or their first level, and groups no effect.
func newEffect(m *regression.Model, posterior *draws.Draws, of *data.Table, by, column string) (*effect, error) {
	grid, err := m.Grid(by, gridSteps)
	if err != nil {
		return nil, err
	}
	over, err := grid.Column(by)
	if err != nil {
		return nil, err
	}
	parts := []part{{table: grid}}
	if column != "" {
		if parts, err = variants(grid, of, column); err != nil {
			return nil, err
		}
	}
	e := &effect{by: by, column: column, outcome: "expected " + m.Outcome(), levels: over.Levels}
	for _, p := range parts {
		more, err := expectedBands(m, posterior, p.table, over, p.name)
		if err != nil {
			return nil, err
		}
		e.bands = append(e.bands, more...)
	}
	if len(e.bands) > len(parts) {
		e.outcome = "probabilities of " + m.Outcome()
	}
	return e, nil
}

// draw draws it.
func (e *effect) draw(w io.Writer, format string) error {
	o := plot.Options{Width: 6, Height: 4, Format: format, Title: "mean and 95 % interval"}
	if e.column != "" {
		o.Title += ", by " + e.column
	}
	return plot.Bands(w, e.bands, e.levels, e.by, e.outcome, o)
}

// write draws it to a file, whose ending is the format.
func (e *effect) write(path string) error {
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	return atomicfile.Replace(path, func(w io.Writer) error { return e.draw(w, format) })
}

// variants are a grid with a column at each of its levels in a table, of which a picture has room for some, or at the
// quartiles of its numbers.
func variants(grid, of *data.Table, column string) (out []part, err error) {
	c, err := of.Column(column)
	if err != nil {
		return nil, err
	}
	add := func(name string, number float64) error {
		at := data.Column{Name: column, Levels: c.Levels}
		if c.Labels != nil {
			at.Labels = slices.Repeat([]string{name}, grid.Len())
		} else {
			at.Numbers = slices.Repeat([]float64{number}, grid.Len())
		}
		table, err := grid.With(at)
		out = append(out, part{name, table})
		return err
	}
	for _, level := range c.Levels[:min(len(c.Levels), mostBands)] {
		if err := add(level, 0); err != nil {
			return nil, err
		}
	}
	if c.Labels != nil {
		return out, nil
	}
	sorted := slices.Sorted(slices.Values(c.Numbers))
	for _, p := range []float64{0.25, 0.5, 0.75} {
		v := sample.Quantile(sorted, p)
		if err := add(fmt.Sprintf("%.4g", v), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// expectedBands are the expected outcome over a column: one band, or one for each of ordered categories.
func expectedBands(m *regression.Model, posterior *draws.Draws, table *data.Table, over data.Column,
	name string) ([]plot.Band, error) {
	expected, err := m.Expected(posterior, regression.Rows{Table: table, NoGroups: true})
	if err != nil {
		return nil, err
	}
	n := table.Len()
	categories := expected.Dim() / n
	bands := make([]plot.Band, categories)
	for k := range bands {
		b := &bands[k]
		if b.Name = name; categories > 1 {
			element := expected.Names()[k]
			label := strings.TrimSuffix(element[strings.LastIndex(element, ",")+1:], "]")
			b.Name = strings.TrimSpace(name + " " + label)
		}
		for i := range n {
			x := expected.Pooled(i*categories + k)
			mean, _ := sample.Moments(x)
			slices.Sort(x)
			at := float64(i)
			if over.Labels == nil {
				at = over.Numbers[i]
			}
			b.X, b.Y = append(b.X, at), append(b.Y, mean)
			b.Low, b.High = append(b.Low, sample.Quantile(x, 0.025)), append(b.High, sample.Quantile(x, 0.975))
		}
	}
	return bands, nil
}
