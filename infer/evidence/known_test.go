package evidence_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// program is a target as what is fitted.
func program(t testing.TB, k infertest.Evidence) infer.Program {
	t.Helper()
	p, err := k.Program()
	require.NoError(t, err)
	return p
}

// estimator makes an estimate of a known evidence with a seed.
type estimator struct {
	name string
	run  func(p infer.Program, seed uint64) (*evidence.Result, error)
}

// walker is a method that walks a path.
func walker(name string, m infer.Method) estimator {
	return estimator{name, func(p infer.Program, seed uint64) (*evidence.Result, error) {
		return evidence.Run(context.Background(), p, m, infer.Options{Seed: seed})
	}}
}

// bridged is a bridge from so many draws of each chain of a method, 0 for its default.
func bridged(m infer.Method, draws int) estimator {
	return estimator{"bridge", func(p infer.Program, seed uint64) (*evidence.Result, error) {
		r, err := infer.Run(context.Background(), p, m, infer.Options{Seed: seed, Draws: draws})
		if err != nil {
			return nil, err
		}
		return evidence.Bridge(p, r.Unconstrained, evidence.BridgeOptions{Seed: seed})
	}}
}

// calibrated makes estimates with many seeds. All but few must be within three standard errors of the exact value, and
// with 20 seeds their spread must be within a factor 1.5 of the mean standard error: the spread of 20 normal numbers is
// known to 16 %.
func calibrated(t *testing.T, k infertest.Evidence, e estimator, seeds int) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d/%s", k.Name, k.Dim, e.name), func(t *testing.T) {
		p := program(t, k)
		inside, sum, square, se := 0, 0.0, 0.0, 0.0
		var off []float64
		for seed := range seeds {
			r, err := e.run(p, uint64(seed))
			require.NoError(t, err)
			d := r.LogZ - k.LogZ
			if math.Abs(d) <= 3*r.SE {
				inside++
			}
			off = append(off, d)
			sum += d / float64(seeds)
			se += r.SE / float64(seeds)
		}
		for _, d := range off {
			square += (d - sum) * (d - sum) / float64(seeds-1)
		}
		t.Logf("seen: %s of %d dimensions, %s: mean error %.4f, spread %.4f, mean standard error %.4f, %d of %d within 3",
			k.Name, k.Dim, e.name, sum, math.Sqrt(square), se, inside, seeds)
		require.GreaterOrEqual(t, inside, seeds-seeds/10, "%.3v", off)
		if seeds >= 20 {
			ratio := math.Sqrt(square) / se
			require.True(t, ratio > 1/1.5 && ratio < 1.5, "the spread is %.3g of the standard error", ratio)
		}
	})
}

// The estimators against log Z in closed form, three seeds each; the slow suite has twenty. The bridge takes draws of
// NUTS where there is one mode, and those of TI for the mixture and the funnel.
func TestKnownEvidence(t *testing.T) {
	testkit.Long(t)
	const seeds = 3
	smc, ti := walker("SMC", evidence.SMC{}), walker("TI", evidence.TI{})
	for _, k := range []infertest.Evidence{infertest.EvidenceGaussian(10), infertest.EvidenceMixture()} {
		calibrated(t, k, smc, seeds)
		calibrated(t, k, ti, seeds)
		calibrated(t, k, walker("AIS", evidence.AIS{}), seeds)
	}
	calibrated(t, infertest.EvidenceGaussian(10), bridged(hmc.NUTS{}, 0), seeds)
	calibrated(t, infertest.EvidenceMixture(), bridged(evidence.TI{}, 0), seeds)
}
