package dist

import (
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// lowRankMultivariateNormalDist is the normal distribution with a covariance of low rank plus
// a diagonal; see [LowRankMultivariateNormal].
type lowRankMultivariateNormalDist struct {
	base
	loc    torch.Tensor
	factor torch.Tensor // W
	diag   torch.Tensor // D
	diagT  torch.Tensor // D as a tensor of shape [..., n]
	over   torch.Tensor // D⁻¹ W
	inner  torch.Tensor // the Cholesky factor of C = I + Wᵀ D⁻¹ W
}

// lowRankFamily has no distribution of a base: the matrices that a density needs are kept where a batch is expanded.
var lowRankFamily = &family{name: "LowRankMultivariateNormal",
	params: []parameter{{"loc", finite}, {"cov_factor", finite}, {"cov_diag", positive}}}

// LowRankMultivariateNormal is the normal distribution of vectors of length n with mean loc and covariance Σ = W·Wᵀ +
// D, where cov_factor W has shape [..., n, m] and cov_diag D is the diagonal, positive, a number or of shape [..., n].
// The density is that of [MultivariateNormal]; for d = x − loc, with the small matrix C = I + Wᵀ D⁻¹ W and u = C⁻¹ Wᵀ
// D⁻¹ d,
//
//	dᵀ Σ⁻¹ d = (d − W u)ᵀ D⁻¹ (d − W u) + uᵀ u   (Woodbury's identity, without its difference of large numbers)
//	log det Σ = log det C + Σ log D              (the matrix determinant lemma)
//
// so a density costs n·m operations where m is small.
func LowRankMultivariateNormal(loc, covFactor, covDiag any) (made Distribution) {
	defer orMisfit(&made)
	const family = "LowRankMultivariateNormal"
	l, v := param(family, "loc", loc), param(family, "cov_diag", covDiag)
	w, batch, n, m := matrixOf(family, "cov_factor", covFactor, false)
	shape := broadcast(family, vectorBatch(family, "loc", l, n), batch, vectorBatch(family, "cov_diag", v, n))
	d := lowRankMultivariateNormalDist{loc: l, factor: w, diag: v}
	d.base = lowRankFamily.sized(base{family: family, batch: shape, event: []int64{n}}, l, w, v)
	dtype, device := like(w)
	d.diagT = tensorOf(v, dtype, device)
	d.diagT = expandTo(d.diagT, broadcast(family, d.diagT.Shape(), d.event))
	d.over = w.Div(d.diagT.Unsqueeze(-1))
	d.inner = w.Transpose().MatMul(d.over).Add(ts.MustEye(m, dtype, device)).Cholesky()
	return d
}

// Support is all real vectors.
func (d lowRankMultivariateNormalDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d lowRankMultivariateNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	x = x.Sub(d.loc)
	u := d.coordinates(x, d.over, d.inner)
	// u makes the squares least: a correction makes the error of u, squared, that of the squares, and they have no
	// derivatives by u but the second, which are those of what is taken away.
	best, step := constant(u), u.Sub(constant(u))
	over, inner, factor := constant(d.over), constant(d.inner), constant(d.factor)
	rest := constant(x).Sub(rowsTimes(best, factor.Transpose()))
	best = best.Add(d.solve(rowsTimes(rest, over).Sub(best), inner))
	rest = x.Sub(rowsTimes(best, d.factor.Transpose()))
	squares := operand.SumLast(rest.Square().Div(d.diagT), 1).Add(operand.SumLast(best.Square(), 1))
	if hasGraph(u) {
		moved := rowsTimes(step, d.factor.Transpose()).Square().Div(d.diagT)
		squares = squares.Sub(operand.SumLast(moved, 1)).Sub(operand.SumLast(step.Square(), 1))
	}
	halfLogDet := logDiagonal(d.inner).Add(operand.SumLast(d.diagT.Log(), 1).Mul(0.5))
	return d.full(squares.Mul(-0.5).Sub(halfLogDet).Sub(float64(d.event[0]) * halfLog2Pi))
}

// coordinates are u = C⁻¹ Wᵀ D⁻¹ x.
func (d lowRankMultivariateNormalDist) coordinates(x, over, inner torch.Tensor) torch.Tensor {
	return d.solve(rowsTimes(x, over), inner)
}

// solve is C⁻¹ v.
func (d lowRankMultivariateNormalDist) solve(v, inner torch.Tensor) torch.Tensor {
	return rowsOver(rowsOver(v, inner.Transpose(), true), inner, false)
}

// Sample draws loc + W z + √D z', reparameterised.
func (d lowRankMultivariateNormalDist) Sample(src *Source, sample ...int64) torch.Tensor {
	dtype, device := like(d.factor)
	shape := d.factor.Shape()
	z := torch.Must(src.Normal(join(sample, d.batch, shape[len(shape)-1:]), dtype, device))
	own := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	x := rowsTimes(z, d.factor.Transpose()).Add(own.Mul(d.diagT.Sqrt()))
	return x.Add(d.loc)
}

// Mean is loc.
func (d lowRankMultivariateNormalDist) Mean() torch.Tensor {
	return expandTo(alike(d.loc, d.factor), join(d.batch, d.event))
}

// Variance is the diagonal of the covariance.
func (d lowRankMultivariateNormalDist) Variance() torch.Tensor {
	return d.spread(operand.SumLast(d.factor.Square(), 1).Add(d.diagT))
}

// Covariance is the covariance matrix, of shape batch + [n, n].
func (d lowRankMultivariateNormalDist) Covariance() torch.Tensor {
	c := d.factor.MatMul(d.factor.Transpose()).Add(torch.Of(d.diagT.T().MustDiagEmbed(0, -2, -1, false)))
	return expandTo(c, join(d.batch, d.event, d.event))
}

// Expand broadcasts the batch shape.
func (d lowRankMultivariateNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}
