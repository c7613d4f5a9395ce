package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/template"
)

//go:embed program.go.txt
var program string

// code runs `kelvin code`.
func (a *app) code(_ context.Context, args []string) error {
	dirs, err := a.parse(flag.NewFlagSet("code", flag.ContinueOnError), args, 1, 1)
	if err != nil {
		return err
	}
	s, err := readSaved(dirs[0])
	if err != nil {
		return err
	}
	of, err := s.reads("")
	if err != nil {
		return err
	}
	f, err := s.formula()
	if err != nil {
		return err
	}
	method := reflect.TypeOf(s.method())
	imports := []string{"data", "diag", "infer", "regression", "store", strings.TrimPrefix(method.PkgPath(),
		strings.TrimSuffix(reflect.TypeOf(of).PkgPath(), "data"))}
	priors := map[string]string{}
	for name, text := range s.Priors {
		if _, priors[name], err = parseLaw(text); err != nil {
			return err
		}
		imports = append(imports, "dist")
	}
	slices.Sort(imports)
	t, err := template.New("program").Parse(program)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{"Imports": slices.Compact(imports), "Reader": literal(of),
		"File": filepath.ToSlash(filepath.Join(dirs[0], dataFile)), "Formula": f, "Family": literal(f.Family),
		"Priors": priors, "Method": literal(s.method()), "Seed": s.Seed, "Partial": s.Family == partial,
		"Options": literal(s.options())}); err != nil {
		return err
	}
	text, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// literal is a struct as Go has it, with the fields that are not zero.
func literal(v any) string {
	of := reflect.ValueOf(v)
	var fields []string
	for i := range of.NumField() {
		f := of.Field(i)
		if f.IsZero() || f.Kind() == reflect.Map && f.Len() == 0 {
			continue
		}
		text := fmt.Sprintf("%#v", f.Interface())
		switch f.Kind() {
		case reflect.Int32:
			text = fmt.Sprintf("%q", f.Interface())
		case reflect.Uint64:
			text = fmt.Sprint(f.Interface())
		case reflect.Interface:
			text = literal(f.Interface())
		}
		fields = append(fields, of.Type().Field(i).Name+": "+text)
	}
	return fmt.Sprintf("%T{%s}", v, strings.Join(fields, ", "))
}
