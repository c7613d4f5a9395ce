package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// studentTDist is the Student's t distribution; see [StudentT].
type studentTDist struct {
	base
	df, loc, scale torch.Tensor
}

// StudentT is Student's t distribution with df > 0 degrees of freedom, located at loc, of scale > 0:
//
//	log p(x) = −(df + 1)/2 log(1 + z²/df) − log B(df/2, 1/2) − ½ log df − log scale,  z = (x − loc)/scale
//
// The beta function is computed without cancellation, so that the density tends to the normal one for large df.
func StudentT(df, loc, scale any) (made Distribution) {
	defer orMisfit(&made)
	n, l, s := param("StudentT", "df", df), param("StudentT", "loc", loc), param("StudentT", "scale", scale)
	d := studentTDist{base: newBase("StudentT", n, l, s), df: n, loc: l, scale: s}
	d.checkNumber("df", n, positive)
	d.checkNumber("loc", l, finite)
	d.checkNumber("scale", s, positive)
	return d
}

// Support is the real line.
func (d studentTDist) Support() support.Support { return support.Real }

// LogProb is the log density.
func (d studentTDist) LogProb(value torch.Tensor) torch.Tensor {
	w := floated(value).Sub(d.loc).Div(d.scale.Mul(d.df.Sqrt()))
	c := logBeta(d.df.Mul(0.5), torch.Of(0.5)).Add(d.df.Log().Mul(0.5)).Add(d.scale.Log())
	return d.full(log1pSquare(w).Mul(d.df.Add(1).Mul(-0.5)).Sub(c))
}

// Sample draws loc + scale·z √(df/(2g)), with z normal and g gamma of shape df/2, reparameterised.
func (d studentTDist) Sample(src *Source, sample ...int64) torch.Tensor {
	half := d.df.Mul(0.5)
	z := d.normal(src, sample, d.df, d.loc, d.scale)
	log := half.Log().Sub(d.logGamma(src, sample, half, d.df, d.loc, d.scale))
	return z.Mul(log.Mul(0.5).Exp()).Mul(d.scale).Add(d.loc)
}

// Mean is loc; NaN for df ≤ 1.
func (d studentTDist) Mean() torch.Tensor { return d.spread(d.moment(d.loc, d.df, 1, math.NaN())) }

// Variance is scale² df/(df − 2); infinite for df ≤ 2, NaN for df ≤ 1.
func (d studentTDist) Variance() torch.Tensor {
	v := d.scale.Square().Mul(d.df.Div(d.df.Sub(2)))
	return d.spread(d.moment(d.moment(v, d.df, 2, math.Inf(1)), d.df, 1, math.NaN()))
}

// Expand broadcasts the batch shape.
func (d studentTDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks df, loc and scale.
func (d studentTDist) Validate() error {
	return first(
		d.validate("df", d.df, positive),
		d.validate("loc", d.loc, finite),
		d.validate("scale", d.scale, positive),
	)
}

// Params are the parameters by name.
func (d studentTDist) Params() map[string]any {
	return map[string]any{"df": d.df, "loc": d.loc, "scale": d.scale}
}

// CDF is the distribution function, by [studentTDist.logTails].
func (d studentTDist) CDF(value torch.Tensor) torch.Tensor {
	lower, _ := tailsAnywhere(d, floated(value))
	return d.full(lower.Exp())
}

// ICDF is the quantile function, by bisection; its gradients are exact.
func (d studentTDist) ICDF(p torch.Tensor) torch.Tensor {
	line := truncatedDist{d.base, d, torch.Of(math.Inf(-1)), torch.Of(math.Inf(1))}
	return line.quantile(dense(p).Log(), dense(p).Neg().Log1p())
}

func (d studentTDist) fromTails(lower, upper torch.Tensor) torch.Tensor {
	return bisect(d, lower, upper)
}

// logTails has, for z = (x − loc)/scale > 0, half the regularised incomplete beta function I_w(a, ½) with a = df/2 and
// w = df/(df + z²) as its upper tail:
//
//	I_w(a, ½) = wᵃ/(a B(a, ½)) ∫₀¹ (1 − w v^(1/a))^(−½) dv
//
// by the double-exponential rule, whose nodes bear the singularity that the integrand has at v = 1 for z = 0. In z it
// has the derivatives of the density, in df those of the sum.
func (d studentTDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	z := x.Sub(d.loc).Div(d.scale)
	left := z.Lt(0)
	z = torch.Choose(left, z.Neg(), z)
	at := constant(z)
	near := d.logTail(at)
	// log T(at) + log(1 − (z − at) p/T), with the density p half-way, whose first two derivatives at z are those of log T.
	p := StudentT(d.df, 0, 1).LogProb(z.Add(at).Mul(0.5))
	near = near.Add(at.Sub(z).Mul(p.Sub(near).Exp()).Log1p())
	far := logOneMinusExp(near)
	return torch.Choose(left, near, far), torch.Choose(left, far, near)
}

// logTail is log P(Z > z) for z ≥ 0, with loc 0 and scale 1.
func (d studentTDist) logTail(z torch.Tensor) torch.Tensor {
	a := d.df.Mul(0.5)
	// By its square root: z² may overflow.
	s := z.Div(d.df.Sqrt())
	log := log1pSquare(s) // −log w
	w, rest := log.Neg().Exp(), log.Neg().Expm1().Neg()
	nodes := quantileNodes()
	dtype, device := like(z)
	n := int64(len(nodes.p))
	column := func(x []float64) torch.Tensor { return torch.Of(torch.Must(torch.FromSliceOn(device, dtype, x, n))) }
	drop := column(nodes.p).Div(wide(a)).Expm1().Neg() // 1 − v^(1/a)
	sum := operand.SumLast(wide(rest).Add(wide(w).Mul(drop)).Sqrt().Reciprocal().Mul(column(nodes.weight)), 1)
	return sum.Log().Sub(log.Mul(a)).Sub(a.Log()).Sub(logBeta(a, torch.Of(0.5))).Sub(math.Ln2)
}
