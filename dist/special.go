package dist

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What the families of one real number share. Densities of the gamma, beta and Student families are written with the
// remainder of Stirling's formula, so that nothing large cancels however large a shape parameter is.

// stirlingFrom is where the series of the remainder takes over; its first omitted term is below 1e-16 there.
const stirlingFrom = 10

// Coefficients of z⁻¹, z⁻³, … in the remainder (Abramowitz and Stegun 6.1.41).
var stirlingSeries = []float64{1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156}

// stirling is log Γ(z) − [(z − ½) log z − z + log √2π], for z > 0.
func stirling(z torch.Tensor) torch.Tensor { return split(z, stirlingFrom, stirlingNear, stirlingFar) }

func stirlingNear(z torch.Tensor) torch.Tensor {
	return z.Lgamma().Sub(z.Sub(0.5).Mul(z.Log())).Add(z).Sub(halfLog2Pi)
}

func stirlingFar(z torch.Tensor) torch.Tensor {
	i := z.Reciprocal()
	ii := i.Square()
	sum := torch.Of(0)
	for k := len(stirlingSeries) - 1; k >= 0; k-- {
		sum = sum.Mul(ii).Add(stirlingSeries[k])
	}
	return sum.Mul(i)
}

// logBeta is log B(a, b) for positive a and b. With p the smaller and q the larger of the two,
//
//	log B = δ(p) + δ(q) − δ(p+q) + log √2π + (p − ½) log(p/(p+q)) − q log(1 + p/q) − ½ log q
//
// where δ is the remainder of Stirling's formula.
func logBeta(a, b torch.Tensor) torch.Tensor {
	p, q := inOrder(a, b)
	s := p.Add(q)
	return stirling(p).Add(stirling(q)).Sub(stirling(s)).Add(halfLog2Pi).
		Add(p.Sub(0.5).Mul(p.Div(s).Log())).Sub(q.Mul(p.Div(q).Log1p())).Sub(q.Log().Mul(0.5))
}

// inOrder are the smaller and the larger of a and b. Each is one of them, also where they are equal, so that a
// function of both has its derivatives there: those of a minimum with a number are 0 or 1 at the number, as libtorch's
// version has it.
func inOrder(a, b torch.Tensor) (smaller, larger torch.Tensor) {
	if operand.IsNumber(a) && operand.IsNumber(b) {
		return a.AtMost(b), a.AtLeast(b)
	}
	first := a.Sub(b).Lt(0)
	return torch.Choose(first, a, b), torch.Choose(first, b, a)
}

// expm1Less is eᵘ − 1 − u. Its derivatives, eᵘ − 1 and so on, are not lost beside 1 where u is small: they are those of
// (u − u₀)/2 [expm1(u₁) + expm1(u₂)], with Gauss and Legendre's nodes from u₀ = u to u, right up to the fourth.
func expm1Less(u torch.Tensor) torch.Tensor {
	at := constant(u)
	y := at.Expm1().Sub(at)
	if !hasGraph(u) {
		return y
	}
	step := u.Sub(at)
	node := func(c float64) torch.Tensor { return at.Add(step.Mul(c)).Expm1() }
	far := math.Sqrt(1. / 12)
	return y.Add(node(0.5 - far).Add(node(0.5 + far)).Mul(step).Mul(0.5))
}

// digammaRest is log z − 1/(2z) − ψ(z) for z ≥ stirlingFrom (Abramowitz and Stegun 6.3.18).
func digammaRest(z torch.Tensor) torch.Tensor {
	i := z.Square().Reciprocal()
	sum := torch.Of(0)
	for _, c := range []float64{1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252, -1. / 120, 1. / 12} {
		sum = sum.Add(c).Mul(i)
	}
	return sum
}

// gammaKernel is log[t^(a−1) e^(−t) / Γ(a)], the log density of the gamma distribution with rate 1 at t ≥ 0.
func gammaKernel(a torch.Tensor, t torch.Tensor) torch.Tensor {
	return split(a, stirlingFrom, func(a torch.Tensor) torch.Tensor {
		return xlogy(a.Sub(1), t).Sub(t).Sub(a.Lgamma())
	}, func(a torch.Tensor) torch.Tensor { return gammaFar(a, t) })
}

