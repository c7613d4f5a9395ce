package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/stretchr/testify/require"
)

// The presets have the figures of the papers: Heek and Kalchbrenner (2019), "H", and Wenzel et al. (2020), "W".
func TestPresetsEqualThePapers(t *testing.T) {
	const h, w, code = "H, experiments on CIFAR-10", "W, appendix A, ResNet-20", "the authors' code"
	require.NoError(t, preset.Compare(atmcCIFAR, preset.Paper{
		"Layers": {56, h}, "BaseFilters": {32, h + ": twice the usual 16"}, "TrainingImages": {50_000, "CIFAR-10"},
		"TestImages": {10_000, "CIFAR-10"}, "BatchSize": {128, h}, "Epochs": {1000, h}, "Cycle": {50, h},
		"CollectAfter": {150, h}, "SGDEpochs": {180, h}, "AverageMove": {0.0003, "H: m = (0.0003/h)^-2"},
		"StepMomentum": {0.9, "H: D = -log(0.9)/h"},
	}))
	require.NoError(t, preset.Compare(wenzelResNet, preset.Paper{
		"Layers": {20, w}, "BaseFilters": {16, w + ": that of Keras"}, "TrainingImages": {50_000, "CIFAR-10"},
		"TestImages": {10_000, "CIFAR-10"}, "BatchSize": {128, w}, "LearningRate": {0.1, w}, "Momentum": {0.98, w},
		"Temperature": {1.0, "W, table 1"}, "Epochs": {1500, w}, "SamplingStart": {150, w}, "CycleLength": {50, w},
		"SGDEpochs": {200, w}, "Seeds": {3, code}, "SGDMomentum": {0.9, w},
	}))
	require.Equal(t, 27, (wenzelResNet.Epochs-wenzelResNet.SamplingStart)/wenzelResNet.CycleLength, "networks there")
}

// Masses, a rising temperature and a start give the networks of the cycles after it. The learning rate of 20,000 images
// at the paper's move is 0.0018.
func TestPrepared(t *testing.T) {
	o := testOptions(t.TempDir())
	s := &o.settings
	s.Epochs, s.Cycle, s.Start, s.SGDEpochs, s.Temperature, s.Prepared, s.Only = 8, 2, 4, 3, 0.1, true, "SGD,SGHMC"
	o.move = 0.0003
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out, o))
	var sum summary
	require.NoError(t, json.Unmarshal(out.Bytes(), &sum))
	require.Equal(t, []int{1, 2}, []int{sum.Predictive[0].Networks, sum.Predictive[1].Networks})
	require.InDelta(t, 0.0018*160/20_000, sum.Settings.LR["SGHMC"], 1e-12)
	require.Empty(t, sum.Claims)
	s.Start = 3
	require.ErrorContains(t, run(context.Background(), &out, o), "-start is 3: it must be a multiple of -cycle")
}
