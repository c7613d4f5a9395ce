package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/regression"
)

const predictUsage = `usage: kelvin predict fit/ new.csv [flags]

Predicts the outcome of each row of a file by the draws of a fit. It writes the file with more columns: mean, sd, lower
and upper end of the interval of a new outcome (predicted_mean, ...) and of its mean (expected_mean, ...); of ordered
categories those of the probability of each (high_mean, ...).
`

// newLevels are the words of -new-levels.
var newLevels = map[string]regression.NewLevels{"refuse": regression.RefuseNew, "draw": regression.DrawNew,
	"mean": regression.MeanNew}

// predictBlock is about how many numbers are predicted at once.
const predictBlock = 1 << 24

// predict runs `kelvin predict`.
func (a *app) predict(ctx context.Context, args []string) error {
	levels, out, interval, seed := "refuse", "", 0.9, uint64(0)
	flags := flag.NewFlagSet("predict", flag.ContinueOnError)
	flags.StringVar(&levels, "new-levels", levels,
		"`WHAT` to do with levels of groups that the fit has not seen: refuse, draw their effects, or take the mean effect")
	flags.Float64Var(&interval, "interval", interval, "the intervals have the probability `P`")
	flags.StringVar(&out, "o", "", "write to `FILE` (default: standard output)")
	flags.Uint64Var(&seed, "seed", 0, "take the random numbers of `SEED`")
	others, err := a.parse(flags, predictUsage, args, 2, 2)
	if err != nil {
		return err
	}
	how, ok := newLevels[levels]
	switch {
	case !ok:
		return wrong("-new-levels %q: it is refuse, draw or mean", levels)
	case !(interval > 0 && interval < 1):
		return wrong("-interval is %g, want a number between 0 and 1", interval)
	case out != "" && sameFile(out, others[1]):
		return fmt.Errorf("%s is the file to read; choose another one with -o", out)
	}
	f, err := open(others[0])
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(others[1])
	if err != nil {
		return err
	}
	table, err := f.fresh(raw, others[1])
	if err != nil {
		return err
	}
	p := predictor{f: f, rows: regression.Rows{NewLevels: how, Seed: seed}, interval: interval}
	if err := p.all(ctx, table); err != nil {
		return f.place(table, raw, others[1], err)
	}
	write := func(w io.Writer) error { return p.write(w, raw, f.Reader) }
	if out == "" {
		return write(a.out)
	}
	done, err := atomicfile.Stream(out, write)
	if !done && err == nil {
		err = atomicfile.Replace(out, write)
	}
	return err
}

// fresh reads the rows of a new file, each column as it is in the data of the fit.
func (f *fitted) fresh(raw []byte, path string) (*data.Table, error) {
	of := reader{Missing: f.Reader.Missing, Comma: f.Reader.Comma, Decimal: f.Reader.Decimal}
	names := of.header(raw)
	var columns, absent []string
	for _, name := range f.model.Predictors() {
		if !slices.Contains(names, name) {
			absent = append(absent, strconv.Quote(name))
			continue
		}
		c, err := f.table.Column(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, name)
		if c.Labels != nil {
			of.Factors = append(of.Factors, name)
		} else {
			of.Numbers = append(of.Numbers, name)
		}
	}
	switch {
	case absent != nil:
		return nil, fmt.Errorf("%s, line 1: the formula %q needs the columns %s too, and the file has %q", path, f.Formula,
			strings.Join(absent, ", "), names)
	case len(columns) == 0: // of a formula of a constant: any column counts the rows
		columns = names
		of.Factors = names
	}
	reads := of.csv(path)
	reads.Columns = columns
	return reads.Read(bytes.NewReader(raw))
}