// gammaAt is the log density of gamma numbers at x ≥ 0. For small a it has no logarithm of rate·x, in whose derivatives
// 1 would be added to a and taken away again.
func gammaAt(a, rate, x torch.Tensor) torch.Tensor {
	return split(a, stirlingFrom, func(a torch.Tensor) torch.Tensor {
		return xlogy(a.Sub(1), x).Sub(x.Mul(rate)).Add(a.Mul(rate.Log())).Sub(a.Lgamma())
	}, func(a torch.Tensor) torch.Tensor { return gammaFar(a, x.Mul(rate)).Add(rate.Log()) })
}

// split is near of z < from and far of the rest, each of a z that it can bear.
func split(z torch.Tensor, from float64, near, far func(z torch.Tensor) torch.Tensor) torch.Tensor {
	if operand.IsNumber(z) {
		if operand.Number(z) < from {
			return near(z)
		}
		return far(z)
	}
	small := z.Lt(from)
	return torch.Choose(small, near(fill(z, not(small), 1)), far(fill(z, small, from)))
}

// gammaFar is (a − 1) L − (t − a) − ½ log a − log √2π − δ(a), with L = log(t/a); at t = 0 it has no gradients.
func gammaFar(a torch.Tensor, t torch.Tensor) torch.Tensor {
	zero := t.Eq(0)
	t = fill(t, zero, stirlingFrom)
	over := t.Sub(a)
	l := logRatio(over.Div(a), func() torch.Tensor { return t.Log().Sub(a.Log()) })
	return fill(a.Sub(1).Mul(l).Sub(over).Sub(a.Log().Mul(0.5)).Sub(halfLog2Pi).Sub(stirling(a)), zero, math.Inf(-1))
}

// logRatio is log(1 + u): computed from u where that is small, else by the given formula, which does not lose 1 + u.
func logRatio(u torch.Tensor, far func() torch.Tensor) torch.Tensor {
	near := u.Abs().Lt(0.5)
	return torch.Choose(near, fill(u, not(near), 0).Log1p(), far())
}

// log1pSquare is log(1 + w²), which neither overflows nor loses small w.
func log1pSquare(w torch.Tensor) torch.Tensor {
	w = w.Abs()
	big := w.Gt(1)
	m := fill(w, not(big), 1)
	r := torch.Choose(big, m.Reciprocal(), w)
	return m.Log().Mul(2).Add(r.Square().Log1p())
}

// xlogy is c log x, and 0 where c is, even at x = 0; xlog1py is c log(1 + x). Where x is the end of the domain there
// are no gradients: those of libtorch's functions are 0/0 and 0 times infinity there.
func xlogy(c, x torch.Tensor) torch.Tensor { return timesLog(c, x, 0, torch.Tensor.Log) }

func xlog1py(c, x torch.Tensor) torch.Tensor { return timesLog(c, x, -1, torch.Tensor.Log1p) }

func timesLog(c, x torch.Tensor, end float64, log func(torch.Tensor) torch.Tensor) torch.Tensor {
	switch {
	case is(c, 0):
		return x.Mul(0)
	case operand.IsNumber(x):
		return c.Mul(log(x))
	}
	at := x.Eq(end)
	y := log(fill(x, at, end+1)).Mul(c)
	if operand.IsNumber(c) {
		return fill(y, at, math.Copysign(math.Inf(1), -operand.Number(c)))
	}
	// −∞, 0 or ∞ by the sign of c.
	limit := constant(c).Div(0).Neg()
	return torch.Choose(at, fill(limit, torch.Of(limit.T().MustIsnan(false)), 0), y)
}

// fill replaces elements.
func fill(v, mask torch.Tensor, c float64) torch.Tensor {
	return torch.Of(v.T().MustMaskedFill(mask.T(), ts.FloatScalar(c), false))
}

func not(mask torch.Tensor) torch.Tensor { return torch.Of(mask.T().MustLogicalNot(false)) }

