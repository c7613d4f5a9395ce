package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/regression"
)

// effects runs `kelvin effects`.
func (a *app) effects(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("effects", flag.ContinueOnError)
	by := flags.String("by", "", "the effect of, or by, this `COLUMN`")
	column := flags.String("column", "", "the effect of this `COLUMN`, by the other")
	others, err := a.parse(flags, args, 1, 1)
	if err != nil {
		return err
	}
	if *by == "" || *by == *column {
		return wrong("--by COLUMN is missing, or that of --column; see kelvin effects -help")
	}
	f, err := open(others[0])
	if err != nil {
		return err
	}
	for _, name := range []string{*by, *column} {
		if columns := f.model.Covariates(); name != "" && !slices.Contains(columns, name) {
			return fmt.Errorf("%s is none of the columns of the mean, which are %q", name, columns)
		}
	}
	if f.model.Categorical() {
		fmt.Fprintln(a.err, "categories and several outcomes have no average effect: the picture has each of them")
	} else if err := f.average(a.out, *by, *column); err != nil {
		return err
	}
	path, err := f.picture(*by, *column, io.Discard)
	if err == nil {
		fmt.Fprintf(a.err, "wrote %s\n", path)
	}
	return err
}

// hypothesis runs `kelvin hypothesis`.
func (a *app) hypothesis(_ context.Context, args []string) error {
	others, err := a.parse(flag.NewFlagSet("hypothesis", flag.ContinueOnError), args, 2, 1000)
	if err != nil {
		return err
	}
	f, err := open(others[0])
	if err != nil {
		return err
	}
	all, notes := &diag.Table{}, ""
	for _, statement := range others[1:] {
		difference, evidence, err := f.model.Hypothesis(f.inf.Posterior, statement)
		if err != nil {
			return err
		}
		t, err := diag.Summary(difference, diag.SummaryOptions{})
		if err != nil {
			return err
		}
		t.Rows = append(all.Rows, t.Rows...)
		all = t
		switch {
		case math.IsInf(evidence, 1):
			notes += fmt.Sprintf("%s: no draw is against it\n", statement)
		case strings.Contains(statement, "="):
			notes += fmt.Sprintf("%s: the data make it %.3g times as likely as before\n", statement, evidence)
		default:
			notes += fmt.Sprintf("%s: probability %.3g, evidence ratio %.3g\n", statement, evidence/(1+evidence), evidence)
		}
	}
	fmt.Fprintln(a.out, "left side less right side")
	err = all.Format(a.out)
	fmt.Fprint(a.out, notes)
	return err
}

// average writes the average effect of a column, or of another one by it.
func (f *fitted) average(w io.Writer, by, column string) error {
	parts, target := []part{{table: f.model.Table()}}, by
	if column != "" {
		var err error
		target = column
		if parts, err = f.variants(f.model.Table(), by, 0, 0.25, 0.5, 0.75, 1); err != nil {
			return err
		}
	}
	of, err := f.model.Table().Column(target)
	if err != nil {
		return err
	}
	all := &diag.Table{}
	for _, p := range parts {
		rows := regression.Rows{Table: p.table}
		var d *draws.Draws
		switch change := (regression.Comparison{Column: target, Ratio: f.Family == partial}); {
		case of.Labels == nil && !f.model.Whole(target):
			d, err = f.model.Slope(f.inf.Posterior, rows, target, "")
		case of.Labels == nil: // from the least to the largest
			change.From, change.To = slices.Min(of.Numbers), slices.Max(of.Numbers)
			fallthrough
		default:
			d, err = f.model.Compare(f.inf.Posterior, rows, change)
		}
		if err != nil {
			return err
		}
		t, err := diag.Summary(d, diag.SummaryOptions{})
		if err != nil {
			return err
		}
		for i := range t.Rows {
			if p.name != "" {
				t.Rows[i].Name += ", " + p.name
			}
		}
		t.Rows = append(all.Rows, t.Rows...)
		all = t
	}
	return all.Format(w)
}
