package dist

import (
	"cmp"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// multivariateStudentTDist is the multivariate Student's t distribution; see [MultivariateStudentT].
type multivariateStudentTDist struct {
	base
	df, loc, scaleTril, factor torch.Tensor
}

// MultivariateStudentT is Student's t distribution of vectors of length n, with df ν > 0 degrees of freedom, a number
// or a tensor of the batch shape, loc, a number or a tensor of shape [..., n], and scale_tril L, lower triangular with
// a positive diagonal, of shape [..., n, n]. With q = |L⁻¹(x − loc)|²
//
//	log p(x) = −(ν + n)/2 log(1 + q/ν) − log B(ν/2, n/2) + log Γ(n/2) − (n/2) log(ν π) − log det L
//
// What is above the diagonal of L is not read.
func MultivariateStudentT(df, loc, scaleTril any) (made Distribution) {
	defer orMisfit(&made)
	const family = "MultivariateStudentT"
	nu, l := param(family, "df", df), param(family, "loc", loc)
	m, batch, n, _ := matrixOf(family, "scale_tril", scaleTril, true)
	d := multivariateStudentTDist{df: nu, loc: l, scaleTril: m, factor: torch.Of(m.T().MustTril(0, false))}
	d.base = base{family: family, batch: broadcast(family, nu.Shape(), vectorBatch(family, "loc", l, n), batch),
		event: []int{n}}
	d.checkNumber("df", nu, positive)
	d.checkNumber("loc", l, finite)
	return d
}

// Support is all real vectors.
func (d multivariateStudentTDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d multivariateStudentTDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event)).Sub(d.loc)
	x = rowsOver(x, d.factor.Transpose(), true)
	n, squares, df := float64(d.event[0]), operand.SumLast(x.Square(), 1), d.df
	far, some := torch.Of(0), hasGraph(df)
	if some {
		far = df.Ge(normalFrom)
		df = torch.Choose(far, constant(df), df)
	}
	half, _ := math.Lgamma(n / 2)
	kernel := squares.Div(df).Log1p().Mul(df.Add(n).Mul(-0.5))
	norm := logBeta(df.Mul(0.5), torch.Of(n/2)).Add(df.Log().Mul(n / 2)).Add(n/2*math.Log(math.Pi) - half)
	logp := kernel.Sub(norm).Sub(logDiagonal(d.factor))
	if some {
		at := fill(d.df, not(far), normalFrom)
		step := at.Sub(constant(at))
		logp = logp.Add(torch.Choose(far, d.slope(constant(at).Add(step.Mul(0.5)), squares).Mul(step), 0))
	}
	return d.full(logp)
}

// slope is the derivative in a large ν, of the order of 1/ν²: with w = q/ν for the sum of squares q, k = n/2, h = ν/2,
//
//	½ [(n/ν) w/(1 + w) + w/(1 + w) − log(1 + w) + ψ(h + k) − ψ(h) − k/h]
//
// in which what is of the order of 1/ν does not appear.
func (d multivariateStudentTDist) slope(df, squares torch.Tensor) torch.Tensor {
	n, w := float64(d.event[0]), squares.Div(df)
	inner := w.Div(w.Add(1))
	near := w.Lt(0.01)
	small := fill(w, not(near), 0)
	over := log1pOver(small)
	series := small.Add(over).Add(small.Mul(over)).Mul(small).Div(small.Add(1)).Neg()
	bend := torch.Choose(near, series, inner.Sub(w.Log1p()))
	h, k := df.Mul(0.5), torch.Of(n/2)
	ratio := k.Div(h)
	rise := torch.Choose(ratio.Lt(0.01), log1pOver(ratio.AtMost(0.01)).Mul(ratio), ratio.Log1p().Sub(ratio))
	rise = rise.Add(ratio.Div(h.Add(k)).Mul(0.5)).Sub(digammaRest(h.Add(k))).Add(digammaRest(h))
	return inner.Mul(n).Div(df).Add(bend).Add(rise).Mul(0.5)
}

// Sample draws loc + L z √(ν/(2g)), with z normal and g gamma of shape ν/2, reparameterised.
func (d multivariateStudentTDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.scaleTril)
	half := d.df.Mul(0.5)
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	log := half.Log().Sub(d.logGamma(src, sample, half, d.scaleTril))
	return rowsTimes(z, d.factor.Transpose()).Mul(log.Mul(0.5).Exp().Unsqueeze(-1)).Add(d.loc)
}

// wide gives a parameter of the batch shape a dimension for the event.
func wide(v torch.Tensor) torch.Tensor {
	if operand.IsNumber(v) {
		return v
	}
	return v.Unsqueeze(-1)
}

// Mean is loc; NaN for ν ≤ 1.
func (d multivariateStudentTDist) Mean() torch.Tensor {
	loc := d.spread(alike(d.loc, d.scaleTril))
	return d.spread(d.moment(loc, wide(d.df), 1, math.NaN()))
}

// Variance is the diagonal of L·Lᵀ times ν/(ν − 2); infinite for ν ≤ 2, NaN for ν ≤ 1.
func (d multivariateStudentTDist) Variance() torch.Tensor {
	nu := wide(d.df)
	v := operand.SumLast(d.factor.Square(), 1).Mul(nu.Div(nu.Sub(2)))
	return d.spread(d.moment(d.moment(v, nu, 2, math.Inf(1)), nu, 1, math.NaN()))
}

// Expand broadcasts the batch shape.
func (d multivariateStudentTDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks df, loc and the matrix.
func (d multivariateStudentTDist) Validate() error {
	return cmp.Or(d.validate("df", d.df, positive), d.validate("loc", d.loc, finite),
		d.validateIn("scale_tril", d.factor, support.LowerCholesky))
}

// Params are the parameters by name.
func (d multivariateStudentTDist) Params() map[string]any {
	return map[string]any{"df": d.df, "loc": d.loc, "scale_tril": d.scaleTril}
}
