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

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/regression"
)

// predictBlock is about how many numbers are predicted at once.
const predictBlock = 1 << 24

// predict runs `kelvin predict`.
func (a *app) predict(ctx context.Context, args []string) error {
	var p predictor
	flags := flag.NewFlagSet("predict", flag.ContinueOnError)
	levels := flags.String("new-levels", "refuse", "`WHAT` to do with levels of groups that the fit has not seen: "+
		"refuse them, draw their effects, or take the mean effect")
	flags.Float64Var(&p.interval, "interval", 0.9, "the intervals have the probability `P`")
	out := flags.String("o", "", "write to `FILE` (default: standard output)")
	flags.Uint64Var(&p.rows.Seed, "seed", 0, "take the random numbers of `SEED`")
	others, err := a.parse(flags, args, 2, 2)
	if err != nil {
		return err
	}
	p.rows.DrawNew, p.rows.MeanNew = *levels == "draw", *levels == "mean"
	refuse := *levels == "refuse"
	if !refuse && !p.rows.DrawNew && !p.rows.MeanNew || !(p.interval > 0 && p.interval < 1) {
		return wrong("-new-levels is refuse, draw or mean, and -interval between 0 and 1")
	}
	if p.f, err = open(others[0]); err != nil {
		return err
	}
	raw, err := os.ReadFile(others[1])
	if err != nil {
		return err
	}
	table, err := p.f.fresh(raw, others[1], refuse)
	if err != nil {
		return err
	}
	size := max(1, predictBlock/p.f.inf.Posterior.Total())
	for from := 0; from < table.Len(); from += size {
		if err := errors.Join(ctx.Err(), p.block(table, from, min(from+size, table.Len()))); err != nil {
			return fmt.Errorf("%s: %w", others[1], err)
		}
	}
	write := func(w io.Writer) error { return p.write(w, raw) }
	if *out == "" {
		return write(a.out)
	}
	done, err := atomicfile.Stream(*out, write)
	if !done && err == nil {
		err = atomicfile.Replace(*out, write)
	}
	return err
}

// fresh reads the rows of a new file, each column as it is in the data of the fit. Levels that those do not have are an
// error of the reader, which knows the line, but for levels of groups that are to be predicted.
func (f *fitted) fresh(raw []byte, path string, refuse bool) (*data.Table, error) {
	of := data.CSV{Name: path, Missing: f.Reader.Missing, Comma: f.Reader.Comma, Decimal: f.Reader.Decimal,
		Columns: f.model.Predictors(), Levels: map[string][]string{}}
	for _, name := range of.Columns {
		c, err := f.model.Table().Column(name)
		switch {
		case err != nil:
			return nil, err
		case c.Labels == nil:
			of.Numbers = append(of.Numbers, name)
		case refuse || slices.Contains(f.model.Covariates(), name):
			of.Levels[name] = c.Levels
		default:
			of.Factors = append(of.Factors, name)
		}
	}
	table, err := of.Read(bytes.NewReader(raw))
	if e := (*data.Error)(nil); errors.As(err, &e) && len(of.Levels[e.Column]) > 0 && refuse {
		err = fmt.Errorf("%w; --new-levels draw or mean predicts for new levels of groups", err)
	}
	return table, err
}

// predictor makes the columns that predict adds.
type predictor struct {
	f        *fitted
	rows     regression.Rows
	interval float64
	names    []string   // of the columns
	columns  [][]string // for each, the values
}

// block predicts the rows from to to.
func (p *predictor) block(table *data.Table, from, to int) (err error) {
	var rows []int
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	if p.rows.Table, err = table.Rows(rows...); err != nil {
		return err
	}
	expected, err := p.f.model.Expected(p.f.inf.Posterior, p.rows)
	if err != nil {
		return err
	}
	at := 0
	if k := expected.Dim() / len(rows); p.f.model.Categorical() {
		for j, name := range expected.Names()[:k] {
			err = errors.Join(err, p.summarise(&at, category(name), expected, j, k))
		}
		return err
	}
	if p.f.Family == partial {
		return p.summarise(&at, "hazard_ratio", expected, 0, 1)
	}
	predicted, err := p.f.model.Predict(p.f.inf.Posterior, p.rows)
	if err != nil {
		return err
	}
	p.rows.Seed++
	return errors.Join(p.summarise(&at, "predicted", predicted, 0, 1), p.summarise(&at, "expected", expected, 0, 1))
}

// summarise appends mean, sd and interval of every k-th element, from j on, to four columns.
func (p *predictor) summarise(at *int, name string, d *draws.Draws, j, k int) error {
	all, err := statistics(d, p.interval)
	if err != nil {
		return err
	}
	for c, values := range all {
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

// statistics are mean, sd, lower and upper end of an interval of each element of draws of one site.
func statistics(d *draws.Draws, interval float64) ([][]float64, error) {
	site := d.Sites()[0].Name
	mean, err1 := d.Mean(site)
	sd, err2 := d.SD(site)
	ends, err3 := d.Quantile(site, (1-interval)/2, (1+interval)/2)
	return append([][]float64{mean, sd}, ends...), errors.Join(err1, err2, err3)
}

// write writes a file with the columns.
func (p *predictor) write(w io.Writer, raw []byte) error {
	in, out := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff")))), csv.NewWriter(w)
	if c := p.f.Reader.Comma; c != 0 {
		in.Comma, out.Comma = c, c
	}
	records, err := in.ReadAll()
	if err != nil {
		return err
	}
	for row, record := range records {
		for c, name := range p.names {
			switch {
			case row > 0:
				record = append(record, p.columns[c][row-1])
			case slices.Contains(records[0], name):
				return fmt.Errorf("the file has a column %q already: rename it", name)
			default:
				record = append(record, name)
			}
		}
		records[row] = record
	}
	return out.WriteAll(records)
}