// place is an error of new rows with the place in their file: of a level that the fit has not seen it is the first one.
func (f *fitted) place(table *data.Table, raw []byte, path string, err error) error {
	var of *data.Error
	if errors.As(err, &of) && of.Line > 0 {
		return inFile(err, path)
	}
	in := f.Reader.records(raw)
	var lines []int
	for _, e := in.Read(); e == nil; _, e = in.Read() {
		line, _ := in.FieldPos(0)
		lines = append(lines, line)
	}
	for _, name := range table.Names() {
		c, e := table.Column(name)
		seen, e2 := f.table.Column(name)
		if e != nil || e2 != nil || c.Labels == nil {
			continue
		}
		for i, label := range c.Labels {
			if !slices.Contains(seen.Labels, label) && strings.Contains(err.Error(), strconv.Quote(label)) &&
				i+1 < len(lines) {
				return fmt.Errorf("%s, line %d, column %q: %w", path, lines[i+1], name, err)
			}
		}
	}
	return err
}

// predictor makes the columns that predict adds.
type predictor struct {
	f        *fitted
	rows     regression.Rows
	interval float64
	names    []string   // of the columns
	columns  [][]string // for each, the values
}

// all predicts the rows of a table, some at a time.
func (p *predictor) all(ctx context.Context, table *data.Table) error {
	size := max(1, predictBlock/p.f.inf.Posterior.Total())
	for from := 0; from < table.Len(); from += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		var rows []int
		for i := from; i < min(from+size, table.Len()); i++ {
			rows = append(rows, i)
		}
		part, err := table.Rows(rows...)
		if err != nil {
			return err
		}
		p.rows.Table = part
		if err := p.block(len(rows)); err != nil {
			return err
		}
		p.rows.Seed++
	}
	return nil
}

// block predicts some rows.
func (p *predictor) block(n int) error {
	expected, err := p.f.model.Expected(p.f.inf.Posterior, p.rows)
	if err != nil {
		return err
	}
	at := 0
	if k := expected.Dim() / n; k > 1 || p.f.Family == "cumulative" {
		names := expected.Names()[:k]
		for j, name := range names {
			label := strings.TrimSuffix(name[strings.LastIndex(name, ",")+1:], "]")
			if err := p.summarise(&at, label, expected, j, k); err != nil {
				return err
			}
		}
		return nil
	}
	predicted, err := p.f.model.Predict(p.f.inf.Posterior, p.rows)
	if err != nil {
		return err
	}
	if err := p.summarise(&at, "predicted", predicted, 0, 1); err != nil {
		return err
	}
	return p.summarise(&at, "expected", expected, 0, 1)
}

// summarise appends mean, sd and interval of every k-th element, from j on, to four columns.
func (p *predictor) summarise(at *int, name string, d *draws.Draws, j, k int) error {
	site := d.Sites()[0].Name
	mean, err := d.Mean(site)
	if err != nil {
		return err
	}
	sd, err := d.SD(site)
	if err != nil {
		return err
	}
	ends, err := d.Quantile(site, (1-p.interval)/2, (1+p.interval)/2)
	if err != nil {
		return err
	}
	for c, values := range [][]float64{mean, sd, ends[0], ends[1]} {
		if len(p.columns) <= *at {
			p.names = append(p.names, name+"_"+[]string{"mean", "sd", "lower", "upper"}[c])
			p.columns = append(p.columns, nil)
		}
		for i := j; i < len(values); i += k {
			p.columns[*at] = append(p.columns[*at], strconv.FormatFloat(values[i], 'g', 6, 64))
		}
		*at++
	}
	return nil
}

// write writes a file with the columns.
func (p *predictor) write(w io.Writer, raw []byte, of reader) error {
	in, out := of.records(raw), csv.NewWriter(w)
	out.Comma = in.Comma
	for row := -1; ; row++ {
		record, err := in.Read()
		switch {
		case err == io.EOF:
			out.Flush()
			return out.Error()
		case err != nil:
			return err
		case row < 0:
			for _, name := range p.names {
				if slices.Contains(record, name) {
					return fmt.Errorf("the file has a column %q already: rename it", name)
				}
			}
			record = append(record, p.names...)
		default:
			for _, c := range p.columns {
				record = append(record, c[row])
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
