package dist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What the vector and matrix families share. Vectors are rows: x·A stands for Aᵀ x.

// rowsTimes is x·A for vectors x, of shape [..., n], and A of shape [..., n, m].
func rowsTimes(x, a torch.Tensor) torch.Tensor {
	if len(a.Shape()) == 2 {
		return x.MatMul(a)
	}
	return x.Unsqueeze(-2).MatMul(a).Squeeze(-2)
}

// rowsOver is x·A⁻¹ for a triangular A.
func rowsOver(x, a torch.Tensor, upper bool) torch.Tensor {
	shape := x.Shape()
	if len(a.Shape()) == 2 {
		// One matrix for all vectors: one call, without a copy of the matrix for each.
		rows := x.Reshape(-1, shape[len(shape)-1])
		return torch.Of(a.T().MustLinalgSolveTriangular(rows.T(), upper, false, false, false)).Reshape(shape...)
	}
	return torch.Of(a.T().MustLinalgSolveTriangular(x.Unsqueeze(-2).T(), upper, false, false, false)).Squeeze(-2)
}

// logDiagonal is the sum of the logarithms of the diagonal: log |det| of a triangular matrix.
func logDiagonal(l torch.Tensor) torch.Tensor {
	return operand.SumLast(torch.Of(l.T().MustDiagonal(0, -2, -1, false)).Log(), 1)
}

// matrixOf is a parameter that has to be a tensor of matrices, n x n where square.
func matrixOf(family, name string, x any, square bool) (m torch.Tensor, batch []int, rows, columns int) {
	v := param(family, name, x)
	shape := v.Shape()
	k := len(shape)
	if k < 2 || square && shape[k-1] != shape[k-2] || shape[k-1] == 0 || shape[k-2] == 0 {
		kind := "of matrices"
		if square {
			kind = "of square matrices"
		}
		text := fmt.Sprintf("a tensor of shape %v", shape)
		if operand.IsNumber(v) {
			text = "a number"
		}
		panic(&Error{family, name, text, "a tensor " + kind + " is required"})
	}
	return v, shape[:k-2], shape[k-2], shape[k-1]
}

// vectorBatch is the batch shape of a parameter whose last dimension is n, or broadcasts to it.
func vectorBatch(family, name string, v torch.Tensor, n int) []int {
	shape := v.Shape()
	if len(shape) == 0 {
		return nil
	}
	if k := shape[len(shape)-1]; k != n && k != 1 {
		panic(&Error{family, name, fmt.Sprintf("a tensor of shape %v", shape),
			fmt.Sprintf("its last dimension must be %d, the size of the matrix", n)})
	}
	return shape[:len(shape)-1]
}

// validateIn checks the matrices of a parameter against a support.
func (b base) validateIn(name string, m torch.Tensor, s support.Support) error {
	err := s.Check(m.T())
	var outside *support.Error
	if errors.As(err, &outside) {
		return &Error{b.family, name, outside.Value + strings.TrimPrefix(outside.What, "the matrix"), outside.Allowed}
	}
	return err
}
