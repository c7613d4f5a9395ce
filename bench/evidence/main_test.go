package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/models"
)

// The logistic regression of the Pima data (768 women, 8 features, standardised, no intercept, w ~ N(0, I)): four
// estimators agree within three of their joint standard errors.
func TestPima(t *testing.T) {
	x, y, err := pima.Read("../../" + pima.File)
	require.NoError(t, err)
	m, err := models.LogisticRegression{X: x, Y: y, NoIntercept: true}.Build()
	require.NoError(t, err)
	p, err := m.Compile()
	require.NoError(t, err)
	all, err := infertest.EvidenceEstimates(context.Background(), p, infer.Options{Chains: 4, Draws: 500})
	require.NoError(t, err)
	for name, r := range all {
		t.Logf("seen: Pima, %s: log Z = %.3f ± %.3f", name, r.LogZ, r.SE)
	}
	require.NoError(t, infertest.EvidenceAgree(all, 0.2))
}
