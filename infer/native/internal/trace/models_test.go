package trace_test

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/models"
	"github.com/stretchr/testify/require"
)

func TestModels(t *testing.T) {
	all, err := models.All()
	require.NoError(t, err)
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			p, err := m.Compile()
			require.NoError(t, err)
			s := targetSource(p.Target(), p.Layout(), p.Batch())
			plan := compile(t, s)
			t.Logf("%d buffers, %d steps before, %d steps", len(plan.Buffers), len(plan.Prologue), len(plan.Steps))
			agreesEverywhere(t, s, plan, append(points(60, s.Dim, 0.5, 2), points(40, s.Dim, 3, 3)...))
		})
	}
}
