package evidence_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// replicas is thermodynamic integration of a run of replica exchange, with even and odd pairs or with random ones.
func replicas(random bool) estimator {
	return estimator{"replica exchange", func(p infer.Program, seed uint64) (*evidence.Result, error) {
		r, err := infer.Run(context.Background(), p, hmc.Exchange{Ladder: path.Power(20, 4), Path: &path.Path{}, Every: 1,
			Adapt: true, RandomPairs: random}, infer.Options{Seed: seed, Warmup: 300, Draws: 600})
		if err != nil {
			return nil, err
		}
		return evidence.FromExchange(r)
	}}
}

// The slopes that swaps see give the evidence in closed form.
func TestFromExchange(t *testing.T) {
	calibrated(t, infertest.EvidenceGaussian(10), replicas(false), 20)
	calibrated(t, infertest.EvidenceMixture(), replicas(true), 20)
}

func TestFromExchangeErrors(t *testing.T) {
	p := program(t, infertest.EvidenceGaussian(3))
	few := infer.Options{Chains: 2, Warmup: 50, Draws: 50}
	for want, m := range map[string]infer.Method{
		"not one of hmc.Exchange": hmc.NUTS{},
		"a Ladder from β = 0":     hmc.Exchange{Ladder: []float64{0.1, 1}, Path: &path.Path{}},
		"needs a Path":            hmc.Exchange{Ladder: []float64{1, 2}},
		"it must lead from 0":     hmc.Exchange{Ladder: []float64{0, 0.5}, Path: &path.Path{}, Every: 1},
	} {
		r, err := infer.Run(context.Background(), p, m, few)
		require.NoError(t, err)
		_, err = evidence.FromExchange(r)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, infer.ErrConfig)
	}
	_, err := evidence.FromExchange(nil)
	require.ErrorIs(t, err, infer.ErrConfig)
}
