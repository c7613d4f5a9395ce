package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// What the families of one real number share. Densities of the gamma, beta and Student families are written with the
// remainder of Stirling's formula, so that nothing large cancels however large a shape parameter is.

// stirlingFrom is where the series of the remainder takes over; its first omitted term is below 1e-16 there.
const stirlingFrom = 10

// Coefficients of z⁻¹, z⁻³, … in the remainder (Abramowitz and Stegun 6.1.41).
var stirlingSeries = []float64{1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156}

// stirling is log Γ(z) − [(z − ½) log z − z + log √2π], for z > 0.
func stirling(z val) val {
	if z.isNum() {
		if z.c < stirlingFrom {
			return stirlingNear(z)
		}
		return stirlingFar(z)
	}
	small := z.t.MustLt(ts.FloatScalar(stirlingFrom), false)
	return choose(small, stirlingNear(z.fill(not(small), 1)), stirlingFar(z.fill(small, stirlingFrom)))
}

func stirlingNear(z val) val {
	return z.lgamma().sub(z.sub(num(0.5)).mul(z.log())).add(z).sub(num(halfLog2Pi))
}

func stirlingFar(z val) val {
	i := z.recip()
	ii := i.square()
	sum := num(0)
	for k := len(stirlingSeries) - 1; k >= 0; k-- {
		sum = sum.mul(ii).add(num(stirlingSeries[k]))
	}
	return sum.mul(i)
}

// logBeta is log B(a, b) for positive a and b. With p the smaller and q the larger of the two,
//
//	log B = δ(p) + δ(q) − δ(p+q) + log √2π + (p − ½) log(p/(p+q)) − q log(1 + p/q) − ½ log q
//
// where δ is the remainder of Stirling's formula.
func logBeta(a, b val) val {
	p, q := a.min(b), a.max(b)
	s := p.add(q)
	return stirling(p).add(stirling(q)).sub(stirling(s)).add(num(halfLog2Pi)).
		add(p.sub(num(0.5)).mul(p.div(s).log())).sub(q.mul(p.div(q).log1p())).sub(q.log().mul(num(0.5)))
}

// gammaKernel is log[t^(a−1) e^(−t) / Γ(a)], the log density of the gamma distribution with rate 1 at t ≥ 0.
func gammaKernel(a val, t *ts.Tensor) val {
	if a.isNum() {
		if a.c < stirlingFrom {
			return gammaNear(a, t)
		}
		return gammaFar(a, t)
	}
	small := a.t.MustLt(ts.FloatScalar(stirlingFrom), false)
	return choose(small, gammaNear(a.fill(not(small), 1), t), gammaFar(a.fill(small, stirlingFrom), t))
}

func gammaNear(a val, t *ts.Tensor) val {
	return xlogy(a.sub(num(1)), ten(t)).sub(ten(t)).sub(a.lgamma())
}

// gammaFar is (a − 1) L − (t − a) − ½ log a − log √2π − δ(a), with L = log(t/a); at t = 0 it has no gradients.
func gammaFar(a val, t *ts.Tensor) val {
	zero := t.MustEq(ts.FloatScalar(0), false)
	t = ten(t).fill(zero, stirlingFrom).t
	over := ten(t).sub(a)
	l := logRatio(over.div(a), func() val { return ten(t).log().sub(a.log()) })
	return a.sub(num(1)).mul(l).sub(over).sub(a.log().mul(num(0.5))).sub(num(halfLog2Pi)).sub(stirling(a)).fill(zero, math.Inf(-1))
}

// logRatio is log(1 + u): computed from u where that is small, else by the given formula, which does not lose 1 + u.
func logRatio(u val, far func() val) val {
	near := u.t.MustAbs(false).MustLt(ts.FloatScalar(0.5), false)
	return choose(near, u.fill(not(near), 0).log1p(), far())
}

