package main

import (
	"context"
	"io"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/stretchr/testify/require"
)

// The presets have the figures of Baldock and Marzari (2019).
func TestPresetsEqualThePaper(t *testing.T) {
	const table, code, ti = "table 1", "the authors' code", "the protocol of thermodynamic integration"
	paper := preset.Paper{"Network": {"M3", "figures 2 and 3"}, "TrainingImages": {5000, "figures 2 and 3"},
		"Replicas": {112, table}, "TMin": {0.01, table}, "TMax": {100.0, table}, "TrajectoriesPerSwap": {10, table},
		"Leapfrogs": {100, table}, "MinimisationSteps": {1000, code}, "BurnIn": {20 + 80, code},
		"OptimisedNetworks": {100, "figures 2 and 3: standard optimisation"}, "Repeats": {0, "none"},
		"LambdaPoints": {0, "none"}, "BurnInPerLambda": {0, "none"}, "SamplesPerLambda": {0, "none"}}
	preset.Equals(t, presets["baldock-d5000"], paper)
	paper["TrainingImages"] = [2]any{50, "figures 2 and 3"}
	preset.Equals(t, presets["baldock-d50"], paper)
	paper["Network"], paper["Replicas"] = [2]any{"M3*", "figure 4"}, [2]any{84, table}
	paper["TMin"], paper["TMax"] = [2]any{math.Pow(10, -1.5), table}, [2]any{math.Pow(10, 1.5), table}
	preset.Equals(t, presets["baldock-m3star-d50"], paper)
	for field := range paper {
		paper[field] = [2]any{0, "none"}
	}
	for field, value := range map[string]any{"Network": "", "TrainingImages": 500, "TMin": 0.0, "TMax": 0.0,
		"Leapfrogs": 100, "Repeats": 28, "LambdaPoints": 102, "BurnInPerLambda": 100, "SamplesPerLambda": 100} {
		paper[field] = [2]any{value, ti}
	}
	preset.Equals(t, presets["baldock-evidence"], paper)
	s := presets["baldock-d5000"].settings(options{replicas: 16})
	require.Len(t, s.Curves[0].Temperatures, 16)
	require.InDelta(t, 100, s.Curves[0].Temperatures[15], 1e-9)
	require.ErrorContains(t, run(context.Background(), io.Discard, options{replicas: 16}), "need -preset")
	require.ErrorContains(t, run(context.Background(), io.Discard, options{preset: "d5000"}), "it must be one of baldock-")
}