func either(a, b torch.Tensor) torch.Tensor { return torch.Of(a.T().MustLogicalOr(b.T(), false)) }

// below and above compare with a number or a tensor.
func below(x, v torch.Tensor) torch.Tensor { return dense(x).Lt(v) }

func above(x, v torch.Tensor) torch.Tensor { return dense(x).Gt(v) }

// inside computes a log density from a value that is safe to compute with: outside the support it is replaced by a
// number or tensor inside, and the result by minus infinity. NaN goes through.
func (b base) inside(value, outside torch.Tensor, safe torch.Tensor, f func(x torch.Tensor) torch.Tensor) torch.Tensor {
	x := torch.Choose(outside, safe, floated(value))
	return b.full(fill(f(x), outside, math.Inf(-1)))
}

// positivePart computes f of a value ≥ 0, and c at negative values.
func (b base) positivePart(value torch.Tensor, c float64, f func(x torch.Tensor) torch.Tensor) torch.Tensor {
	negative := dense(value).Lt(0)
	x := fill(floated(value), negative, 1)
	return b.full(fill(f(x), negative, c))
}

// uniform draws uniform numbers in the shape of a draw.
func (b base) uniform(src *Source, sample []int, params ...torch.Tensor) torch.Tensor {
	dtype, device := like(params...)
	return torch.Must(src.Uniform(join(sample, b.batch), dtype, device))
}

// normal draws standard normal numbers in the shape of a draw.
func (b base) normal(src *Source, sample []int, params ...torch.Tensor) torch.Tensor {
	dtype, device := like(params...)
	return torch.Must(src.Normal(join(sample, b.batch), dtype, device))
}

// logGamma draws logarithms of gamma numbers with rate 1.
func (b base) logGamma(src *Source, sample []int, shape torch.Tensor, params ...torch.Tensor) torch.Tensor {
	return torch.Must(src.LogGamma(filled(shape, join(sample, b.batch), params...)))
}

// moment is a moment as a tensor of the batch shape; where the parameter is at most the bound it is c instead.
func (b base) moment(m, parameter torch.Tensor, bound, c float64) torch.Tensor {
	if operand.IsNumber(parameter) {
		if operand.Number(parameter) <= bound {
			return torch.Of(c)
		}
		return m
	}
	return fill(b.spread(m), parameter.Le(bound), c)
}

// constantLike is a number in the batch shape, in the parameters' type.
func (b base) constantLike(c float64, params ...torch.Tensor) torch.Tensor {
	return filled(torch.Of(c), join(b.batch, b.event), params...)
}

// validateAbove reads two parameters, and returns an error that names the first element at which high is not above low.
func (b base) validateAbove(name string, low, high torch.Tensor) error {
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
func (b base) checkAbove(name string, low, high torch.Tensor) {
	if operand.IsNumber(low) && operand.IsNumber(high) && !(operand.Number(low) < operand.Number(high)) {
		panic(&Error{b.family, name, fmt.Sprint(operand.Number(high)),
			fmt.Sprintf("it must be greater than low, which is %v", operand.Number(low))})
	}
}

// notNaN is for parameters that may be infinite.
var notNaN = check{"it must not be NaN", func(v float64) bool { return !math.IsNaN(v) }}

// ndtr is Φ, from the complementary error function: libtorch's own is 0 below −8.
func ndtr(v torch.Tensor) torch.Tensor { return v.Mul(-math.Sqrt2 / 2).Erfc().Mul(0.5) }

// logNdtr is log Φ: below −1 log(erfcx(t)/2) − t² with t = −x/√2 and the scaled error function erfcx(t) = exp(t²)
// erfc(t). (libtorch's own has no rule for vmap.)
func logNdtr(x torch.Tensor) torch.Tensor {
	tail := x.Lt(-1)
	t := fill(x, not(tail), -1).Mul(-math.Sqrt2 / 2)
	far := torch.Of(t.T().MustSpecialErfcx(false)).Mul(0.5).Log().Sub(t.Square())
	near := fill(x, tail, 0).Mul(math.Sqrt2 / 2).Erfc().Mul(-0.5).Log1p()
	return torch.Choose(tail, far, near)
}
