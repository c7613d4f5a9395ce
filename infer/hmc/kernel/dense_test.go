package kernel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A covariance of fewer draws than twice the dimensions would be singular, or nearly, and the trajectories of the next
// window as deep as is allowed. Its diagonal stands in. On a standard normal law in 60 dimensions, where windows of 25
// and 50 draws are closed, no tree is then deeper than 6: 64 steps of at least 0.1 are more than the half period π that
// a trajectory needs at most.
func TestDenseMetricOfFewDraws(t *testing.T) {
	const d = 60
	variances := make([]float64, d)
	for i := range variances {
		variances[i] = 1
	}
	deepest, least := 0, 1.0
	_, err := Run(t.Context(), gaussian(variances...), Options{Chains: 1, Metric: Dense, Warmup: 300, Draws: 1,
		Record: func(_, i int, _ []float64, info Info) error {
			if info.Warmup && i >= 110 {
				deepest, least = max(deepest, info.Depth), min(least, info.StepSize)
			}
			return nil
		}})
	require.NoError(t, err)
	t.Log("deepest", deepest, "least step", least)
	assert.LessOrEqual(t, deepest, 6)
	for _, n := range []int{2, 2*d - 1, 2 * d} {
		m := newMass(Dense, d)
		s, x := newStream(1, 0), make([]float64, d)
		for range n {
			s.Norms(x)
			m.Add(x, x)
		}
		_, ok := m.Correlated(lowRankFisher{})
		assert.Equal(t, n >= 2*d, ok)
	}
}

// A matrix that no memory holds is an error before it is asked for.
func TestDenseMetricOfManyDimensions(t *testing.T) {
	err := Options{Metric: Dense}.Check(1e6)
	var field *FieldError
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "Metric", field.Field)
	assert.ErrorContains(t, err, "matrices of 1000000 x 1000000 for 4 chains take 128000 GB, more than 17: use LowRank")
	assert.NoError(t, Options{Metric: Dense}.Check(1000))
}
