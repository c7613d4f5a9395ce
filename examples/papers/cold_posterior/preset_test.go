package main

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/stretchr/testify/require"
)

// The presets have the figures of the papers, field by field. Wenzel et al. (2020) is "W", Duffield et al. (2025) "D".
func TestPresetsEqualThePapers(t *testing.T) {
	preset.Equals(t, wenzelTable2, preset.Paper{
		"Network":               {cnnLSTM{20_000, 25_000, 20_000, 100, 128, 64, 5, 4, 70}, "W, appendix A, CNN-LSTM; 70 units by the authors' code"},
		"PriorVariance":         {1.0, "W, appendix A: N(0, I)"},
		"BatchSize":             {32, "W, appendix A, CNN-LSTM"},
		"LearningRate":          {0.1, "W, appendix A, CNN-LSTM"},
		"Momentum":              {0.98, "W, appendix A, CNN-LSTM"},
		"Epochs":                {500, "W, appendix A, CNN-LSTM"},
		"SamplingStart":         {50, "W, appendix A, CNN-LSTM"},
		"CycleLength":           {25, "W, appendix A, CNN-LSTM"},
		"PreconditionerBatches": {32, "W, algorithm 4"},
		"Temperatures":          {[]float64{1}, "W, table 2"},
		"Seeds":                 {3, "W, table 2: errors over three runs"},
	})
	preset.Equals(t, duffieldIMDB, preset.Paper{
		"Network":          {cnnLSTM{25_000, 25_000, 20_000, 100, 128, 64, 5, 4, 128}, "D, experiment on IMDB"},
		"PriorVariance":    {1.0 / 40, "D, experiment on IMDB"},
		"BatchSize":        {32, "D, experiment on IMDB"},
		"LearningRate":     {1e-3, "D, experiment on IMDB"},
		"WeightDecay":      {1e-2, "the authors' code: the default of AdamW"},
		"MAPEpochs":        {30, "D, experiment on IMDB"},
		"VIEpochs":         {30, "D, experiment on IMDB"},
		"VISamples":        {1, "D, experiment on IMDB"},
		"VIInitLogSD":      {-3.0, "D, experiment on IMDB"},
		"LaplaceEpsilon":   {1e-3, "the authors' code, which adds no precision of the prior"},
		"ParameterSamples": {50, "D, experiment on IMDB"},
		"LogitSamples":     {10_000, "D, experiment on IMDB"},
		"StepSize":         {0.1, "D, experiment on IMDB"},
		"Friction":         {1.0, "D, experiment on IMDB"},
		"Epochs":           {60, "D, experiment on IMDB"},
		"BurnIn":           {20_000, "D, experiment on IMDB, printed as 20,000 thousand"},
		"Thin":             {1000, "D, experiment on IMDB"},
		"Samples":          {27, "D, experiment on IMDB"},
		"ParallelEpochs":   {30, "D, experiment on IMDB"},
		"EnsembleSize":     {15, "D, experiment on IMDB"},
		"ParallelChains":   {35, "D, experiment on IMDB"},
		"EnsemblesScored":  {5, "D, experiment on IMDB"},
		"Temperatures":     {[]float64{0.03, 0.1, 0.3, 1, 3}, "the authors' code"},
		"Seeds":            {5, "D, experiment on IMDB"},
	})
}

// What follows from the figures: the parameters of both networks, 18 draws of Wenzel et al. (their text says 7), and the
// updates 20,000 to 46,000 of the 46,920 of Duffield et al. In the terms of SGD their step is 0.01 with momentum 0.9.
func TestStudiesOfThePapers(t *testing.T) {
	for _, c := range []struct {
		name       string
		parameters int
	}{{"wenzel-table2", 2_638_966}, {"duffield-imdb", 2_700_098}} {
		net, err := nn.CNNLSTM{Hidden: presets[c.name].LSTMUnits}.Build()
		require.NoError(t, err)
		require.Equal(t, c.parameters, net.NumParams())
	}
	w := presets["wenzel-table2"]
	require.Equal(t, []int64{18, 500 * 625}, []int64{int64(w.Draws), w.Begin + int64(w.Draws)*w.Cycle})
	require.Len(t, w.walks(), 4)
	require.InDelta(t, 1e-4, wenzelFigure3.Temperatures[0], 1e-12)
	require.Len(t, wenzelFigure3.Temperatures, 17)
	d := presets["duffield-imdb"]
	require.Equal(t, []int64{20_000, 46_000}, []int64{d.Begin + d.Cycle, d.Begin + int64(d.Draws)*d.Cycle})
	require.Equal(t, []int64{23_460, 23_460}, []int64{d.ModeUpdates, d.FitUpdates})
	require.InDelta(t, 0.0498, d.FitScale, 1e-4)
	require.InDelta(t, 0.01, math.Pow(d.Published.StepSize, 2), 1e-12)
	p := presets["duffield-imdb-parallel"]
	require.Equal(t, int64(23_460), p.Begin+p.Cycle)
	short := w.shortened(0.01)
	require.Equal(t, []int64{313, 157}, []int64{short.Begin, short.Cycle})
}

// Each preset runs on made-up reviews, a few updates long, and prints a row for each of its methods.
func TestPresetsRun(t *testing.T) {
	kept := presets
	defer func() { presets = kept }()
	presets = map[string]studySettings{}
	for name, s := range kept {
		s = s.shortened(1e-3)
		s.Members, s.Draws = min(s.Members, 2), min(s.Draws, 2)
		presets[name] = s
	}
	for name, rows := range map[string]int{"wenzel-table2": 8, "wenzel-figure3": 2, "duffield-imdb": 11,
		"duffield-imdb-parallel": 2} {
		var out bytes.Buffer
		o := options{preset: name, dir: t.TempDir(), workers: 2, seed: 1, seeds: 1, temperatures: "1", epochs: 1,
			variance: 1, embedding: 0.05}
		require.NoError(t, run(context.Background(), &out, o), name)
		require.Equal(t, rows, bytes.Count(out.Bytes(), []byte("±"))/4, out.String())
	}
}
