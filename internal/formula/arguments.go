package formula

import (
	"slices"
)

// arguments are those of a call by their names. Readers of one note the first error.
type arguments struct {
	x   *expansion
	e   Expr
	of  map[string]Expr
	err *Error
}

// arguments reads those of a call; the first is needed, but of trunc().
func (x *expansion) arguments(e Expr, names ...string) *arguments {
	out := &arguments{x: x, e: e, of: map[string]Expr{}}
	place := 0
	for _, a := range e.Args {
		name := a.Key
		if name == "" {
			for place < len(names) && !out.of[names[place]].None() {
				place++
			}
			if place == len(names) {
				out.wrong(a.at, "%s() has too many arguments: it takes %s", e.Name, list(names))
				return out
			}
			name = names[place]
		}
		switch {
		case !slices.Contains(names, name):
			out.wrong(a.at, "%s() has no argument %q: it takes %s", e.Name, short(name), list(names))
		case !out.of[name].None():
			out.wrong(a.at, "%s() has the argument %q twice", e.Name, name)
		}
		a = a.bare()
		a.Key = ""
		out.of[name] = a
	}
	if len(out.of) == 0 || out.of[names[0]].None() && e.Name != "trunc" {
		out.wrong(e.at, "%s() needs an argument: it takes %s", e.Name, list(names))
	}
	return out
}

func (a *arguments) wrong(at int, problem string, args ...any) {
	if a.err == nil {
		a.err = a.x.wrong(at, problem, args...)
	}
}

// number is arithmetic of columns.
func (a *arguments) number(name string) Expr {
	if err := a.x.checkNumber(a.of[name]); err != nil && a.err == nil {
		a.err = err
	}
	return a.of[name]
}

// whole is a whole number from low to high, of which what says what it is.
func (a *arguments) whole(name string, otherwise, low, high int, what string) int {
	e := a.of[name]
	if e.None() {
		return otherwise
	}
	n := int(e.Value)
	if e.Kind != Number || e.Value != float64(n) || n < low || n > high {
		a.wrong(e.at, "%s is a whole number from %d to %d", what, low, high)
	}
	return n
}

// flag is TRUE or FALSE, or True or False of Python.
func (a *arguments) flag(name string) bool {
	e := a.of[name]
	if e.Kind == Column && (e.Name == "True" || e.Name == "False") {
		return e.Name == "True"
	}
	if !e.None() && e.Kind != Flag {
		a.wrong(e.at, "expected TRUE or FALSE, not %s", e)
	}
	return e.Value != 0
}

// numbers is c(1, 2), or a number.
func (a *arguments) numbers(name string) (out []float64) {
	e := a.of[name]
	if e.None() {
		return nil
	}
	list := []Expr{e}
	if e.Kind == Call && e.Name == "c" {
		list = e.Args
	}
	for _, k := range list {
		v := k.Value
		if k.Kind == Call && k.Name == "-" && len(k.Args) == 1 {
			v, k.Kind = -k.Args[0].Value, k.Args[0].Kind
		}
		if k.Kind != Number || k.Key != "" {
			a.wrong(k.at, "%s are numbers: c(1, 2)", name)
		}
		out = append(out, v)
	}
	return out
}
