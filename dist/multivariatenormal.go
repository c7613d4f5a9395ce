package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// MultivariateNormalDist is the multivariate normal distribution; see [MultivariateNormal].
type MultivariateNormalDist struct {
	base
	loc    val
	name   string     // of the matrix parameter
	given  *ts.Tensor // the matrix parameter
	factor *ts.Tensor // L, lower triangular
	// precision says that L·Lᵀ is the inverse of the covariance, not the covariance.
	precision bool
}

// MultivariateNormal is the normal distribution of vectors of length n with mean loc, a number or a tensor of shape
// [..., n], and covariance_matrix Σ, symmetric and positive definite, of shape [..., n, n]:
//
//	log p(x) = −(x − loc)ᵀ Σ⁻¹ (x − loc)/2 − (log det Σ)/2 − (n/2) log 2π
//
// Where Σ is not positive definite the density is NaN, and Validate says so.
func MultivariateNormal(loc, cov any) MultivariateNormalDist {
	d := newMultivariateNormal("MultivariateNormal", "covariance_matrix", loc, cov)
	d.factor = cholesky(d.given)
	return d
}

// MultivariateNormalPrecision is [MultivariateNormal] with precision_matrix Σ⁻¹, which is never inverted.
func MultivariateNormalPrecision(loc, precision any) MultivariateNormalDist {
	d := newMultivariateNormal("MultivariateNormalPrecision", "precision_matrix", loc, precision)
	d.factor, d.precision = cholesky(d.given), true
	return d
}

// MultivariateNormalCholesky is [MultivariateNormal] with scale_tril L, the lower-triangular matrix with positive diagonal
// and L·Lᵀ = Σ. What is above its diagonal is not read.
func MultivariateNormalCholesky(loc, scaleTril any) MultivariateNormalDist {
	d := newMultivariateNormal("MultivariateNormalCholesky", "scale_tril", loc, scaleTril)
	d.factor = d.given.MustTril(0, false)
	return d
}

func newMultivariateNormal(family, name string, loc, matrix any) MultivariateNormalDist {
	l := param(family, "loc", loc)
	m, batch, n, _ := matrixOf(family, name, matrix, true)
	d := MultivariateNormalDist{loc: l, name: name, given: m}
	d.base = base{family: family, batch: broadcast(family, vectorBatch(family, "loc", l, n), batch), event: []int64{n}}
	d.checkNumber("loc", l, finite)
	return d
}

// Support is all real vectors.
func (d MultivariateNormalDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d MultivariateNormalDist) LogProb(value *ts.Tensor) *ts.Tensor {
	x := expandTo(value, broadcast(d.family, ten(value).shape(), d.event))
	x = ten(x).sub(d.loc).t
	logDet := logDiagonal(d.factor)
	if d.precision {
		x, logDet = rowsTimes(x, d.factor), logDet.MustNeg(false)
	} else {
		x = rowsOver(x, transposed(d.factor), true)
	}
	squares := ten(sumLast(x.MustSquare(false), 1))
	return d.full(squares.mul(num(-0.5)).sub(ten(logDet)).sub(num(float64(d.event[0]) * halfLog2Pi)).t)
}

// Sample draws loc + L z, or loc + L⁻ᵀ z from a precision, reparameterised.
func (d MultivariateNormalDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	dtype, device := like(ten(d.given))
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	if d.precision {
		z = rowsOver(z, d.factor, false)
	} else {
		z = rowsTimes(z, transposed(d.factor))
	}
	return ten(z).add(d.loc).t
}

// Mean is loc.
func (d MultivariateNormalDist) Mean() *ts.Tensor {
	return expandTo(d.loc.tensorOf(like(ten(d.given))), join(d.batch, d.event))
}

// Variance is the diagonal of the covariance.
func (d MultivariateNormalDist) Variance() *ts.Tensor {
	rows := d.factor
	if d.precision {
		rows = d.inverseFactor()
	}
	return d.spread(ten(sumLast(rows.MustSquare(false), 1)))
}

// inverseFactor is L⁻ᵀ.
func (d MultivariateNormalDist) inverseFactor() *ts.Tensor {
	dtype, device := like(ten(d.given))
	return transposed(d.factor.MustLinalgSolveTriangular(ts.MustEye(d.event[0], dtype, device), false, true, false, false))
}

// Covariance is the covariance matrix, of shape batch + [n, n].
func (d MultivariateNormalDist) Covariance() *ts.Tensor {
	f := d.factor
	if d.precision {
		f = d.inverseFactor()
	}
	return expandTo(f.MustMatmul(transposed(f), false), join(d.batch, d.event, d.event))
}

// Expand broadcasts the batch shape.
func (d MultivariateNormalDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and the matrix.
func (d MultivariateNormalDist) Validate() error {
	matrix, set := d.given, support.PositiveDefinite
	if d.name == "scale_tril" {
		matrix, set = d.factor, support.LowerCholesky
	}
	return first(d.validate("loc", d.loc, finite), d.validateIn(d.name, matrix, set))
}

// Params are the parameters by name.
func (d MultivariateNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc.any(), d.name: d.given}
}