// log1pSquare is log(1 + w²), which neither overflows nor loses small w.
func log1pSquare(w *ts.Tensor) val {
	w = w.MustAbs(false)
	big := w.MustGt(ts.FloatScalar(1), false)
	m := ten(w).fill(not(big), 1)
	r := choose(big, m.recip(), ten(w))
	return m.log().mul(num(2)).add(r.square().log1p())
}

// xlogy is c log x, and 0 where c is, even at x = 0; xlog1py is c log(1 + x). Where x is the end of the domain there are
// no gradients: those of libtorch's functions are 0/0 and 0 times infinity there.
func xlogy(c, x val) val { return timesLog(c, x, 0, val.log) }

func xlog1py(c, x val) val { return timesLog(c, x, -1, val.log1p) }

func timesLog(c, x val, end float64, log func(val) val) val {
	switch {
	case c.is(0):
		return x.mul(num(0))
	case x.isNum():
		return c.mul(log(x))
	}
	at := x.t.MustEq(ts.FloatScalar(end), false)
	y := log(x.fill(at, end+1)).mul(c)
	if c.isNum() {
		return y.fill(at, math.Copysign(math.Inf(1), -c.c))
	}
	// −∞, 0 or ∞ by the sign of c.
	limit := constant(c).div(num(0)).neg()
	return choose(at, limit.fill(limit.t.MustIsnan(false), 0), y)
}

// fill replaces elements.
func (v val) fill(mask *ts.Tensor, c float64) val {
	return ten(v.t.MustMaskedFill(mask, ts.FloatScalar(c), false))
}

func not(mask *ts.Tensor) *ts.Tensor { return mask.MustLogicalNot(false) }

