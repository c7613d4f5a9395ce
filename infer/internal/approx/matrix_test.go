package approx_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

var vec = infertest.Vector

func TestCholesky(t *testing.T) {
	l, err := approx.Cholesky("the matrix", torch.Of(vec([]float64{4, 2, 2, 5}, 2, 2)), "")
	require.NoError(t, err)
	infertest.Within(t, []float64{2, 0, 1, 2}, infertest.Values(l.T()), 1e-15, "factor")
	_, err = approx.Cholesky("the matrix", torch.Of(vec([]float64{1, 0, 0, 1, 1, 2, 2, 1}, 2, 2, 2)), "take another")
	assert.EqualError(t, err, "the matrix is not positive definite, its smallest eigenvalue is -1: take another")
	assert.ErrorIs(t, err, curvature.ErrIndefinite)
	_, err = approx.Cholesky("the matrix", torch.Of(vec([]float64{math.NaN(), 2, 2, 5}, 2, 2)), "")
	assert.EqualError(t, err, "the matrix has elements that are not finite: not finite")
	assert.ErrorIs(t, err, infer.ErrNonFinite)

	assert.NoError(t, approx.CheckSymmetric("laplace.KFAC", "Prior", torch.Of(vec([]float64{1e7, 2, 3, 1}, 2, 2))),
		"rounding")
	assert.EqualError(t, approx.CheckSymmetric("laplace.KFAC", "Prior", torch.Of(vec([]float64{1, 2, 3, 1}, 2, 2))),
		"laplace.KFAC: Prior is not symmetric: elements differ from their mirror images by up to 1: it must be symmetric")
}
