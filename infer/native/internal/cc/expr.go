package cc

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// truth is the C of an operation that is true or false, or "".
func truth(op ir.Op, condition func(int) string, in *ir.Instr, a, b string) string {
	switch op {
	case ir.Lt:
		return a + " < " + b
	case ir.Le:
		return a + " <= " + b
	case ir.Eq:
		return a + " == " + b
	case ir.Ne:
		return a + " != " + b
	case ir.IsNaN:
		return a + " != " + a
	case ir.IsInf:
		return "__builtin_fabs(" + a + ") == KELVIN_INF"
	case ir.Not:
		return "!" + condition(in.A)
	case ir.And:
		return condition(in.A) + " & " + condition(in.B)
	case ir.Or:
		return condition(in.A) + " | " + condition(in.B)
	}
	return ""
}

// infix are the operators of C.
var infix = map[ir.Op]string{ir.Add: "+", ir.Sub: "-", ir.Mul: "*", ir.Div: "/"}

// functions are those of the C library, which may have vector forms, and ours.
var functions = map[ir.Op]string{
	ir.Abs: "__builtin_fabs", ir.Sqrt: "__builtin_sqrt",
	ir.Exp: "exp", ir.Expm1: "expm1", ir.Log: "log", ir.Log1p: "log1p",
	ir.Sin: "sin", ir.Cos: "cos", ir.Tan: "tan", ir.Asin: "asin", ir.Acos: "acos", ir.Atan: "atan",
	ir.Sinh: "sinh", ir.Cosh: "cosh", ir.Tanh: "kelvin_tanh", ir.Erf: "erf", ir.Erfc: "erfc",
	ir.Pow: "pow", ir.Atan2: "atan2",
	ir.Floor: "__builtin_floor", ir.Ceil: "__builtin_ceil", ir.Trunc: "__builtin_trunc", ir.Round: "__builtin_rint",
	ir.Lgamma: "kelvin_lgamma", ir.Digamma: "kelvin_digamma", ir.Trigamma: "kelvin_trigamma", ir.Erfcx: "kelvin_erfcx",
	ir.Erfinv: "kelvin_erfinv", ir.I0e: "kelvin_i0e", ir.I1e: "kelvin_i1e", ir.Sign: "kelvin_sign",
	ir.Hypot: "kelvin_hypot", ir.Rem: "kelvin_rem", ir.Min: "kelvin_min", ir.Max: "kelvin_max",
}

// expression is the C of a pointwise operation with a value.
func expression(op ir.Op, a, b string) string {
	switch {
	case op == ir.Neg:
		return "-" + a
	case infix[op] != "":
		return a + " " + infix[op] + " " + b
	case op >= ir.Add:
		return fmt.Sprintf("%s(%s, %s)", functions[op], a, b)
	}
	return fmt.Sprintf("%s(%s)", functions[op], a)
}
