package main

import (
	"context"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The tutorial shows what the program prints, and its claims hold: no mean is shifted, two rows are too
// wide, and what mends it does.
func TestTutorial(t *testing.T) {
	var printed strings.Builder
	ratios, err := table(context.Background(), &printed)
	require.NoError(t, err)
	for i, r := range ratios {
		t.Logf("%s: %+v", samplers[i].name, r)
		require.Less(t, r.mean, 4*r.meanError, "%s: means", samplers[i].name)
	}
	for i, r := range ratios {
		if i < 2 {
			require.Greater(t, r.sd-1, 4*r.sdError, samplers[i].name)
		} else {
			require.InDelta(t, 1, r.sd, 4*r.sdError, samplers[i].name)
		}
	}
	shown.Printed(t, "../../docs/tutorials/4-large-data.md", printed.String())
}

// The reference is right: with 20,000 data the posterior is normal, and NUTS on all of them agrees with it.
func TestReference(t *testing.T) {
	data, err := simulate()
	require.NoError(t, err)
	program, err := ppl.Compile(regression, data)
	require.NoError(t, err)
	reference, err := infer.Sample(context.Background(), program, laplace.DenseHessian{},
		infer.Options{Chains: 1, Draws: 20000, Seed: 1})
	require.NoError(t, err)
	exact, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Warmup: 300, Draws: 300, Seed: 1})
	require.NoError(t, err)
	r, err := compare(exact, reference)
	require.NoError(t, err)
	require.InDelta(t, 1, r.sd, 4*r.sdError)
	require.Less(t, r.mean, 4*r.meanError)
}
