package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Where a density changes little in an interval, its normalisation and the derivatives of that cancel in the truncated
// one. It is a ratio there, with r(t) = p(t)/p(c) and a c in the interval, by Gauss and Legendre's rule in log t:
//
//	p(x) = r(x)/∫ r(t) dt

// ratio is a family of positive numbers that tells log p(c·eˡ)/p(c) without what does not depend on l.
type ratio interface {
	logRatio(c, l torch.Tensor) torch.Tensor
}

func (d inverseGaussianDist) logRatio(c, l torch.Tensor) torch.Tensor {
	rate := c.Div(d.mean).Square().Mul(l.Expm1()).Add(l.Neg().Expm1())
	return rate.Mul(d.shape.Div(c)).Mul(-0.5).Sub(l.Mul(1.5))
}

func (d weibullDist) logRatio(c, l torch.Tensor) torch.Tensor {
	most := c.Div(d.scale).Log().Mul(d.concentration).Min(700) // whose exponential is finite
	return d.concentration.Sub(1).Mul(l).Sub(most.Exp().Mul(l.Mul(d.concentration).Expm1()))
}

// The rule of 24 points is good to rounding where the logarithm of the density of log t has ends this far apart, and
// this far from a line between them.
const mostRise, mostBend = 8, 0.5

// flat is the log density where that of the base changes little, and logp elsewhere.
func (d truncatedDist) flat(of ratio, value, outside, logp torch.Tensor) torch.Tensor {
	dtype, device := typeOf(d.of)
	low, high := d.ends()
	low, high = tensorOf(low, dtype, device), tensorOf(high, dtype, device)
	open := either(not(low.Gt(0)), isInfinite(high))
	low, high = fill(d.spread(low), open, 1), fill(d.spread(high), open, math.E)
	log := func(x, c torch.Tensor) torch.Tensor { return x.Sub(c).Div(c).Log1p() } // of x/c
	c := constant(low).Mul(log(constant(high), constant(low)).Mul(0.5).Exp())
	from, to := log(low, c), log(high, c)
	density := func(l torch.Tensor) torch.Tensor { return of.logRatio(c, l).Add(l) }
	var steep torch.Tensor
	torch.Must(0, torch.NoGrad(func() error {
		a, b := density(from), density(to)
		level := torch.Of(b.Sub(a).Abs().Lt(mostRise).T().MustLogicalAnd(a.Add(b).Abs().Lt(2*mostBend).T(), false))
		steep = either(open, not(level))
		return nil
	}))
	c = torch.Choose(steep, innerOf(d.of), c)
	from, to = fill(from, steep, 0), fill(to, steep, 0)
	width := to.Sub(from)
	rule := tailRule()
	each := density(d.column(rule.nodes).Mul(width).Add(from)).Exp().Mul(d.column(rule.weights))
	all := torch.Of(each.T().MustSumDimIntlist([]int64{0}, false, each.T().DType(), false))
	norm := fill(all.Mul(width), steep, 1).Log().Add(c.Log())
	x := torch.Choose(either(outside, steep), c, floated(value))
	return torch.Choose(either(outside, steep), logp, d.full(of.logRatio(c, log(x, c)).Sub(norm)))
}

// logNormal is the log density of a truncated [LogNormal], by that of its logarithm.
func (d truncatedDist) logNormal(of logNormalDist, value, outside torch.Tensor) torch.Tensor {
	low, high := d.ends()
	from := low.Log()
	if !operand.IsNumber(low) {
		none := low.Eq(0)
		from = fill(fill(low, none, 1).Log(), none, math.Inf(-1))
	}
	normal := TruncatedNormal(of.loc, of.scale, from, high.Log())
	return d.inside(value, either(outside, dense(value).Le(0)), torch.Of(1), func(x torch.Tensor) torch.Tensor {
		l := x.Log()
		return normal.LogProb(l).Sub(l)
	})
}
