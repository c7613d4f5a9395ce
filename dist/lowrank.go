package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LowRankMultivariateNormalDist is the normal distribution with a covariance of low rank plus a diagonal; see
// [LowRankMultivariateNormal].
type LowRankMultivariateNormalDist struct {
	base
	loc    val
	factor *ts.Tensor // W
	diag   val        // D
	diagT  *ts.Tensor // D as a tensor of shape [..., n]
	over   *ts.Tensor // D⁻¹ W
	inner  *ts.Tensor // the Cholesky factor of C = I + Wᵀ D⁻¹ W
}

// LowRankMultivariateNormal is the normal distribution of vectors of length n with mean loc and covariance Σ = W·Wᵀ + D, where
// cov_factor W has shape [..., n, m] and cov_diag D is the diagonal, positive, a number or of shape [..., n]. The density
// is that of [MultivariateNormal]; for d = x − loc, with the small matrix C = I + Wᵀ D⁻¹ W and u = C⁻¹ Wᵀ D⁻¹ d,
//
//	dᵀ Σ⁻¹ d = (d − W u)ᵀ D⁻¹ (d − W u) + uᵀ u   (Woodbury's identity, without its difference of large numbers)
//	log det Σ = log det C + Σ log D              (the matrix determinant lemma)
//
// so a density costs n·m operations where m is small.
func LowRankMultivariateNormal(loc, covFactor, covDiag any) LowRankMultivariateNormalDist {
	const family = "LowRankMultivariateNormal"
	l, v := param(family, "loc", loc), param(family, "cov_diag", covDiag)
	w, batch, n, m := matrixOf(family, "cov_factor", covFactor, false)
	shape := broadcast(family, vectorBatch(family, "loc", l, n), batch, vectorBatch(family, "cov_diag", v, n))
	d := LowRankMultivariateNormalDist{base: base{family: family, batch: shape, event: []int64{n}}, loc: l, factor: w, diag: v}
	d.checkNumber("loc", l, finite)
	d.checkNumber("cov_diag", v, positive)
	dtype, device := like(ten(w))
	d.diagT = v.tensorOf(dtype, device)
	d.diagT = expandTo(d.diagT, broadcast(family, ten(d.diagT).shape(), d.event))
	d.over = w.MustDiv(d.diagT.MustUnsqueeze(-1, false), false)
	d.inner = cholesky(transposed(w).MustMatmul(d.over, false).MustAdd(ts.MustEye(m, dtype, device), false))
	return d
}

// Support is all real vectors.
func (d LowRankMultivariateNormalDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d LowRankMultivariateNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x := expandTo(value, broadcast(d.family, ten(value).shape(), d.event))
	x = ten(x).sub(d.loc).t
	u := rowsOver(rowsOver(rowsTimes(x, d.over), transposed(d.inner), true), d.inner, false)
	rest := x.MustSub(rowsTimes(u, transposed(d.factor)), false)
	squares := ten(sumLast(rest.MustSquare(false).MustDiv(d.diagT, false), 1)).add(ten(sumLast(u.MustSquare(false), 1)))
	halfLogDet := ten(logDiagonal(d.inner)).add(ten(sumLast(d.diagT.MustLog(false), 1)).mul(num(0.5)))
	return d.full(squares.mul(num(-0.5)).sub(halfLogDet).sub(num(float64(d.event[0]) * halfLog2Pi)).t)
}

// Sample draws loc + W z + √D z', reparameterised.
func (d LowRankMultivariateNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(ten(d.factor))
	shape := ten(d.factor).shape()
	z := torch.Must(src.Normal(join(sample, d.batch, shape[len(shape)-1:]), dtype, device))
	own := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	x := rowsTimes(z, transposed(d.factor)).MustAdd(own.MustMul(d.diagT.MustSqrt(false), false), false)
	return ten(x).add(d.loc).t
}

// Mean is loc.
func (d LowRankMultivariateNormalDist) Mean() *ts.Tensor {
	return expandTo(d.loc.tensorOf(like(ten(d.factor))), join(d.batch, d.event))
}

// Variance is the diagonal of the covariance.
func (d LowRankMultivariateNormalDist) Variance() *ts.Tensor {
	return d.spread(ten(sumLast(d.factor.MustSquare(false), 1).MustAdd(d.diagT, false)))
}

// Covariance is the covariance matrix, of shape batch + [n, n].
func (d LowRankMultivariateNormalDist) Covariance() *ts.Tensor {
	c := d.factor.MustMatmul(transposed(d.factor), false).MustAdd(d.diagT.MustDiagEmbed(0, -2, -1, false), false)
	return expandTo(c, join(d.batch, d.event, d.event))
}

// Expand broadcasts the batch shape.
func (d LowRankMultivariateNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc, cov_factor and cov_diag.
func (d LowRankMultivariateNormalDist) Validate() error {
	return first(d.validate("loc", d.loc, finite), d.validate("cov_factor", ten(d.factor), finite), d.validate("cov_diag", d.diag, positive))
}

// Params are the parameters by name.
func (d LowRankMultivariateNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), "cov_factor": d.factor, "cov_diag": d.diag.any()}
}
