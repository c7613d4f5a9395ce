package evidence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	targets "github.com/kelvin-ppl/kelvin/internal/known"
)

type known = targets.Target

func gaussian(d int) known          { return targets.Gaussian(d) }
func mixture() known                { return targets.Mixture() }
func funnel(s float64, n int) known { return targets.Funnel(s, n) }

func program(t testing.TB, k known) infer.Program {
	t.Helper()
	p, err := k.Program()
	require.NoError(t, err)
	return p
}
