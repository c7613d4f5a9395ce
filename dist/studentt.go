package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// StudentTDist is the Student's t distribution; see [StudentT].
type StudentTDist struct {
	base
	df, loc, scale torch.Tensor
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
func (d StudentTDist) LogProb(value torch.Tensor) torch.Tensor {
	w := floated(value).Sub(d.loc).Div(d.scale.Mul(d.df.Sqrt()))
	c := logBeta(d.df.Mul(0.5), torch.Of(0.5)).Add(d.df.Log().Mul(0.5)).Add(d.scale.Log())
	return d.full(log1pSquare(w).Mul(d.df.Add(1).Mul(-0.5)).Sub(c))
}

// Sample draws loc + scale·z √(df/(2g)), with z normal and g gamma of shape df/2, reparameterised.
func (d StudentTDist) Sample(src *Source, sample ...int64) torch.Tensor {
	half := d.df.Mul(0.5)
	z := d.normal(src, sample, d.df, d.loc, d.scale)
	log := half.Log().Sub(d.logGamma(src, sample, half, d.df, d.loc, d.scale))
	return z.Mul(log.Mul(0.5).Exp()).Mul(d.scale).Add(d.loc)
}

// Mean is loc; NaN for df ≤ 1.
func (d StudentTDist) Mean() torch.Tensor { return d.spread(d.moment(d.loc, d.df, 1, math.NaN())) }

// Variance is scale² df/(df − 2); infinite for df ≤ 2, NaN for df ≤ 1.
func (d StudentTDist) Variance() torch.Tensor {
	v := d.scale.Square().Mul(d.df.Div(d.df.Sub(2)))
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
	return map[string]any{"df": d.df, "loc": d.loc, "scale": d.scale}
}
