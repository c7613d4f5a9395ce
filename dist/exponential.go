package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// ExponentialDist is the exponential distribution; see [Exponential].
type ExponentialDist struct {
	base
	rate val
}

// Exponential is the exponential distribution with the given rate > 0, the reciprocal of the mean; for x ≥ 0
//
//	log p(x) = log rate − rate·x
func Exponential(rate any) ExponentialDist {
	r := param("Exponential", "rate", rate)
	d := ExponentialDist{base: newBase("Exponential", r), rate: r}
	d.checkNumber("rate", r, positive)
	return d
}

// Support is x ≥ 0.
func (d ExponentialDist) Support() support.Support { return support.Nonnegative }

// LogProb is the log density.
func (d ExponentialDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, value.MustLt(ts.FloatScalar(0), false), num(1), func(x *ts.Tensor) val {
		return d.rate.log().sub(ten(x).mul(d.rate))
	})
}

// Sample draws −log(u)/rate, reparameterised.
func (d ExponentialDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return ten(d.uniform(src, sample, d.rate)).log().neg().div(d.rate).t
}

// Mean is 1/rate.
func (d ExponentialDist) Mean() *ts.Tensor { return d.spread(d.rate.recip()) }

// Variance is 1/rate².
func (d ExponentialDist) Variance() *ts.Tensor { return d.spread(d.rate.recip().square()) }

// CDF is 1 − exp(−rate·x).
func (d ExponentialDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.positivePart(value, 0, func(x *ts.Tensor) val { return ten(x).mul(d.rate).neg().expm1().neg() })
}

// ICDF is −log(1 − p)/rate.
func (d ExponentialDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p).neg().log1p().neg().div(d.rate).t)
}

// Expand broadcasts the batch shape.
func (d ExponentialDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks rate.
func (d ExponentialDist) Validate() error {
	return d.validate("rate", d.rate, positive)
}

// Params are the parameters by name.
func (d ExponentialDist) Params() map[string]any {
	return map[string]any{"rate": d.rate.any()}
}
