package evidence_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// The mean of Z is exact, however few the particles are: what moves a particle does not depend on it.
func TestUnbiased(t *testing.T) {
	const runs = 200
	k := infertest.EvidenceGaussian(10)
	p := program(t, k)
	for name, m := range map[string]infer.Method{"SMC": evidence.SMC{}, "AIS": evidence.AIS{ESS: 0.98},
		"SMC, conditional": evidence.SMC{Conditional: true, ESS: 0.95}} {
		var ratios []float64
		for seed := range runs {
			r, err := evidence.Run(context.Background(), p, m, infer.Options{Seed: uint64(seed), Chains: 4, Draws: 25})
			require.NoError(t, err)
			ratios = append(ratios, math.Exp(r.LogZ-k.LogZ))
		}
		mean, square := 0.0, 0.0
		for _, z := range ratios {
			mean += z / runs
		}
		for _, z := range ratios {
			square += (z - mean) * (z - mean) / (runs - 1)
		}
		se := math.Sqrt(square / runs)
		t.Logf("seen: %s, the mean of Z is %.3f ± %.3f of the exact one", name, mean, se)
		require.InDelta(t, 1, mean, 4*se, name)
		require.Less(t, se, 0.05, "%s: the largest weights decide", name)
	}
}
