package formula

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// number evaluates arithmetic, for each row. What it gives may be a column of the table, and must not change. A value
// that is not finite is an error that names its row.
func (s *source) number(e Expr) ([]float64, error) {
	switch {
	case e.Kind == Number:
		return slices.Repeat([]float64{e.Value}, s.t.Len()), nil
	case e.Kind == Column:
		return s.numeric(e)
	}
	args := make([][]float64, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = s.number(a); err != nil {
			return nil, err
		}
	}
	f := functions[e.Name]
	switch {
	case e.Name == "I":
		return args[0], nil
	case e.Name == "scale" || e.Name == "center":
		mean, sd, err := s.standard(e, args[0])
		if err != nil {
			return nil, err
		}
		f = func(x float64) float64 { return (x - mean) / sd }
	case e.Name == "-" && len(args) == 1:
		f = func(x float64) float64 { return -x }
	}
	out := make([]float64, s.t.Len())
	for i := range out {
		if f != nil {
			out[i] = f(args[0][i])
		} else {
			out[i] = arithmetic[e.Name](args[0][i], args[1][i])
		}
		if !sample.Finite(out[i]) {
			of := e
			if len(args) == 1 && e.Name != "-" {
				of = e.Args[0]
			}
			return nil, cell(i, of, number(args[0][i]), e.domain(out[i]))
		}
	}
	return out, nil
}

var arithmetic = map[string]func(a, b float64) float64{
	"+": func(a, b float64) float64 { return a + b },
	"-": func(a, b float64) float64 { return a - b },
	"*": func(a, b float64) float64 { return a * b },
	"/": func(a, b float64) float64 { return a / b },
	"^": math.Pow, "pow": math.Pow,
}

// numeric is a column of numbers.
func (s *source) numeric(e Expr) ([]float64, error) {
	c, err := s.column(e)
	if err == nil && c.Numbers == nil {
		err = s.wrong(e, "%q is a factor, and a number is needed here: its levels are %s", short(e.Name), list(c.Levels))
	}
	return c.Numbers, err
}

// incomplete is a column of numbers, with NaN where a value is missing.
func (s *source) incomplete(e Expr) ([]float64, error) {
	if !s.has(e) {
		return s.numeric(e)
	}
	c, err := s.t.Column(e.Name)
	if err == nil && c.Numbers == nil {
		err = s.wrong(e, "%q is a factor, and mi() is of numbers", short(e.Name))
	}
	return c.Numbers, err
}

// standard has what scale(x) = (x - mean)/sd and center(x) = x - mean take away and divide by: the mean and the
// standard deviation (divisor n-1) of the training data.
func (s *source) standard(e Expr, x []float64) (mean, sd float64, err error) {
	key := e.String()
	if s.learning && s.m.numbers[key] == nil {
		mean, sd = sample.Moments(x)
		if e.Name == "center" {
			sd = 1
		} else if !(sd > 0) || !sample.Finite(sd) {
			return 0, 0, s.wrong(e, "%s cannot be scaled: its standard deviation is %v", e.Args[0], sd)
		}
		s.m.numbers[key] = []float64{mean, sd}
	}
	m := s.m.numbers[key]
	return m[0], m[1], nil
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
