package dist

import (
	"cmp"
	"errors"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// multivariateNormalDist is the multivariate normal distribution; see [MultivariateNormal].
type multivariateNormalDist struct {
	base
	loc    torch.Tensor
	name   string       // of the matrix parameter
	given  torch.Tensor // the matrix parameter
	factor torch.Tensor // L, lower triangular
	// precision says that L·Lᵀ is the inverse of the covariance, not the covariance.
	precision bool
}

// MultivariateNormal is the normal distribution of vectors of length n with mean loc, a number or a tensor of shape
// [..., n], and covariance_matrix Σ, symmetric and positive definite, of shape [..., n, n]:
//
//	log p(x) = −(x − loc)ᵀ Σ⁻¹ (x − loc)/2 − (log det Σ)/2 − (n/2) log 2π
//
// Where Σ is not positive definite the density is NaN, and Validate says so.
func MultivariateNormal(loc, cov any) (made Distribution) {
	defer orMisfit(&made)
	d := newMultivariateNormal("MultivariateNormal", "covariance_matrix", loc, cov)
	d.factor = d.given.Cholesky()
	return d
}

// MultivariateNormalPrecision is [MultivariateNormal] with precision_matrix Σ⁻¹, which is never inverted.
func MultivariateNormalPrecision(loc, precision any) (made Distribution) {
	defer orMisfit(&made)
	d := newMultivariateNormal("MultivariateNormalPrecision", "precision_matrix", loc, precision)
	d.factor, d.precision = d.given.Cholesky(), true
	return d
}

// MultivariateNormalCholesky is [MultivariateNormal] with scale_tril L, the lower-triangular matrix with positive
// diagonal and L·Lᵀ = Σ. What is above its diagonal is not read.
func MultivariateNormalCholesky(loc, scaleTril any) (made Distribution) {
	defer orMisfit(&made)
	d := newMultivariateNormal("MultivariateNormalCholesky", "scale_tril", loc, scaleTril)
	d.factor = torch.Of(d.given.T().MustTril(0, false))
	return d
}

func newMultivariateNormal(family, name string, loc, matrix any) multivariateNormalDist {
	l := param(family, "loc", loc)
	m, batch, n, _ := matrixOf(family, name, matrix, true)
	d := multivariateNormalDist{loc: l, name: name, given: m}
	d.base = base{family: family, batch: broadcast(family, vectorBatch(family, "loc", l, n), batch), event: []int{n}}
	d.checkNumber("loc", l, finite)
	return d
}

// Support is all real vectors.
func (d multivariateNormalDist) Support() support.Support { return support.Real.Independent(1) }

// LogProb is the log density.
func (d multivariateNormalDist) LogProb(value torch.Tensor) torch.Tensor {
	x := expandTo(value, broadcast(d.family, value.Shape(), d.event))
	x = x.Sub(d.loc)
	logDet := logDiagonal(d.factor)
	if d.precision {
		x, logDet = rowsTimes(x, d.factor), logDet.Neg()
	} else {
		x = rowsOver(x, d.factor.Transpose(), true)
	}
	squares := operand.SumLast(x.Square(), 1)
	return d.full(squares.Mul(-0.5).Sub(logDet).Sub(float64(d.event[0]) * halfLog2Pi))
}

// Sample draws loc + L z, or loc + L⁻ᵀ z from a precision, reparameterised.
func (d multivariateNormalDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := like(d.given)
	z := torch.Must(src.Normal(join(sample, d.batch, d.event), dtype, device))
	if d.precision {
		z = rowsOver(z, d.factor, false)
	} else {
		z = rowsTimes(z, d.factor.Transpose())
	}
	return z.Add(d.loc)
}

// Mean is loc.
func (d multivariateNormalDist) Mean() torch.Tensor {
	return expandTo(alike(d.loc, d.given), join(d.batch, d.event))
}

// Variance is the diagonal of the covariance.
func (d multivariateNormalDist) Variance() torch.Tensor {
	rows := d.factor
	if d.precision {
		rows = d.inverseFactor()
	}
	return d.spread(operand.SumLast(rows.Square(), 1))
}

// inverseFactor is L⁻ᵀ.
func (d multivariateNormalDist) inverseFactor() torch.Tensor {
	dtype, device := like(d.given)
	return torch.Of(d.factor.T().MustLinalgSolveTriangular(ts.MustEye(int64(d.event[0]), dtype, device), false,
		true, false,
		false)).
		Transpose()
}

// Covariance is the covariance matrix, of shape batch + [n, n].
func (d multivariateNormalDist) Covariance() torch.Tensor {
	f := d.factor
	if d.precision {
		f = d.inverseFactor()
	}
	return expandTo(f.MatMul(f.Transpose()), join(d.batch, d.event, d.event))
}

// Expand broadcasts the batch shape.
func (d multivariateNormalDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks loc and the matrix.
func (d multivariateNormalDist) Validate() error {
	matrix, set := d.given, support.PositiveDefinite
	if d.name == "scale_tril" {
		matrix, set = d.factor, support.LowerCholesky
	}
	err := d.validateIn(d.name, matrix, set)
	var wrong *Error
	if errors.As(err, &wrong) && d.name != "scale_tril" && support.LowerCholesky.Check(matrix.T()) == nil {
		wrong.Allowed += "; a Cholesky factor belongs into MultivariateNormalCholesky"
	}
	return cmp.Or(d.validate("loc", d.loc, finite), err)
}

// Params are the parameters by name.
func (d multivariateNormalDist) Params() map[string]any {
	return map[string]any{"loc": d.loc, d.name: d.given}
}
