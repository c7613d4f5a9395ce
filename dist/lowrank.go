package dist

import (
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// lowRankMultivariateNormalDist is the normal distribution with a covariance of low rank plus
// a diagonal; see [LowRankMultivariateNormal].
type lowRankMultivariateNormalDist struct {
	base
	loc         torch.Tensor
	factor      torch.Tensor // W
	diag, root  torch.Tensor // D and √D, of shape [..., n]
	top, bottom torch.Tensor // Z = A·R⁻¹, its first n rows and the others
	gram        torch.Tensor // the Cholesky factor of ZᵀZ
	halfLogDet  torch.Tensor // ½ log det Σ
}

// lowRankFamily has no distribution of a base: the matrices that a density needs are kept where a batch is expanded.
var lowRankFamily = &family{name: "LowRankMultivariateNormal",
	params: []parameter{{"loc", finite}, {"cov_factor", finite}, {"cov_diag", positive}}}

// LowRankMultivariateNormal is the normal distribution of vectors of length n with mean loc and covariance Σ = W·Wᵀ +
// D, where cov_factor W has shape [..., n, m] and cov_diag D is the diagonal, positive, a number or of shape [..., n].
// The density is that of [MultivariateNormal]. With the rows of D^(−½)W above those of the identity as one matrix A,
// and b = D^(−½)(x − loc) above m zeros,
//
//	(x − loc)ᵀ Σ⁻¹ (x − loc) = min over u of |b − A u|²   (Woodbury's identity, without its difference)
//	log det Σ = log det AᵀA + Σ log D                     (the matrix determinant lemma)
//
// so a density costs n·m operations where m is small.
//
// Where W is far larger than √D the density keeps its digits. Its gradients have errors of some roundings of the terms
// that cancel in them. With A = Z·R for orthonormal columns of Z, S = |A||R⁻¹| and e = |b| + S Sᵀ|b|, these are e/√D in
// x, (e² + 1)/D in D, and in W the sums of e|R⁻¹|Sᵀ|b| and S|R⁻ᵀ|, over √D.
func LowRankMultivariateNormal(loc, covFactor, covDiag any) (made Distribution) {
	defer orMisfit(&made)
	const family = "LowRankMultivariateNormal"
	l, v := param(family, "loc", loc), param(family, "cov_diag", covDiag)
	w, batch, n, m := matrixOf(family, "cov_factor", covFactor, false)
	shape := broadcast(family, vectorBatch(family, "loc", l, n), batch, vectorBatch(family, "cov_diag", v, n))
	d := lowRankMultivariateNormalDist{loc: l, factor: w}
	d.base = lowRankFamily.sized(base{family: family, batch: shape, event: []int{n}}, l, w, v)
	dtype, device := like(w)
	d.diag = tensorOf(v, dtype, device)
	d.diag = expandTo(d.diag, broadcast(family, d.diag.Shape(), d.event))
	d.root = d.diag.Sqrt()
	upper, eye := w.Div(d.root.Unsqueeze(-1)), torch.Of(ts.MustEye(int64(m), dtype, device))
	at := upper.Shape()
	rows := torch.Cat(-2, upper, expandTo(eye, join(at[:len(at)-2], eye.Shape())))
	z, logDet := nearlyOrthonormal(rows, eye)
	d.top, d.bottom = z.Slice(-2, 0, n), z.Slice(-2, n, n+m)
	d.gram = z.Transpose().MatMul(z).Cholesky()
	d.halfLogDet = logDet.Add(logDiagonal(d.gram)).Add(operand.SumLast(d.diag.Log(), 1).Mul(0.5))
	return d
}

// nearlyOrthonormal are Z = A·R⁻¹ with nearly orthonormal columns, and log det R. R has no graph. Each of two steps
// divides by the columns' lengths and by the Cholesky factor of what is AᵀA then. An addition to the diagonal keeps
// that positive definite where rounding does not, and the second step takes what it leaves (Fukaya, Kannan,
// Nakatsukasa, Yamamoto and Yanagisawa 2020).
func nearlyOrthonormal(a, eye torch.Tensor) (z, logDet torch.Tensor) {
	z, logDet = a, torch.Of(0)
	shape := a.Shape()
	addition := eye.Mul(float64(shape[len(shape)-2]) * epsilon(a))
	for range 2 {
		at := constant(z)
		length := operand.SumLast(at.Transpose().Square(), 1).Sqrt().Unsqueeze(-2)
		at = at.Div(length)
		factor := at.Transpose().MatMul(at).Add(addition).Cholesky()
		z = torch.Of(factor.Transpose().T().MustLinalgSolveTriangular(z.Div(length).T(), true, false, false, false))
		logDet = logDet.Add(logDiagonal(factor)).Add(operand.SumLast(length.Log().Squeeze(-2), 1))
	}
	return z, logDet
}

// epsilon is the distance from 1 to the next number of a tensor's type.
func epsilon(x torch.Tensor) float64 {
	if x.T().DType() == gotch.Float {
		return 0x1p-23
	}
	return 0x1p-52
}

// Support is all real vectors.
func (d lowRankMultivariateNormalDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d lowRankMultivariateNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	b := x.Sub(d.loc).Div(d.root)
	v := d.solve(rowsTimes(b, d.top), d.gram)
	// v makes the squares least: a correction makes the error of v, squared, that of the squares, and they have no
	// derivatives by v but the second, which are those of what is taken away.
	best, step := constant(v), v.Sub(constant(v))
	top, bottom := constant(d.top), constant(d.bottom)
	left := rowsTimes(constant(b).Sub(rowsTimes(best, top.Transpose())), top)
	left = left.Sub(rowsTimes(rowsTimes(best, bottom.Transpose()), bottom))
	best = best.Add(d.solve(left, constant(d.gram)))
	squares := func(first, others torch.Tensor) torch.Tensor {
		return operand.SumLast(first.Square(), 1).Add(operand.SumLast(others.Square(), 1))
	}
	sum := squares(b.Sub(rowsTimes(best, d.top.Transpose())), rowsTimes(best, d.bottom.Transpose()))
	if hasGraph(v) {
		sum = sum.Sub(squares(rowsTimes(step, top.Transpose()), rowsTimes(step, bottom.Transpose())))
	}
	return d.full(sum.Mul(-0.5).Sub(d.halfLogDet).Sub(float64(d.event[0]) * halfLog2Pi))
}

// solve is (ZᵀZ)⁻¹ v.
func (d lowRankMultivariateNormalDist) solve(v, gram torch.Tensor) torch.Tensor {
	return rowsOver(rowsOver(v, gram.Transpose(), true), gram, false)
}

// Sample draws loc + W z + √D z', reparameterised.
func (d lowRankMultivariateNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.factor)
	shape := d.factor.Shape()
	z := torch.Must(src.Normal(join(sample, d.batch, shape[len(shape)-1:]), dtype, device))
	own := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	x := rowsTimes(z, d.factor.Transpose()).Add(own.Mul(d.root))
	return x.Add(d.loc)
}

// Mean is loc.
func (d lowRankMultivariateNormalDist) Mean() torch.Tensor {
	return expandTo(alike(d.loc, d.factor), join(d.batch, d.event))
}

// Variance is the diagonal of the covariance.
func (d lowRankMultivariateNormalDist) Variance() torch.Tensor {
	return d.spread(operand.SumLast(d.factor.Square(), 1).Add(d.diag))
}

// Covariance is the covariance matrix, of shape batch + [n, n].
func (d lowRankMultivariateNormalDist) Covariance() torch.Tensor {
	c := d.factor.MatMul(d.factor.Transpose()).Add(torch.Of(d.diag.T().MustDiagEmbed(0, -2, -1, false)))
	return expandTo(c, join(d.batch, d.event, d.event))
}

// Expand broadcasts the batch shape.
func (d lowRankMultivariateNormalDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}
