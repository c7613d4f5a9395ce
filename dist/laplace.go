package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// LaplaceDist is the Laplace distribution; see [Laplace].
type LaplaceDist struct {
	base
	loc, scale val
}

// Laplace is the two-sided exponential distribution with mean loc and scale > 0:
//
//	log p(x) = −|x − loc|/scale − log(2 scale)
func Laplace(loc, scale any) LaplaceDist {
	l, s := param("Laplace", "loc", loc), param("Laplace", "scale", scale)
	d := LaplaceDist{base: newBase("Laplace", l, s), loc: l, scale: s}
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d LaplaceDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d LaplaceDist) LogProb(value *ts.Tensor) *ts.Tensor {
	return d.full(floated(value).sub(d.loc).div(d.scale).abs().neg().sub(d.scale.log().add(num(math.Ln2))).t)
}

// Sample draws quantiles of uniform numbers, reparameterised.
func (d LaplaceDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return d.ICDF(d.uniform(src, sample, d.loc, d.scale))
}

// Mean is loc.
func (d LaplaceDist) Mean() *ts.Tensor { return d.spread(d.loc) }

// Variance is 2 scale².
func (d LaplaceDist) Variance() *ts.Tensor { return d.spread(d.scale.square().mul(num(2))) }

// CDF is exp(z)/2 for z = (x − loc)/scale < 0, else 1 − exp(−z)/2.
func (d LaplaceDist) CDF(value *ts.Tensor) *ts.Tensor {
	z := floated(value).sub(d.loc).div(d.scale)
	negative := z.t.MustLt(ts.FloatScalar(0), false)
	tail := choose(negative, z, z.neg()).exp().mul(num(0.5))
	return d.full(choose(negative, tail, num(1).sub(tail)).t)
}

// ICDF is loc + scale log 2p for p < 1/2, else loc − scale log 2(1 − p).
func (d LaplaceDist) ICDF(p *ts.Tensor) *ts.Tensor {
	lower := p.MustLt(ts.FloatScalar(0.5), false)
	z := choose(lower, ten(p), num(1).sub(ten(p))).mul(num(2)).log()
	return d.full(choose(lower, z, z.neg()).mul(d.scale).add(d.loc).t)
}

// Expand broadcasts the batch shape.
func (d LaplaceDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and scale.
func (d LaplaceDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d LaplaceDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "scale": d.scale.any()}
}
