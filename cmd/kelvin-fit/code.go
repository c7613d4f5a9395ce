package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/kelvin-ppl/kelvin/regression"
)

const codeUsage = `usage: kelvin code fit/

Prints a Go program that reads the data of a fit, and fits and stores the same regression.
`

//go:embed program.go.txt
var program string

// code runs `kelvin code`.
func (a *app) code(_ context.Context, args []string) error {
	dirs, err := a.parse(flag.NewFlagSet("code", flag.ContinueOnError), codeUsage, args, 1, 1)
	if err != nil {
		return err
	}
	s, err := readSaved(dirs[0])
	if err != nil {
		return err
	}
	text, err := s.program(filepath.ToSlash(filepath.Join(dirs[0], dataFile)))
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// program is the fit as a Go program that reads a file.
func (s *saved) program(file string) ([]byte, error) {
	f, err := s.formula()
	if err != nil {
		return nil, err
	}
	columns, err := f.Columns()
	if err != nil {
		return nil, err
	}
	priors := map[string]string{}
	for name, text := range s.Priors {
		if priors[name], err = goCode(text); err != nil {
			return nil, err
		}
	}
	m := s.method()
	imports := []string{"diag", "data", "infer", m.path, "regression", "store"}
	if len(priors) > 0 {
		imports = append(imports, "dist")
	}
	slices.Sort(imports)
	t, err := template.New("program").Funcs(template.FuncMap{"quote": strconv.Quote, "reader": goReader,
		"family": func(f regression.Family) string { return fmt.Sprintf("%#v", f) }}).Parse(program)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"File": file, "Saved": s, "Formula": f, "Columns": columns, "Priors": priors,
		"Method": m.code, "Options": s.options(), "Imports": imports})
	if err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

// goReader is a reader of package data with what is not its default.
func goReader(r reader, columns []string) string {
	var fields []string
	add := func(name string, value any, has bool) {
		if has {
			fields = append(fields, fmt.Sprintf("%s: %#v", name, value))
		}
	}
	all := slices.Concat(columns, r.Factors, r.Numbers, slices.Collect(maps.Keys(r.Levels)))
	slices.Sort(all)
	add("Columns", slices.Compact(all), true)
	add("Factors", r.Factors, r.Factors != nil)
	add("Numbers", r.Numbers, r.Numbers != nil)
	add("Levels", r.Levels, len(r.Levels) > 0)
	add("Missing", r.Missing, r.Missing != nil)
	for name, text := range map[string]string{"Comma": r.Comma, "Decimal": r.Decimal} {
		if text != "" {
			fields = append(fields, fmt.Sprintf("%s: %q", name, first(text)))
		}
	}
	return "data.CSV{" + strings.Join(fields, ", ") + "}"
}

// options are the fields of infer.Options that are not the default.
func (s *saved) options() string {
	var fields []string
	for _, f := range []struct {
		name  string
		value uint64
	}{{"Chains", uint64(s.Chains)}, {"Warmup", uint64(s.Warmup)}, {"Draws", uint64(s.Draws)}, {"Seed", s.Seed}} {
		if f.value != 0 {
			fields = append(fields, fmt.Sprintf("%s: %d", f.name, f.value))
		}
	}
	return "infer.Options{" + strings.Join(fields, ", ") + "}"
}
