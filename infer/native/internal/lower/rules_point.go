package lower

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// formulas are pointwise operations that are composed of those of a plan.
var formulas = map[string]formula{
	"add":        {2, func(k calc, c *Call, a []array) array { return k.add(a[0], k.scale(a[1], c.number(2, 1))) }},
	"sub":        {2, func(k calc, c *Call, a []array) array { return k.sub(a[0], k.scale(a[1], c.number(2, 1))) }},
	"subtract":   {2, func(k calc, c *Call, a []array) array { return k.sub(a[0], k.scale(a[1], c.number(2, 1))) }},
	"rsub":       {2, func(k calc, c *Call, a []array) array { return k.sub(a[1], k.scale(a[0], c.number(2, 1))) }},
	"reciprocal": {1, func(k calc, _ *Call, a []array) array { return k.div(k.num(1), a[0]) }},
	"rsqrt":      {1, func(k calc, _ *Call, a []array) array { return k.div(k.num(1), k.of(ir.Sqrt, a[0])) }},
	"square":     {1, func(k calc, _ *Call, a []array) array { return k.mul(a[0], a[0]) }},
	"gt":         {2, func(k calc, _ *Call, a []array) array { return k.less(a[1], a[0]) }},
	"ge":         {2, func(k calc, _ *Call, a []array) array { return k.of(ir.Le, a[1], a[0]) }},
	"log2":       {1, func(k calc, _ *Call, a []array) array { return k.scale(k.log(a[0]), 1/math.Ln2) }},
	"log10":      {1, func(k calc, _ *Call, a []array) array { return k.scale(k.log(a[0]), 1/math.Ln10) }},
	"exp2":       {1, func(k calc, _ *Call, a []array) array { return k.of(ir.Pow, k.num(2), a[0]) }},
	"frac":       {1, func(k calc, _ *Call, a []array) array { return k.sub(a[0], k.of(ir.Trunc, a[0])) }},
	"sigmoid":    {1, func(k calc, _ *Call, a []array) array { return k.sigmoid(a[0]) }},
	"isfinite": {1, func(k calc, _ *Call, a []array) array {
		return k.of(ir.Lt, k.of(ir.Abs, a[0]), k.num(math.Inf(1)))
	}},
	"sigmoid_backward": {2, func(k calc, _ *Call, a []array) array {
		return k.mul(a[0], k.mul(k.sub(k.num(1), a[1]), a[1]))
	}},
	"tanh_backward": {2, func(k calc, _ *Call, a []array) array {
		return k.mul(a[0], k.sub(k.num(1), k.mul(a[1], a[1])))
	}},
	"logit": {1, func(k calc, c *Call, a []array) array {
		x := a[0]
		if c.has(1) {
			eps := c.number(1, 0)
			x = k.of(ir.Max, k.of(ir.Min, x, k.num(1-eps)), k.num(eps))
		}
		return k.log(k.div(x, k.sub(k.num(1), x)))
	}},
	"where":       {3, func(k calc, _ *Call, a []array) array { return k.choose(a[0], a[1], a[2]) }},
	"masked_fill": {3, func(k calc, _ *Call, a []array) array { return k.choose(a[1], a[2], a[0]) }},
	"clamp_min":   {2, func(k calc, _ *Call, a []array) array { return k.of(ir.Max, a[0], a[1]) }},
	"clamp_max":   {2, func(k calc, _ *Call, a []array) array { return k.of(ir.Min, a[0], a[1]) }},
	"addcmul": {3, func(k calc, c *Call, a []array) array {
		return k.add(a[0], k.scale(k.mul(a[1], a[2]), c.number(3, 1)))
	}},
	"addcdiv": {3, func(k calc, c *Call, a []array) array {
		return k.add(a[0], k.scale(k.div(a[1], a[2]), c.number(3, 1)))
	}},
	"lerp": {3, func(k calc, _ *Call, a []array) array { return k.add(a[0], k.mul(a[2], k.sub(a[1], a[0]))) }},
	// x log y, 0 where x is 0, unless y is NaN.
	"xlogy": {2, xlog(ir.Log)}, "special_xlogy": {2, xlog(ir.Log)}, "special_xlog1py": {2, xlog(ir.Log1p)},
	"special_entr": {1, func(k calc, _ *Call, a []array) array {
		x := a[0]
		inside := k.choose(k.of(ir.Eq, x, k.num(0)), k.num(0), k.num(math.Inf(-1)))
		return k.choose(k.less(k.num(0), x), k.neg(k.mul(x, k.log(x))), k.choose(k.of(ir.IsNaN, x), x, inside))
	}},
	"special_ndtr": {1, func(k calc, _ *Call, a []array) array {
		return k.scale(k.of(ir.Erfc, k.scale(a[0], -math.Sqrt2/2)), 0.5)
	}},
	"special_ndtri": {1, func(k calc, _ *Call, a []array) array {
		return k.scale(k.of(ir.Erfinv, k.sub(k.scale(a[0], 2), k.num(1))), math.Sqrt2)
	}},
	// Below -1 by the scaled function, which does not run out: log Φ(x) = log(erfcx(-x/√2)/2) - x²/2.
	"special_log_ndtr": {1, func(k calc, _ *Call, a []array) array {
		t := k.scale(a[0], math.Sqrt2/2)
		low := k.sub(k.log(k.scale(k.of(ir.Erfcx, k.neg(t)), 0.5)), k.mul(t, t))
		high := k.of(ir.Log1p, k.scale(k.of(ir.Erfc, t), -0.5))
		return k.choose(k.less(a[0], k.num(-1)), low, high)
	}},
	"i0": {1, unscaled(ir.I0e)}, "special_i0": {1, unscaled(ir.I0e)}, "special_i1": {1, unscaled(ir.I1e)},
	"logaddexp": {2, func(k calc, _ *Call, a []array) array {
		m := k.of(ir.Max, a[0], a[1])
		sum := k.add(m, k.of(ir.Log1p, k.exp(k.neg(k.of(ir.Abs, k.sub(a[0], a[1]))))))
		both := k.of(ir.And, k.of(ir.IsInf, a[0]), k.of(ir.Eq, a[0], a[1]))
		return k.choose(both, a[0], sum)
	}},
	"deg2rad": {1, func(k calc, _ *Call, a []array) array { return k.scale(a[0], math.Pi/180) }},
	"heaviside": {2, func(k calc, _ *Call, a []array) array {
		return k.choose(k.of(ir.Eq, a[0], k.num(0)), a[1], k.less(k.num(0), a[0]))
	}},
	"bitwise_not": {1, bits(ir.Not)},
	"bitwise_and": {2, bits(ir.And)}, "__and__": {2, bits(ir.And)},
	"bitwise_or": {2, bits(ir.Or)}, "__or__": {2, bits(ir.Or)},
	"bitwise_xor": {2, bits(ir.Ne)},
	"asinh": {1, func(k calc, _ *Call, a []array) array {
		// log1p(|x| + x²/(1+√(1+x²))), which neither cancels at 0 nor overflows.
		x := k.of(ir.Abs, a[0])
		t := k.add(x, k.mul(x, k.div(x, k.add(k.of(ir.Hypot, x, k.num(1)), k.num(1)))))
		y := k.of(ir.Log1p, t)
		return k.choose(k.less(a[0], k.num(0)), k.neg(y), y)
	}},
	"acosh": {1, func(k calc, _ *Call, a []array) array {
		t := k.sub(a[0], k.num(1))
		return k.of(ir.Log1p, k.add(t, k.of(ir.Sqrt, k.mul(t, k.add(t, k.num(2))))))
	}},
	"atanh": {1, func(k calc, _ *Call, a []array) array {
		return k.scale(k.sub(k.of(ir.Log1p, a[0]), k.of(ir.Log1p, k.neg(a[0]))), 0.5)
	}},
	"log_sigmoid_backward": {2, func(k calc, _ *Call, a []array) array {
		// With z = exp(-|x|): 1 - z/(1+z) for negative x, z/(1+z) else.
		z := k.exp(k.neg(k.of(ir.Abs, a[1])))
		tail := k.div(z, k.add(z, k.num(1)))
		return k.mul(a[0], k.choose(k.less(a[1], k.num(0)), k.sub(k.num(1), tail), tail))
	}},
}

