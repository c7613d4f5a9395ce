package formula

import (
	"maps"
	"math"
	"slices"
)

// functions are those of one number.
var functions = map[string]func(float64) float64{
	"log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p, "exp": math.Exp, "expm1": math.Expm1,
	"sqrt": math.Sqrt, "abs": math.Abs, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "tanh": math.Tanh,
	"I": func(x float64) float64 { return x },
}

// instead says what to write for functions of other packages.
var instead = map[string]string{
	"te": "a smooth of two numbers is t2(x, z)", "ti": "a smooth of two numbers is t2(x, z)",
	"ns": "a natural spline with a penalty is s(x), and one without is bs(x, df = 5)",
	"gr": "write the factor alone: (1 | g)",
	"me": "measurement errors are no terms",
	"cs": "effects of each level are no terms", "as.factor": "write factor(x)", "ordered": "write C(x, Poly)",
	"standardize": "write scale(x)", "ln": "write log(x)",
}

// named are all functions that a formula may have.
func named() []string {
	return append(slices.Sorted(maps.Keys(functions)), "pow", "scale", "center", "poly", "bs", "s", "t2", "gp", "mo", "mi",
		"factor", "C", "offset", "mm", "trials", "weights", "se", "cens", "trunc")
}

// checkVariable checks a factor of a term.
func (x *expansion) checkVariable(e Expr) *Error {
	if e.Kind == Text || e.Kind == Flag {
		return x.wrong(e.at, "a term is a column or a function of columns, not %s", e)
	}
	if e.Kind != Call {
		return nil
	}
	switch e.Name {
	case "poly":
		_, err := x.polynomial(e)
		return err
	case "bs":
		_, err := x.spline(e)
		return err
	case "factor":
		if len(e.Args) != 1 || e.Args[0].Kind != Column || e.Args[0].Key != "" {
			return x.wrong(e.at, "factor() takes a column")
		}
		return nil
	case "C":
		_, err := x.coding(e)
		return err
	}
	return x.checkNumber(e)
}

// checkNumber checks arithmetic of columns.
func (x *expansion) checkNumber(e Expr) *Error {
	switch e.Kind {
	case Column, Number:
		return nil
	case Text, Flag:
		return x.wrong(e.at, "expected a number or a column, not %s", e)
	}
	n := len(e.Args)
	_, known := functions[e.Name]
	switch {
	case known || e.Name == "scale" || e.Name == "center":
		if n != 1 || e.Args[0].Key != "" {
			if e.Name == "log" {
				return x.wrong(e.at, "log() takes one argument, and is the natural logarithm: others are log2() and "+
					"log10()")
			}
			return x.wrong(e.at, "%s() takes one argument", e.Name)
		}
	case e.Name == "pow":
		if n != 2 || e.Args[0].Key != "" || e.Args[1].Key != "" {
			return x.wrong(e.at, "pow() takes a number and its power")
		}
	case slices.Contains([]string{"+", "-", "*", "/", "^"}, e.Name):
	case operators[e.Name] > 0:
		return x.wrong(e.at, "%s is no arithmetic: it makes terms, outside functions", e.Name)
	case e.Name == "poly" || e.Name == "bs" || e.Name == "factor" || e.Name == "C":
		return x.wrong(e.at, "%s() is a term, and no number for another function", e.Name)
	case slices.Contains(named(), e.Name):
		return x.wrong(e.at, "%s() does not stand here: it is added to the right or the left side, or groups", e.Name)
	case instead[e.Name] != "":
		return x.wrong(e.at, "there is no function %q: %s", e.Name, instead[e.Name])
	default:
		return x.wrong(e.at, "there is no function %q: %s; other functions go into a column of the table",
			short(e.Name), Nearest(e.Name, named()))
	}
	for _, a := range e.Args {
		if err := x.checkNumber(a); err != nil {
			return err
		}
	}
	return nil
}
