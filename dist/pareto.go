package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// ParetoDist is the Pareto distribution; see [Pareto].
type ParetoDist struct {
	base
	scale, alpha val
}

// Pareto is the Pareto distribution of numbers from scale > 0, with exponent alpha > 0; for x ≥ scale
//
//	log p(x) = log alpha − log scale − (alpha + 1) log(x/scale)
func Pareto(scale, alpha any) ParetoDist {
	s, a := param("Pareto", "scale", scale), param("Pareto", "alpha", alpha)
	d := ParetoDist{base: newBase("Pareto", s, a), scale: s, alpha: a}
	d.checkNumber("scale", s, positive)
	d.checkNumber("alpha", a, positive)
	return d
}

// Support is x ≥ scale.
func (d ParetoDist) Support() support.Support { return support.Interval(d.scale.any(), math.Inf(1)) }

// LogProb is the log density.
func (d ParetoDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.inside(value, below(value, d.scale), d.scale, func(x *ts.Tensor) val {
		return ten(x).div(d.scale).log().mul(d.alpha.add(num(1))).neg().add(d.alpha.log().sub(d.scale.log()))
	})
}

// Sample draws scale·u^(−1/alpha), reparameterised.
func (d ParetoDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return ten(d.uniform(src, sample, d.scale, d.alpha)).log().neg().div(d.alpha).exp().mul(d.scale).t
}

// Mean is scale·alpha/(alpha − 1); infinite for alpha ≤ 1.
func (d ParetoDist) Mean() *ts.Tensor {
	return d.spread(d.moment(d.scale.mul(d.alpha.div(d.alpha.sub(num(1)))), d.alpha, 1, math.Inf(1)))
}

// Variance is scale² alpha/((alpha − 1)² (alpha − 2)); infinite for alpha ≤ 2, NaN for alpha ≤ 1.
func (d ParetoDist) Variance() *ts.Tensor {
	v := d.scale.div(d.alpha.sub(num(1))).square().mul(d.alpha.div(d.alpha.sub(num(2))))
	return d.spread(d.moment(d.moment(v, d.alpha, 2, math.Inf(1)), d.alpha, 1, math.NaN()))
}

// CDF is 1 − (scale/x)^alpha.
func (d ParetoDist) CDF(value *ts.Tensor) *ts.Tensor {
	outside := below(value, d.scale)
	x := choose(outside, d.scale, floated(value))
	return d.full(x.div(d.scale).log().mul(d.alpha).neg().expm1().neg().fill(outside, 0).t)
}

// ICDF is scale·(1 − p)^(−1/alpha).
func (d ParetoDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p).neg().log1p().div(d.alpha).neg().exp().mul(d.scale).t)
}

// Expand broadcasts the batch shape.
func (d ParetoDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks scale and alpha.
func (d ParetoDist) Validate() error {
	return first(d.validate("scale", d.scale, positive), d.validate("alpha", d.alpha, positive))
}

// Params are the parameters by name.
func (d ParetoDist) Params() map[string]any {
	return map[string]any{"scale": d.scale.any(), "alpha": d.alpha.any()}
}
