package dist

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// What the vector and matrix families share. Vectors are rows: x·A stands for Aᵀ x.

// cholesky is the Cholesky factor of symmetric matrices, and NaN where one is not positive definite: within a sampler such
// a matrix is a divergence, not an error.
func cholesky(m *ts.Tensor) *ts.Tensor {
	l, info := m.MustLinalgCholeskyEx(false, false, false)
	failed := info.MustNe(ts.FloatScalar(0), false).MustUnsqueeze(-1, false).MustUnsqueeze(-1, false)
	return l.MustMaskedFill(failed, ts.FloatScalar(math.NaN()), false)
}

// transposed swaps the last two dimensions.
func transposed(m *ts.Tensor) *ts.Tensor { return m.MustTranspose(-2, -1, false) }

// rowsTimes is x·A for vectors x, of shape [..., n], and A of shape [..., n, m].
func rowsTimes(x, a *ts.Tensor) *ts.Tensor {
	if len(ten(a).shape()) == 2 {
		return x.MustMatmul(a, false)
	}
	return x.MustUnsqueeze(-2, false).MustMatmul(a, false).MustSqueezeDim(-2, false)
}

// rowsOver is x·A⁻¹ for a triangular A.
func rowsOver(x, a *ts.Tensor, upper bool) *ts.Tensor {
	shape := ten(x).shape()
	if len(ten(a).shape()) == 2 {
		// One matrix for all vectors: one call, without a copy of the matrix for each.
		rows := x.MustReshape([]int64{-1, shape[len(shape)-1]}, false)
		return a.MustLinalgSolveTriangular(rows, upper, false, false, false).MustReshape(shape, false)
	}
	return a.MustLinalgSolveTriangular(x.MustUnsqueeze(-2, false), upper, false, false, false).MustSqueezeDim(-2, false)
}

// logDiagonal is the sum of the logarithms of the diagonal: log |det| of a triangular matrix.
func logDiagonal(l *ts.Tensor) *ts.Tensor {
	return sumLast(l.MustDiagonal(0, -2, -1, false).MustLog(false), 1)
}

// matrixOf is a parameter that has to be a tensor of matrices, n x n where square.
func matrixOf(family, name string, x any, square bool) (m *ts.Tensor, batch []int64, rows, columns int64) {
	v := param(family, name, x)
	shape := v.shape()
	k := len(shape)
	if k < 2 || square && shape[k-1] != shape[k-2] || shape[k-1] == 0 || shape[k-2] == 0 {
		kind := "of matrices"
		if square {
			kind = "of square matrices"
		}
		text := fmt.Sprintf("a tensor of shape %v", shape)
		if v.isNum() {
			text = "a number"
		}
		panic(&Error{family, name, text, "a tensor " + kind + " is required"})
	}
	return v.t, shape[:k-2], shape[k-2], shape[k-1]
}

// vectorBatch is the batch shape of a parameter whose last dimension is n, or broadcasts to it.
func vectorBatch(family, name string, v val, n int64) []int64 {
	shape := v.shape()
	if len(shape) == 0 {
		return nil
	}
	if k := shape[len(shape)-1]; k != n && k != 1 {
		panic(&Error{family, name, fmt.Sprintf("a tensor of shape %v", shape), fmt.Sprintf("its last dimension must be %d, the size of the matrix", n)})
	}
	return shape[:len(shape)-1]
}

// validateIn checks the matrices of a parameter against a support.
func (b base) validateIn(name string, m *ts.Tensor, s support.Support) error {
	err := s.Check(m)
	var outside *support.Error
	if errors.As(err, &outside) {
		return &Error{b.family, name, outside.Value + strings.TrimPrefix(outside.What, "the matrix"), outside.Allowed}
	}
	return err
}
