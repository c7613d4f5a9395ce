package main

import (
	"context"
	"io"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/stretchr/testify/require"
)

// The preset has the figures of Wenzel et al. (2020), and so have the data. The short one has as many draws, unthinned.
func TestPresetEqualsThePaper(t *testing.T) {
	const n = "appendix N"
	paper := preset.Paper{"Chains": {5, n}, "TestCases": {10_000, n}, "LeapfrogSteps": {100, n},
		"BurnIn": {5000, n}, "Draws": {25_000, n}, "Thin": {10, n}}
	require.NoError(t, preset.Compare(presets["hmc-sghmc"], paper))
	paper["Draws"], paper["Thin"] = [2]any{2500, n}, [2]any{1, "a tenth of the transitions"}
	require.NoError(t, preset.Compare(presets["hmc-sghmc-25"], paper))
	require.Equal(t, []int{5, 10, 3, 100}, []int{priorInputs, priorUnits, priorClasses, priorTrain})
	require.InDelta(t, 0.05, biasSD, 0)
	require.Equal(t, 2500, compared(options{preset: "hmc-sghmc", size: 1}, 2, 1, 1).Draws)
	require.ErrorContains(t, run(context.Background(), io.Discard, options{preset: "hmc-sghmc", size: 2, seeds: 1,
		workers: 1}), "leave out -quick and -size")
}
