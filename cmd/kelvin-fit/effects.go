package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/regression"
)

const effectsUsage = `usage: kelvin effects fit/ --by age [--column treatment] [flags]

Prints what a column does to the expected outcome, averaged over the rows of the data: the slope of a column of numbers,
the differences of the levels of a factor. With --column it is the effect of that column, in the rows of each level of
--by, or with --by at the quartiles of its numbers. It draws what is expected over --by, in a line for each level of
--column or at its quartiles, with other columns at their mean or first level.
`

// effectsJob are the flags of effects.
type effectsJob struct {
	by, column, from, to, out string
	step                      float64
	ratio                     bool
}

// effects runs `kelvin effects`.
func (a *app) effects(_ context.Context, args []string) error {
	var j effectsJob
	flags := flag.NewFlagSet("effects", flag.ContinueOnError)
	flags.StringVar(&j.by, "by", "", "the effect of, or by, this `COLUMN`")
	flags.StringVar(&j.column, "column", "", "the effect of this `COLUMN`, by the other")
	flags.StringVar(&j.from, "from", "", "compare with this `VALUE` (default: the first level, or the value of each row)")
	flags.StringVar(&j.to, "to", "", "compare this `VALUE` (default: each level, or the value of each row and the step)")
	flags.Float64Var(&j.step, "step", 0, "compare numbers that are this `STEP` apart (default: the slope)")
	flags.BoolVar(&j.ratio, "ratio", false, "quotients in the place of differences")
	flags.StringVar(&j.out, "o", "", "draw to `FILE`, .png, .svg or .pdf (default: a PNG in the folder of the fit)")
	others, err := a.parse(flags, effectsUsage, args, 1, 1)
	if err != nil {
		return err
	}
	if j.by == "" {
		return wrong("--by COLUMN is missing; see kelvin effects -help")
	}
	if end := strings.ToLower(filepath.Ext(j.out)); j.out != "" && !slices.Contains([]string{".png", ".svg", ".pdf"}, end) {
		return wrong("-o %s: it must end in .png, .svg or .pdf", j.out)
	}
	f, err := open(others[0])
	if err != nil {
		return err
	}
	for name, column := range map[string]string{"by": j.by, "column": j.column} {
		if columns := f.model.Covariates(); column != "" && !slices.Contains(columns, column) {
			return fmt.Errorf("--%s %s: it is none of the columns of the mean, which are %q", name, column, columns)
		}
	}
	if f.Family == "cumulative" {
		fmt.Fprintln(a.err, "ordered categories have no average effect: the picture has their probabilities")
	} else {
		table, err := j.table(f)
		if err != nil {
			return err
		}
		if err := table.Format(a.out); err != nil {
			return err
		}
	}
	if j.out == "" {
		j.out = filepath.Join(f.dir, pictureName(j.by, j.column))
	}
	e, err := newEffect(f.model, f.inf.Posterior, f.table, j.by, j.column)
	if err != nil {
		return err
	}
	if err := e.write(j.out); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "wrote %s\n", j.out)
	return nil
}

// table is the effect, in one line or more for each part of the data.
func (j effectsJob) table(f *fitted) (*diag.Table, error) {
	parts := []part{{table: f.table}}
	target := j.by
	if j.column != "" {
		target = j.column
		var err error
		if parts, err = partsOf(f.table, j.by); err != nil {
			return nil, err
		}
	}
	column, err := f.table.Column(target)
	if err != nil {
		return nil, err
	}
	var all *diag.Table
	for _, p := range parts {
		d, err := j.effect(f, p.table, column)
		if err != nil {
			return nil, err
		}
		t, err := diag.Summary(d, diag.SummaryOptions{})
		if err != nil {
			return nil, err
		}
		for i := range t.Rows {
			t.Rows[i].Name += p.name
		}
		if all == nil {
			all = t
		} else {
			all.Rows = append(all.Rows, t.Rows...)
		}
	}
	return all, nil
}

// effect are draws of the effect over the rows of a table.
func (j effectsJob) effect(f *fitted, table *data.Table, column data.Column) (*draws.Draws, error) {
	rows := regression.Rows{Table: table}
	if column.Labels == nil && j.from == "" && j.to == "" && j.step == 0 && !j.ratio {
		return f.model.Slope(f.inf.Posterior, rows, column.Name, "")
	}
	c := regression.Comparison{Column: column.Name, Step: j.step, Ratio: j.ratio}
	for _, end := range []struct {
		flag, text string
		to         *any
	}{{"from", j.from, &c.From}, {"to", j.to, &c.To}} {
		if end.text == "" {
			continue
		}
		if *end.to = end.text; column.Labels == nil {
			v, err := strconv.ParseFloat(end.text, 64)
			if err != nil {
				return nil, wrong("--%s %q: %s has numbers", end.flag, end.text, column.Name)
			}
			*end.to = v
		} else if !slices.Contains(column.Levels, end.text) {
			return nil, wrong("--%s %q: the levels of %s are %q", end.flag, end.text, column.Name, column.Levels)
		}
	}
	if column.Labels == nil && (c.From == nil) != (c.To == nil) {
		return nil, wrong("give both --from and --to, since %s has numbers", column.Name)
	}
	return f.model.Compare(f.inf.Posterior, rows, c)
}

// part is a part of the data, or the data with a column at one value.
type part struct {
	name  string
	table *data.Table
}

// partsOf are the rows of each level of a factor, or all rows with a column of numbers at its quartiles.
func partsOf(table *data.Table, by string) (out []part, err error) {
	c, err := table.Column(by)
	if err != nil {
		return nil, err
	}
	if c.Labels == nil {
		sorted := slices.Sorted(slices.Values(c.Numbers))
		for _, p := range []float64{0, 0.25, 0.5, 0.75, 1} {
			v := sample.Quantile(sorted, p)
			c.Numbers = slices.Repeat([]float64{v}, len(c.Numbers))
			t, err := table.With(c)
			if err != nil {
				return nil, err
			}
			out = append(out, part{fmt.Sprintf(", %s = %.4g", by, v), t})
		}
		return out, nil
	}
	for _, level := range c.Levels {
		var rows []int
		for i, label := range c.Labels {
			if label == level {
				rows = append(rows, i)
			}
		}
		if rows == nil {
			continue
		}
		t, err := table.Rows(rows...)
		if err != nil {
			return nil, err
		}
		out = append(out, part{fmt.Sprintf(", %s = %s", by, level), t})
	}
	return out, nil
}
