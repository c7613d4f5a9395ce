package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	page "github.com/kelvin-ppl/kelvin/internal/report"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/regression"
)

// gridSteps is how many values of a column of numbers a picture has.
const gridSteps = 50

// pictures writes the conditional effect of each column of the mean, and returns them for the report. One that cannot
// be drawn is a note: the fit is worth more.
func (r *results) pictures(dir string) (out []page.Picture) {
	f := &fitted{saved: r.j.saved, dir: dir, model: r.model, inf: r.inf}
	for _, column := range r.model.Covariates() {
		var b bytes.Buffer
		if _, err := f.picture(column, "", &b); err != nil {
			r.notes = append(r.notes, fmt.Sprintf("The effect of %s was not drawn: %v", column, err))
			continue
		}
		out = append(out, page.Picture{Name: column, SVG: b.Bytes()})
	}
	return out
}

// picture draws what is expected over a column to a PNG in the folder of the fit, and as SVG: in a line for each level
// of another column, or at its quartiles, where there is one. Others have their mean or first level, groups no effect.
func (f *fitted) picture(by, column string, svg io.Writer) (path string, err error) {
	grid, err := f.model.Grid(by, gridSteps)
	if err != nil {
		return "", err
	}
	parts := []part{{table: grid}}
	if column != "" {
		if parts, err = f.variants(grid, column, 0.25, 0.5, 0.75); err != nil {
			return "", err
		}
	}
	var bands []plot.Band
	for _, p := range parts {
		if bands, err = f.addBands(bands, p, by); err != nil {
			return "", err
		}
	}
	over, err := grid.Column(by)
	if err != nil {
		return "", err
	}
	label, name, title := "expected "+f.model.Outcome(), "effect-"+by, "mean and 95 % interval"
	if f.Family == partial {
		label = "hazard ratio"
	}
	if f.model.Categorical() && len(f.model.Observed()) == f.model.Table().Len() {
		label = "probabilities of " + f.model.Outcome()
	}
	if column != "" {
		name, title = name+"-"+column, title+", by "+column
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, name)
	draw := func(w io.Writer, format string) error {
		return plot.Bands(w, bands, over.Levels, by, label,
			plot.Options{Width: 6, Height: 4, Format: format, Title: title})
	}
	path = filepath.Join(f.dir, name+".png")
	if err := atomicfile.Replace(path, func(w io.Writer) error { return draw(w, "png") }); err != nil {
		return "", err
	}
	return path, draw(svg, "svg")
}

// part is a table with a column at one value, which the name says.
type part struct {
	name  string
	table *data.Table
}

// variants are a table with a column at each of the levels that it has in the data, or at quantiles of its numbers.
func (f *fitted) variants(table *data.Table, column string, quantiles ...float64) (out []part, err error) {
	c, err := f.model.Table().Column(column)
	if err != nil {
		return nil, err
	}
	n := table.Len()
	add := func(name string, at data.Column) {
		with, e := table.With(at)
		out, err = append(out, part{column + " " + name, with}), errors.Join(err, e)
	}
	for _, level := range c.Levels {
		add(level, data.Column{Name: column, Labels: slices.Repeat([]string{level}, n), Levels: c.Levels})
	}
	if c.Labels != nil {
		return out, err
	}
	sorted := slices.Sorted(slices.Values(c.Numbers))
	for _, p := range quantiles {
		v := sample.Quantile(sorted, p)
		if f.model.Whole(column) {
			v = math.Round(v)
		}
		add(fmt.Sprintf("%.4g", v), data.Column{Name: column, Numbers: slices.Repeat([]float64{v}, n)})
	}
	return out, err
}

// addBands adds the expected outcome over a column: one band, or one for each category.
func (f *fitted) addBands(bands []plot.Band, p part, by string) ([]plot.Band, error) {
	over, err := p.table.Column(by)
	if err != nil {
		return nil, err
	}
	expected, err := f.model.Expected(f.inf.Posterior, regression.Rows{Table: p.table, NoGroups: true})
	if err != nil {
		return nil, err
	}
	all, err := statistics(expected, 0.95)
	if err != nil {
		return nil, err
	}
	n := p.table.Len()
	categories := expected.Dim() / n
	for k := range categories {
		b := plot.Band{Name: p.name}
		if f.model.Categorical() {
			b.Name = strings.TrimSpace(p.name + " " + category(expected.Names()[k]))
		}
		for i := range n {
			if b.X = append(b.X, float64(i)); over.Labels == nil {
				b.X[i] = over.Numbers[i]
			}
			at := i*categories + k
			b.Y, b.Low, b.High = append(b.Y, all[0][at]), append(b.Low, all[2][at]), append(b.High, all[3][at])
		}
		bands = append(bands, b)
	}
	return bands, nil
}

// category is that of an element such as mean[0,high].
func category(name string) string { return strings.TrimSuffix(name[strings.Index(name, ",")+1:], "]") }
