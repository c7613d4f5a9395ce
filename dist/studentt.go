package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// StudentTDist is the Student's t distribution; see [StudentT].
type StudentTDist struct {
	base
	df, loc, scale val
}

// StudentT is Student's t distribution with df > 0 degrees of freedom, located at loc, of scale > 0:
//
//	log p(x) = −(df + 1)/2 log(1 + z²/df) − log B(df/2, 1/2) − ½ log df − log scale,  z = (x − loc)/scale
//
// The beta function is computed without cancellation, so that the density tends to the normal one for large df.
func StudentT(df, loc, scale any) StudentTDist {
	n, l, s := param("StudentT", "df", df), param("StudentT", "loc", loc), param("StudentT", "scale", scale)
	d := StudentTDist{base: newBase("StudentT", n, l, s), df: n, loc: l, scale: s}
	d.checkNumber("df", n, positive)
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d StudentTDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d StudentTDist) LogProb(value *ts.Tensor) *ts.Tensor {
	w := floated(value).sub(d.loc).div(d.scale.mul(d.df.sqrt()))
	c := logBeta(d.df.mul(num(0.5)), num(0.5)).add(d.df.log().mul(num(0.5))).add(d.scale.log())
	return d.full(log1pSquare(w.t).mul(d.df.add(num(1)).mul(num(-0.5))).sub(c).t)
}

// Sample draws loc + scale·z √(df/(2g)), with z normal and g gamma of shape df/2, reparameterised.
func (d StudentTDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	half := d.df.mul(num(0.5))
	z := ten(d.normal(src, sample, d.df, d.loc, d.scale))
	log := half.log().sub(d.logGamma(src, sample, half, d.df, d.loc, d.scale))
	return z.mul(log.mul(num(0.5)).exp()).mul(d.scale).add(d.loc).t
}

// Mean is loc; NaN for df ≤ 1.
func (d StudentTDist) Mean() *ts.Tensor { return d.spread(d.moment(d.loc, d.df, 1, math.NaN())) }

// Variance is scale² df/(df − 2); infinite for df ≤ 2, NaN for df ≤ 1.
func (d StudentTDist) Variance() *ts.Tensor {
	v := d.scale.square().mul(d.df.div(d.df.sub(num(2))))
	return d.spread(d.moment(d.moment(v, d.df, 2, math.Inf(1)), d.df, 1, math.NaN()))
}

// Expand broadcasts the batch shape.
func (d StudentTDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks df, loc and scale.
func (d StudentTDist) Validate() error {
	return first(d.validate("df", d.df, positive), d.validate("loc", d.loc, finite), d.validate("scale", d.scale, positive))
}

// Params are the parameters by name.
func (d StudentTDist) Params() map[string]any {
	return map[string]any{"df": d.df.any(), "loc": d.loc.any(), "scale": d.scale.any()}
}