// xlog is x times a logarithm.
func xlog(log ir.Op) func(k calc, c *Call, a []array) array {
	return func(k calc, _ *Call, a []array) array {
		zero := k.choose(k.of(ir.IsNaN, a[1]), a[1], k.num(0))
		return k.choose(k.of(ir.Eq, a[0], k.num(0)), zero, k.mul(a[0], k.of(log, a[1])))
	}
}

// unscaled is exp(|x|) times a scaled Bessel function.
func unscaled(op ir.Op) func(k calc, c *Call, a []array) array {
	return func(k calc, _ *Call, a []array) array { return k.mul(k.exp(k.of(ir.Abs, a[0])), k.of(op, a[0])) }
}

// bits are operations on truth values.
func bits(op ir.Op) func(k calc, c *Call, a []array) array {
	return func(k calc, c *Call, a []array) array {
		for _, t := range tensors(c.Args) {
			if t.Type != Boolean {
				refuse("bits of whole numbers are not understood")
			}
		}
		return k.of(op, a...)
	}
}

// pointRules are pointwise operations with arguments that are no operands.
var pointRules = map[string]rule{
	"div": divide, "divide": divide, "true_divide": divide,
	"floor_divide": func(l *lowering, c *Call) {
		l.out(c, 0, l.of(ir.Floor, l.of(ir.Div, l.in(c, 0), l.in(c, 1))))
	},
	"polygamma": func(l *lowering, c *Call) {
		n, x := c.Args[0], 1
		if n.Kind != Int { // the form with an underscore has the tensor in front
			n, x = c.Args[1], 0
		}
		switch n.Int {
		case 0:
			l.out(c, 0, l.of(ir.Digamma, l.in(c, x)))
		case 1:
			l.out(c, 0, l.of(ir.Trigamma, l.in(c, x)))
		default:
			refuse("derivatives of the digamma function beyond the first are not understood")
		}
	},
	"clamp": func(l *lowering, c *Call) {
		a := l.in(c, 0)
		if c.has(1) {
			a = l.of(ir.Max, a, l.in(c, 1))
		}
		if c.has(2) {
			a = l.of(ir.Min, a, l.in(c, 2))
		}
		l.out(c, 0, a)
	},
	"nan_to_num": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		high := l.of(ir.Eq, x, l.num(math.Inf(1)))
		low := l.of(ir.Eq, x, l.num(math.Inf(-1)))
		y := l.choose(high, l.num(c.number(2, math.MaxFloat64)), l.choose(low, l.num(c.number(3, -math.MaxFloat64)), x))
		l.out(c, 0, l.choose(l.of(ir.IsNaN, x), l.num(c.number(1, 0)), y))
	},
	"log_sigmoid_forward": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		z := l.exp(l.neg(l.of(ir.Abs, x)))
		l.out(c, 0, l.sub(l.of(ir.Min, x, l.num(0)), l.of(ir.Log1p, z)))
		if t := c.result(1); t != nil && len(t.Sizes) == len(x.sizes) && array.n(array{sizes: t.Sizes}) > 0 {
			l.out(c, 1, z)
		}
	},
	"softplus": func(l *lowering, c *Call) {
		x := l.in(c, 0)
		beta, threshold := c.number(1, 1), c.number(2, 20)
		y := l.scale(x, beta)
		soft := l.scale(l.of(ir.Log1p, l.exp(y)), 1/beta)
		l.out(c, 0, l.choose(l.less(l.num(threshold), y), x, soft))
	},
	"softplus_backward": func(l *lowering, c *Call) {
		grad, x := l.in(c, 0), l.in(c, 1)
		beta, threshold := c.number(2, 1), c.number(3, 20)
		y := l.scale(x, beta)
		z := l.exp(y)
		l.out(c, 0, l.choose(l.less(l.num(threshold), y), grad, l.div(l.mul(grad, z), l.add(z, l.num(1)))))
	},
}

// divide is the division of numbers, of whole ones too, unless a mode of rounding is named.
func divide(l *lowering, c *Call) {
	a := l.of(ir.Div, l.in(c, 0), l.in(c, 1))
	if c.has(2) {
		switch c.Args[2].Text {
		case "floor":
			a = l.of(ir.Floor, a)
		case "trunc":
			a = l.of(ir.Trunc, a)
		}
	}
	l.out(c, 0, a)
}
