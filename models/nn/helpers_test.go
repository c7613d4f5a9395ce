package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/models/nn/internal/nntest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The helpers of the tests of layers, by short names.
var (
	values  = nntest.Values
	shape   = nntest.Shape
	normals = nntest.Normals
	closeTo = nntest.CloseTo
	do      = nntest.Do
	build   = nntest.Build
	point   = nntest.Point
	row     = nntest.Row
	sites   = nntest.Sites
	score   = nntest.Score
	tensor  = nntest.Tensor
)

func must[T any](v T, err error) T { return nntest.Must(v, err) }

// failing is the error of f, which must panic with one that a scope returns.
func failing(t *testing.T, f func()) error {
	t.Helper()
	err := torch.Do(func(*torch.Scope) error { f(); return nil })
	require.Error(t, err)
	return err
}

// assertMoments checks mean 0 and a standard deviation within four standard errors; kurtosis is that of the law.
func assertMoments(t *testing.T, v []float64, sd, kurtosis float64, what string) {
	t.Helper()
	var sum, squares float64
	for _, x := range v {
		sum += x
		squares += x * x
	}
	n := float64(len(v))
	assert.InDelta(t, 0, sum/n, 4*sd/math.Sqrt(n), "%s: mean", what)
	assert.InDelta(t, sd*sd, squares/n, 4*sd*sd*math.Sqrt((kurtosis-1)/n), "%s: variance", what)
}
