package main

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// NUTS on the model in the language against 60 000 draws of an independent sampler, whose Monte-Carlo error is about
// 0.0006 (the figures of infer/sgmcmc's test): means and standard deviations within four combined standard errors,
// beyond which one of the sixteen is in one of a thousand runs.
func TestNUTSFindsThePosterior(t *testing.T) {
	mean := []float64{0.3883, 1.0864, -0.2453, 0.0206, -0.1562, 0.5947, 0.3247, 0.1268}
	sd := []float64{0.1052, 0.1177, 0.0994, 0.1054, 0.1067, 0.1089, 0.0963, 0.1065}
	const error60000 = 0.0006
	data, names, err := readPima()
	require.NoError(t, err)
	program, err := ppl.Compile(regression, data)
	require.NoError(t, err)
	d, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1, Warmup: 500, Draws: 1500})
	require.NoError(t, err)
	m, err := d.Mean("w")
	require.NoError(t, err)
	s, err := d.SD("w")
	require.NoError(t, err)
	values, err := d.Values("w")
	require.NoError(t, err)
	for j := range mean {
		x := make([][]float64, len(values))
		for c, chain := range values {
			for _, w := range chain {
				x[c] = append(x[c], w[j])
			}
		}
		assert.InDelta(t, mean[j], m[j], 4*math.Hypot(error60000, diag.MCSEMean(x)), names[j])
		assert.InDelta(t, sd[j], s[j], 4*math.Hypot(error60000, diag.MCSESD(x)), names[j])
		assert.Less(t, diag.RHat(x), 1.01, names[j])
	}
	report, err := diag.Diagnose(d, diag.DiagnoseOptions{})
	require.NoError(t, err)
	assert.True(t, report.OK(), report.String())
}
