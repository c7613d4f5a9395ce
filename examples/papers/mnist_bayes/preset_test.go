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
	const table, code, ti = "table 1", "the authors' code", "thermodynamic integration"
	exchange := func(network string, images, replicas int, lowest, highest float64) preset.Paper {
		return preset.Paper{"Network": {network, table}, "TrainingImages": {images, table}, "Replicas": {replicas, table},
			"TMin": {lowest, table}, "TMax": {highest, table}, "TrajectoriesPerSwap": {10, table}, "Leapfrogs": {100, table},
			"MinimisationSteps": {1000, code}, "BurnIn": {20 + 80, code}, "OptimisedNetworks": {100, "figure 2"},
			"Repeats": {0, ti}, "LambdaPoints": {0, ti}, "BurnInPerLambda": {0, ti}, "SamplesPerLambda": {0, ti}}
	}
	require.NoError(t, preset.Compare(presets["baldock-d500"], exchange("M3", 500, 112, 0.01, 100)))
	require.NoError(t, preset.Compare(presets["baldock-d5000"], exchange("M3", 5000, 112, 0.01, 100)))
	require.NoError(t, preset.Compare(presets["baldock-m3star-d50"], exchange("M3*", 50, 84, math.Pow(10, -1.5),
		math.Pow(10, 1.5))))
	weighed := preset.Paper{"Network": {"", ti}, "TrainingImages": {500, ti}, "Leapfrogs": {100, ti}, "Repeats": {28, ti},
		"LambdaPoints": {102, ti}, "BurnInPerLambda": {100, ti}, "SamplesPerLambda": {100, ti}, "TMin": {0.0, ti},
		"TMax": {0.0, ti}}
	for _, field := range []string{"Replicas", "TrajectoriesPerSwap", "MinimisationSteps", "BurnIn", "OptimisedNetworks"} {
		weighed[field] = [2]any{0, ti}
	}
	require.NoError(t, preset.Compare(presets["baldock-evidence"], weighed))
	for _, name := range []string{"baldock-d50", "baldock-evidence"} { // the parts that a preset lacks are not missed
		o := options{dir: t.TempDir(), workers: 2, replicas: 3, seed: 1}
		s, short := presets[name].settings(o), tiny()
		s.Scored, s.Steps, s.Every, s.Minimise, s.Thin, s.Networks, s.Updates = 50, 2, 1, 2, 1, 2, 5
		s.Evidences, s.EvidenceData, s.Rungs, s.Rounds = min(s.Evidences, 1), 50, short.Rungs, short.Rounds
		for i := range s.Curves {
			s.Curves[i].Warmup, s.Curves[i].Draws = 8, 8
		}
		r, err := compute(context.Background(), s, o)
		require.NoError(t, err)
		require.NoError(t, r.draw(o.dir))
		require.NoError(t, r.print(io.Discard, o.dir))
	}
	require.Len(t, presets["baldock-d5000"].settings(options{replicas: 16}).Curves[0].Temperatures, 16)
	require.ErrorContains(t, run(context.Background(), io.Discard, options{replicas: 16}), "need -preset")
}
