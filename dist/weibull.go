package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// WeibullDist is the Weibull distribution; see [Weibull].
type WeibullDist struct {
	base
	scale, concentration val
}

// Weibull is the Weibull distribution with scale > 0 and shape k = concentration > 0; for x > 0, with z = x/scale,
//
//	log p(x) = log k − log scale + (k − 1) log z − z^k
func Weibull(scale, concentration any) WeibullDist {
	s, a := param("Weibull", "scale", scale), param("Weibull", "concentration", concentration)
	d := WeibullDist{base: newBase("Weibull", s, a), scale: s, concentration: a}
	d.checkNumber("scale", s, positive)
	d.checkNumber("concentration", a, positive)
	return d
}

// Support is x > 0.
func (d WeibullDist) Support() support.Support { return support.Positive }

// LogProb is the log density.
func (d WeibullDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, value.MustLt(ts.FloatScalar(0), false), num(1), func(x *ts.Tensor) val {
		z := ten(x).div(d.scale)
		power := z.log().mul(d.concentration).exp()
		return xlogy(d.concentration.sub(num(1)), z).sub(power).add(d.concentration.log().sub(d.scale.log()))
	})
}

// Sample draws scale·(−log u)^(1/k), reparameterised.
func (d WeibullDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	e := ten(d.uniform(src, sample, d.scale, d.concentration)).log().neg()
	return e.log().div(d.concentration).exp().mul(d.scale).t
}

// Mean is scale·Γ(1 + 1/k).
func (d WeibullDist) Mean() *ts.Tensor {
	return d.spread(d.concentration.recip().add(num(1)).lgamma().exp().mul(d.scale))
}

// Variance is scale² [Γ(1 + 2/k) − Γ(1 + 1/k)²].
func (d WeibullDist) Variance() *ts.Tensor {
	e := d.concentration.recip()
	one := e.add(num(1)).lgamma().mul(num(2))
	return d.spread(lgammaGap(e).expm1().mul(one.exp()).mul(d.scale.square()))
}

// lgammaGap is log Γ(1 + 2e) − 2 log Γ(1 + e), which cancels for small e. There it is the difference of the series
// log Γ(1 + x) = −γx + Σ ζ(k)(−x)ᵏ/k over k from 2 on.
func lgammaGap(e val) val {
	const from = 0.02
	direct := func(e val) val {
		return e.mul(num(2)).add(num(1)).lgamma().sub(e.add(num(1)).lgamma().mul(num(2)))
	}
	series := func(e val) val {
		sum := num(0)
		for i := len(zeta) - 1; i >= 0; i-- {
			k := float64(i + 2)
			sum = sum.mul(e.neg()).add(num(zeta[i] * (math.Exp2(k) - 2) / k))
		}
		return sum.mul(e.square())
	}
	if e.isNum() {
		if e.c < from {
			return series(e)
		}
		return direct(e)
	}
	small := e.t.MustLt(ts.FloatScalar(from), false)
	return choose(small, series(e.fill(not(small), from)), direct(e.fill(small, 1)))
}

// zeta is ζ(2), ζ(3), … (Abramowitz and Stegun, table 23.3).
var zeta = []float64{1.64493406684822643647, 1.20205690315959428540, 1.08232323371113819152, 1.03692775514336992633, 1.01734306198444913971,
	1.00834927738192282684, 1.00407735619794433938, 1.00200839282608221442, 1.00099457512781808534, 1.00049418860411946456}

// CDF is 1 − exp(−z^k).
func (d WeibullDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.positivePart(value, 0, func(x *ts.Tensor) val {
		return ten(x).div(d.scale).log().mul(d.concentration).exp().neg().expm1().neg()
	})
}

// ICDF is scale·(−log(1 − p))^(1/k).
func (d WeibullDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p).neg().log1p().neg().log().div(d.concentration).exp().mul(d.scale).t)
}

// Expand broadcasts the batch shape.
func (d WeibullDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks scale and concentration.
func (d WeibullDist) Validate() error {
	return first(d.validate("scale", d.scale, positive), d.validate("concentration", d.concentration, positive))
}

// Params are the parameters by name.
func (d WeibullDist) Params() map[string]any {
	return map[string]any{"scale": d.scale.any(), "concentration": d.concentration.any()}
}
