package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// LogisticDist is the logistic distribution; see [Logistic].
type LogisticDist struct {
	base
	loc, scale val
}

// Logistic is the logistic distribution with mean loc and scale > 0; with z = (x − loc)/scale
//
//	log p(x) = −|z| − 2 log(1 + exp(−|z|)) − log scale
func Logistic(loc, scale any) LogisticDist {
	l, s := param("Logistic", "loc", loc), param("Logistic", "scale", scale)
	d := LogisticDist{base: newBase("Logistic", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d LogisticDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d LogisticDist) LogProb(value *ts.Tensor) *ts.Tensor {
	z := floated(value).sub(d.loc).div(d.scale).abs().neg()
	return d.full(z.sub(z.exp().log1p().mul(num(2))).sub(d.scale.log()).t)
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d LogisticDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is loc.
func (d LogisticDist) Mean() *ts.Tensor { return d.spread(d.loc) }

// Variance is π² scale²/3.
func (d LogisticDist) Variance() *ts.Tensor {
	return d.spread(d.scale.square().mul(num(math.Pi * math.Pi / 3)))
}

// CDF is 1/(1 + exp(−z)).
func (d LogisticDist) CDF(value *ts.Tensor) *ts.Tensor {
	return d.full(floated(value).sub(d.loc).div(d.scale).sigmoid().t)
}

// ICDF is loc + scale log(p/(1 − p)).
func (d LogisticDist) ICDF(p *ts.Tensor) *ts.Tensor {
	return d.full(ten(p).log().sub(ten(p).neg().log1p()).mul(d.scale).add(d.loc).t)
}

// Expand broadcasts the batch shape.
func (d LogisticDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d LogisticDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d LogisticDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any()}
}