func (v val) min(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(math.Min(v.c, w.c))
	case v.isNum():
		return ten(w.t.MustClampMax(ts.FloatScalar(v.c), false))
	case w.isNum():
		return ten(v.t.MustClampMax(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustMinimum(w.t, false))
}

func (v val) max(w val) val {
	switch {
	case v.isNum() && w.isNum():
		return num(math.Max(v.c, w.c))
	case v.isNum():
		return ten(w.t.MustClampMin(ts.FloatScalar(v.c), false))
	case w.isNum():
		return ten(v.t.MustClampMin(ts.FloatScalar(w.c), false))
	}
	return ten(v.t.MustMaximum(w.t, false))
}

// below and above compare with a number or a tensor.
func below(x *ts.Tensor, v val) *ts.Tensor {
	if v.isNum() {
		return x.MustLt(ts.FloatScalar(v.c), false)
	}
	return x.MustLtTensor(v.t, false)
}

func above(x *ts.Tensor, v val) *ts.Tensor {
	if v.isNum() {
		return x.MustGt(ts.FloatScalar(v.c), false)
	}
	return x.MustGtTensor(v.t, false)
}

// inside computes a log density from a value that is safe to compute with: outside the support it is replaced by a number
// or tensor inside, and the result by minus infinity. NaN goes through.
func (b base) inside(value, outside *ts.Tensor, safe val, f func(x *ts.Tensor) val) *ts.Tensor {
	x := choose(outside, safe, floated(value))
	return b.full(f(x.t).fill(outside, math.Inf(-1)).t)
}

// positivePart computes f of a value ≥ 0, and c at negative values.
func (b base) positivePart(value *ts.Tensor, c float64, f func(x *ts.Tensor) val) *ts.Tensor {
	negative := value.MustLt(ts.FloatScalar(0), false)
	x := floated(value).fill(negative, 1)
	return b.full(f(x.t).fill(negative, c).t)
}

// uniform draws uniform numbers in the shape of a draw.
func (b base) uniform(src *Source, sample []int64, params ...val) *ts.Tensor {
	dtype, device := like(params...)
	return torch.Must(src.Uniform(join(sample, b.batch), dtype, device))
}

// normal draws standard normal numbers in the shape of a draw.
func (b base) normal(src *Source, sample []int64, params ...val) *ts.Tensor {
	dtype, device := like(params...)
	return torch.Must(src.Normal(join(sample, b.batch), dtype, device))
}

// logGamma draws logarithms of gamma numbers with rate 1.
func (b base) logGamma(src *Source, sample []int64, shape val, params ...val) val {
	return ten(torch.Must(src.LogGamma(filled(shape, join(sample, b.batch), params...))))
}

// moment is a moment as a tensor of the batch shape; where the parameter is at most the bound it is c instead.
func (b base) moment(m, parameter val, bound, c float64) val {
	if parameter.isNum() {
		if parameter.c <= bound {
			return num(c)
		}
		return m
	}
	return ten(b.spread(m)).fill(parameter.t.MustLe(ts.FloatScalar(bound), false), c)
}

// constantLike is a number in the batch shape, in the parameters' type.
func (b base) constantLike(c float64, params ...val) *ts.Tensor {
	return filled(num(c), join(b.batch, b.event), params...)
}

// validateAbove reads two parameters, and returns an error that names the first element at which high is not above low.
func (b base) validateAbove(name string, low, high val) error {
	l, h := b.spread(low), b.spread(high)
	ls, err := torch.ToSlice[float64](l)
	if err != nil {
		return err
	}
	hs, err := torch.ToSlice[float64](h)
	if err != nil {
		return err
	}
	for i := range ls {
		if !(ls[i] < hs[i]) {
			return &Error{b.family, name, fmt.Sprint(hs[i]), fmt.Sprintf("it must be greater than low, which is %v", ls[i])}
		}
	}
	return nil
}

// checkAbove panics where both are numbers and high is not above low.
func (b base) checkAbove(name string, low, high val) {
	if low.isNum() && high.isNum() && !(low.c < high.c) {
		panic(&Error{b.family, name, fmt.Sprint(high.c), fmt.Sprintf("it must be greater than low, which is %v", low.c)})
	}
}

// notNaN is for parameters that may be infinite.
var notNaN = check{"it must not be NaN", func(v float64) bool { return !math.IsNaN(v) }}

func (v val) expm1() val {
	return v.apply(math.Expm1, func(t *ts.Tensor) *ts.Tensor { return t.MustExpm1(false) })
}

// ndtr is Φ, from the complementary error function: libtorch's own is 0 below −8.
func (v val) ndtr() val {
	return v.apply(func(c float64) float64 { return 0.5 * math.Erfc(-c/math.Sqrt2) }, func(t *ts.Tensor) *ts.Tensor {
		return ten(t).mul(num(-math.Sqrt2 / 2)).erfc().mul(num(0.5)).t
	})
}

func (v val) erfc() val {
	return v.apply(math.Erfc, func(t *ts.Tensor) *ts.Tensor { return t.MustErfc(false) })
}

// logNdtr is log Φ: below −1 log(erfcx(t)/2) − t² with t = −x/√2 and the scaled error function erfcx(t) = exp(t²) erfc(t).
// (libtorch's own has no rule for vmap.)
func (v val) logNdtr() val {
	x := ten(v.tensor())
	tail := x.t.MustLt(ts.FloatScalar(-1), false)
	t := x.fill(not(tail), -1).mul(num(-math.Sqrt2 / 2))
	far := ten(t.t.MustSpecialErfcx(false)).mul(num(0.5)).log().sub(t.square())
	near := ten(x.fill(tail, 0).mul(num(math.Sqrt2 / 2)).t.MustErfc(false)).mul(num(-0.5)).log1p()
	return choose(tail, far, near)
}

// incompleteGamma is the regularised incomplete gamma function P(a, t), incompleteGammaC is Q = 1 − P.
func incompleteGamma(a val, t *ts.Tensor) val {
	dtype, device := like(ten(t))
	return ten(a.tensorOf(dtype, device).MustSpecialGammainc(t, false))
}

func incompleteGammaC(a val, t *ts.Tensor) val {
	dtype, device := like(ten(t))
	return ten(a.tensorOf(dtype, device).MustSpecialGammaincc(t, false))
}

// choose is a where the condition holds, else b, at least one of them a tensor.
func choose(cond *ts.Tensor, a, b val) val { return ten(where(cond, a, b)) }
