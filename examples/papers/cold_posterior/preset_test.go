package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/stretchr/testify/require"
)

// The presets have the figures of Wenzel et al. (2020) and of Duffield et al. (2025), field by field.
func TestPresetsEqualThePapers(t *testing.T) {
	const w, d, code = "appendix A, CNN-LSTM", "experiment on IMDB", "the authors' code"
	net := nn.CNNLSTM{Vocab: 20_000, Length: 100, Embedding: 128, Filters: 64, Kernel: 5, Pool: 4, Hidden: 70}
	require.NoError(t, preset.Compare(wenzelTable2, preset.Paper{"Network": {net, code}, "TrainingReviews": {20_000, w},
		"TestReviews": {25_000, w}, "BatchSize": {32, w}, "PriorVariance": {1.0, w}, "LearningRate": {0.1, w},
		"Momentum": {0.98, w}, "Epochs": {500, w}, "SamplingStart": {50, w}, "CycleLength": {25, w},
		"PreconditionerBatches": {32, "algorithm 4"}, "Seeds": {3, "table 2"}, "Temperatures": {[]float64{1}, "table 2"}}))
	net.Hidden = 128
	require.NoError(t, preset.Compare(duffieldIMDB, preset.Paper{"Network": {net, d}, "TrainingReviews": {25_000, d},
		"TestReviews": {25_000, d}, "BatchSize": {32, d}, "PriorVariance": {0.025, d}, "LearningRate": {0.001, d},
		"WeightDecay": {0.01, code}, "MAPEpochs": {30, d}, "VIEpochs": {30, d}, "VISamples": {1, d},
		"VIInitLogSD": {-3.0, d}, "LaplaceEpsilon": {0.001, code}, "ParameterSamples": {50, d}, "LogitSamples": {10_000, d},
		"StepSize": {0.1, d}, "Friction": {1.0, d}, "Epochs": {60, d}, "BurnIn": {20_000, d + ", misprinted"},
		"Thin": {1000, d}, "Samples": {27, d}, "ParallelEpochs": {30, d}, "ParallelChains": {35, d},
		"EnsembleSize": {15, d}, "Seeds": {5, d}, "Temperatures": {[]float64{0.03, 0.1, 0.3, 1, 3}, code}}))
}

// What follows from the figures: 18 draws of Wenzel et al., whose text says 7; and the updates 20,000 to 46,000 of
// Duffield et al. in 46,920. Each preset runs on made-up reviews, a few updates long, and has a row for each method.
func TestPresetsRun(t *testing.T) {
	w, d, p := presets["wenzel-table2"], presets["duffield-imdb"], presets["duffield-imdb-parallel"]
	require.Equal(t, []int{18, 500 * 625}, []int{w.Draws, w.Begin + w.Draws*w.Cycle})
	require.Equal(t, []int{20_000, 46_000}, []int{d.Begin + d.Cycle, d.Begin + d.Draws*d.Cycle})
	require.Equal(t, []int{23_460, 23_460, 23_460}, []int{d.ModeUpdates, d.FitUpdates, p.Begin + p.Cycle})
	kept := presets
	defer func() { presets = kept }()
	presets = map[string]studySettings{}
	for name, rows := range map[string]int{"wenzel-table2": 8, "wenzel-figure3": 2, "duffield-imdb": 11,
		"duffield-imdb-parallel": 2} {
		s := kept[name].shortened(1e-3)
		s.Members, s.Draws = min(s.Members, 2), min(s.Draws, 2)
		presets[name] = s
		var out bytes.Buffer
		require.NoError(t, run(context.Background(), &out, options{preset: name, dir: t.TempDir(), workers: 2, seed: 1,
			seeds: 1, temperatures: "1", epochs: 1, embedding: 0.05}), name)
		require.Equal(t, rows, bytes.Count(out.Bytes(), []byte("±"))/4, out.String())
	}
}
