package lower

import (
	"maps"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// rules are the operations that are lowered whole, by name without "aten::". The rule of a name is also that of the
// name with an underscore behind it, which writes its result into its first argument.
var rules map[string]rule

func init() {
	rules = map[string]rule{}
	for name, op := range map[string]ir.Op{
		"neg": ir.Neg, "negative": ir.Neg, "abs": ir.Abs, "absolute": ir.Abs, "sqrt": ir.Sqrt, "exp": ir.Exp,
		"expm1": ir.Expm1, "special_expm1": ir.Expm1, "log": ir.Log, "log1p": ir.Log1p, "sin": ir.Sin, "cos": ir.Cos,
		"tan": ir.Tan, "asin": ir.Asin, "acos": ir.Acos, "atan": ir.Atan, "sinh": ir.Sinh, "cosh": ir.Cosh,
		"tanh": ir.Tanh, "lgamma": ir.Lgamma, "digamma": ir.Digamma, "erf": ir.Erf, "erfc": ir.Erfc,
		"special_erfcx": ir.Erfcx, "erfinv": ir.Erfinv, "special_i0e": ir.I0e, "special_i1e": ir.I1e, "floor": ir.Floor,
		"ceil": ir.Ceil, "trunc": ir.Trunc, "fix": ir.Trunc, "round": ir.Round, "sign": ir.Sign, "sgn": ir.Sign,
		"isnan": ir.IsNaN, "isinf": ir.IsInf, "logical_not": ir.Not,
	} {
		rules[name] = oneOperand(op)
	}
	for name, op := range map[string]ir.Op{
		"mul": ir.Mul, "multiply": ir.Mul, "pow": ir.Pow, "hypot": ir.Hypot, "atan2": ir.Atan2, "arctan2": ir.Atan2,
		"remainder": ir.Rem, "minimum": ir.Min, "maximum": ir.Max, "lt": ir.Lt, "le": ir.Le, "eq": ir.Eq, "ne": ir.Ne,
		"less": ir.Lt, "less_equal": ir.Le, "not_equal": ir.Ne, "logical_and": ir.And, "logical_or": ir.Or,
		"logical_xor": ir.Ne,
	} {
		rules[name] = twoOperands(op)
	}
	for _, more := range []map[string]formula{formulas, networkFormulas} {
		for name, f := range more {
			rules[name] = f.rule()
		}
	}
	for _, more := range []map[string]rule{pointRules, shapeRules, sumRules, matrixRules, indexRules, networkRules} {
		maps.Copy(rules, more)
	}
}

func oneOperand(op ir.Op) rule {
	return func(l *lowering, c *Call) { l.out(c, 0, l.of(op, l.in(c, 0))) }
}

func twoOperands(op ir.Op) rule {
	return func(l *lowering, c *Call) { l.out(c, 0, l.of(op, l.in(c, 0), l.in(c, 1))) }
}

// calc writes formulas of arrays.
type calc struct{ g *graph }

func (k calc) num(x float64) array           { return k.g.scalar(x) }
func (k calc) add(a, b array) array          { return k.g.apply(ir.Add, a, b) }
func (k calc) sub(a, b array) array          { return k.g.apply(ir.Sub, a, b) }
func (k calc) mul(a, b array) array          { return k.g.apply(ir.Mul, a, b) }
func (k calc) div(a, b array) array          { return k.g.apply(ir.Div, a, b) }
func (k calc) neg(a array) array             { return k.g.apply(ir.Neg, a) }
func (k calc) exp(a array) array             { return k.g.apply(ir.Exp, a) }
func (k calc) log(a array) array             { return k.g.apply(ir.Log, a) }
func (k calc) less(a, b array) array         { return k.g.apply(ir.Lt, a, b) }
func (k calc) choose(c, a, b array) array    { return k.g.apply(ir.Select, c, a, b) }
func (k calc) of(op ir.Op, a ...array) array { return k.g.apply(op, a...) }
func (k calc) scale(a array, x float64) array {
	return k.g.apply(ir.Mul, a, k.g.scalar(x))
}

// sigmoid is 1/(1+exp(-x)).
func (k calc) sigmoid(x array) array { return k.div(k.num(1), k.add(k.exp(k.neg(x)), k.num(1))) }

// formula is a pointwise operation of its first arguments.
type formula struct {
	args int
	of   func(k calc, c *Call, a []array) array
}

func (f formula) rule() rule {
	return func(l *lowering, c *Call) {
		args := make([]array, f.args)
		for i := range args {
			args[i] = l.in(c, i)
		}
		l.out(c, 0, f.of(calc{l.g}, c, args))
	}
}
