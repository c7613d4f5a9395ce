package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
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
	ctx, all := context.Background(), map[string]*evidence.Result{}
	for name, m := range map[string]infer.Method{"SMC": evidence.SMC{}, "TI": evidence.TI{}} {
		all[name], err = evidence.Run(ctx, p, m, infer.Options{Chains: 4, Draws: 500})
		require.NoError(t, err)
	}
	nuts, err := infer.Run(ctx, p, hmc.NUTS{}, infer.Options{})
	require.NoError(t, err)
	all["bridge"], err = evidence.Bridge(p, nuts.Unconstrained, evidence.BridgeOptions{})
	require.NoError(t, err)
	mode, err := infer.Run(ctx, p, laplace.DenseHessian{}, infer.Options{Chains: 1})
	require.NoError(t, err)
	all["Laplace"], err = evidence.Laplace(p, mode)
	require.NoError(t, err)
	for a, r := range all {
		t.Logf("seen: Pima, %s: log Z = %.3f ± %.3f", a, r.LogZ, r.SE)
		require.Less(t, r.SE, 0.2, a)
		for b, s := range all {
			_, se, err := evidence.BayesFactor(r, s)
			require.NoError(t, err)
			require.InDelta(t, r.LogZ, s.LogZ, 3*se, "%s and %s", a, b)
		}
	}
}
