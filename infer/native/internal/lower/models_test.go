package lower_test

import (
	"math/rand/v2"
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

// A logistic regression of the size and the form of the one on the Pima data, on made-up data.
func TestLogisticRegression(t *testing.T) {
	const n, d = 768, 8
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([][]float64, n), make([]float64, n)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range x[i] {
			x[i][j] = rng.NormFloat64()
		}
		y[i] = float64(rng.IntN(2))
	}
	m, err := models.LogisticRegression{X: x, Y: y, NoIntercept: true}.Build()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	s := targetSource(p.Target(), p.Layout(), p.Batch())
	agreesEverywhere(t, s, compile(t, s), append(points(60, s.Dim, 0.5, 2), points(40, s.Dim, 30, 3)...))
}
