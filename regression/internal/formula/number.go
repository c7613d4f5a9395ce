package formula

import (
	"fmt"
	"math"
)

// vector is a number of each row, or one of all of them.
type vector struct {
	x    []float64 // nil for a constant
	c    float64
	kept bool // whether x belongs to a column, and must not change
}

func (v vector) at(i int) float64 {
	if v.x == nil {
		return v.c
	}
	return v.x[i]
}

// full has the number of each of n rows.
func (v vector) full(n int) []float64 {
	if v.x != nil {
		return v.x
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = v.c
	}
	return out
}

// number evaluates arithmetic. A value that is not finite is an error that names its row.
func (s *source) number(e Expr) (vector, error) {
	switch {
	case e.Kind == Number:
		return vector{c: e.Value}, nil
	case e.Kind == Column:
		return s.numeric(e)
	case e.Name == "scale" || e.Name == "center":
		return s.standard(e)
	}
	args := make([]vector, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = s.number(a); err != nil {
			return vector{}, err
		}
	}
	f, one := functions[e.Name]
	switch {
	case e.Name == "I":
		return args[0], nil
	case one:
		return s.each(e, args, func(a []float64) float64 { return f(a[0]) })
	case e.Name == "-" && len(args) == 1:
		return s.each(e, args, func(a []float64) float64 { return -a[0] })
	}
	return s.each(e, args, arithmetic[e.Name])
}

var arithmetic = map[string]func([]float64) float64{
	"+":   func(a []float64) float64 { return a[0] + a[1] },
	"-":   func(a []float64) float64 { return a[0] - a[1] },
	"*":   func(a []float64) float64 { return a[0] * a[1] },
	"/":   func(a []float64) float64 { return a[0] / a[1] },
	"^":   func(a []float64) float64 { return math.Pow(a[0], a[1]) },
	"pow": func(a []float64) float64 { return math.Pow(a[0], a[1]) },
}

// numeric is a column of numbers.
func (s *source) numeric(e Expr) (vector, error) {
	c, err := s.column(e)
	if err != nil {
		return vector{}, err
	}
	if c.Numbers == nil {
		return vector{}, s.wrong(e, "%q is a factor, and a number is needed here: its levels are %s", short(e.Name),
			list(c.Levels))
	}
	return vector{x: c.Numbers, kept: true}, nil
}

// each applies a function to each row.
func (s *source) each(e Expr, args []vector, f func([]float64) float64) (vector, error) {
	n, constant := s.t.Len(), true
	var out []float64
	for _, a := range args {
		if constant = constant && a.x == nil; a.x != nil && !a.kept && out == nil {
			out = a.x // a value of no other use
		}
	}
	if constant {
		n = 1
	}
	if out == nil {
		out = make([]float64, n)
	}
	values := make([]float64, len(args))
	for i := range n {
		for j, a := range args {
			values[j] = a.at(i)
		}
		y := f(values)
		if !finite(y) {
			return vector{}, cell(i, e.operand(args), number(values[0]), e.domain(y))
		}
		out[i] = y
	}
	if constant {
		return vector{c: out[0]}, nil
	}
	return vector{x: out}, nil
}

// operand is what a message of a wrong value names: the first argument of a function, or the whole of an operator.
func (e Expr) operand(args []vector) Expr {
	if len(args) == 1 && e.Name != "-" {
		return e.Args[0]
	}
	return e
}

// domain says what numbers a function needs.
func (e Expr) domain(y float64) string {
	out := fmt.Sprintf("%s of it is %v: ", e.Name, y)
	switch e.Name {
	case "log", "log2", "log10":
		return out + "it must be above 0"
	case "log1p":
		return out + "it must be above -1"
	case "sqrt":
		return out + "it must be at least 0"
	case "+", "-", "*", "/", "^", "pow":
		return fmt.Sprintf("it is %v: expected a finite number", y)
	}
	return out + "expected a finite number"
}

// standard is scale(x) = (x - mean)/sd or center(x) = x - mean, with the mean and the standard deviation (divisor n-1)
// of the training data.
func (s *source) standard(e Expr) (vector, error) {
	v, err := s.number(e.Args[0])
	if err != nil {
		return v, err
	}
	x := v.full(s.t.Len())
	if s.learning && s.m.Numbers[e.String()] == nil {
		mean, sd := moments(x)
		if e.Name == "center" {
			sd = 1
		} else if !(sd > 0) || !finite(sd) {
			return v, s.wrong(e, "%s cannot be scaled: its standard deviation is %v", e.Args[0], sd)
		}
		s.m.Numbers[e.String()] = []float64{mean, sd}
	}
	m := s.m.Numbers[e.String()]
	return s.each(e, []vector{{x: x, kept: v.kept}}, func(a []float64) float64 { return (a[0] - m[0]) / m[1] })
}

// moments are the mean and the standard deviation, of divisor n-1 (Chan, Golub and LeVeque 1983). One row, and equal
// rows, have none.
func moments(x []float64) (mean, sd float64) {
	largest, smallest := math.Inf(-1), math.Inf(1)
	for _, v := range x {
		largest, smallest = math.Max(largest, v), math.Min(smallest, v)
		mean += v / float64(len(x))
	}
	var squares, rest float64
	for _, v := range x {
		squares += (v - mean) * (v - mean)
		rest += v - mean
	}
	if largest == smallest {
		return largest, 0
	}
	n := float64(len(x))
	return mean + rest/n, math.Sqrt((squares - rest*rest/n) / (n - 1))
}
