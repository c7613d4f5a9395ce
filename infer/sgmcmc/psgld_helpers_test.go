package sgmcmc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
)

// goesWrong checks that the third update of a method fails with this error and leaves its state alone.
func goesWrong(t *testing.T, method infer.Method, name, text string) {
	t.Helper()
	q := newQuartic()
	transform := build(t, method, q.logPosterior)
	s, batch := begin[infer.State](t, transform, params(q.layout, spread(q.layout.Dim()), 0), 1), q.batch()
	for range 2 {
		s, _ = update(t, transform, s, batch)
	}
	before := values(s.Position().Flat)
	_, _, err := transform.Update(s, batch)
	require.Error(t, err)
	field(t, err, name, text)
	identical(t, before, values(s.Position().Flat), "the state")
}
