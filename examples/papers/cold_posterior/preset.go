package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
)

// cnnLSTM is the network and the data of both papers, in their words.
type cnnLSTM struct {
	TrainingReviews, TestReviews, VocabularySize, SequenceLength       int
	EmbeddingSize, ConvolutionFilters, KernelSize, PoolSize, LSTMUnits int
}

// wenzel are the settings of Wenzel et al. (2020). Their samplers begin at random and warm up at T = 0. The temperature
// rises in the cycle before SamplingStart. Epochs, SamplingStart and CycleLength are in epochs.
type wenzel struct {
	Network                            cnnLSTM
	PriorVariance                      float64
	BatchSize                          int
	LearningRate, Momentum             float64
	Epochs, SamplingStart, CycleLength int
	PreconditionerBatches              int
	Temperatures                       []float64
	Seeds                              int
}

var wenzelTable2 = wenzel{
	Network:       cnnLSTM{20_000, 25_000, 20_000, 100, 128, 64, 5, 4, 70},
	PriorVariance: 1, BatchSize: 32, LearningRate: 0.1, Momentum: 0.98, Epochs: 500, SamplingStart: 50, CycleLength: 25,
	PreconditionerBatches: 32, Temperatures: []float64{1}, Seeds: 3,
}

// duffield are the settings of Duffield et al. (2025). The paper names neither the starts nor ε of AdamW, and here they
// are those of the example. Chains of SGHMC have Epochs, or ParallelEpochs where only their last states count.
type duffield struct {
	Network                         cnnLSTM
	PriorVariance                   float64
	BatchSize                       int
	LearningRate, WeightDecay       float64 // of AdamW
	MAPEpochs, VIEpochs, VISamples  int
	VIInitLogSD, LaplaceEpsilon     float64
	ParameterSamples, LogitSamples  int
	StepSize, Friction              float64 // ε and α of SGHMC
	Epochs, BurnIn, Thin, Samples   int     // BurnIn and Thin are in updates
	ParallelEpochs, EnsembleSize    int
	ParallelChains, EnsemblesScored int
	Temperatures                    []float64
	Seeds                           int
}

var duffieldIMDB = duffield{
	Network:       cnnLSTM{25_000, 25_000, 20_000, 100, 128, 64, 5, 4, 128},
	PriorVariance: 1.0 / 40, BatchSize: 32, LearningRate: 1e-3, WeightDecay: 1e-2, MAPEpochs: 30, VIEpochs: 30,
	VISamples: 1, VIInitLogSD: -3, LaplaceEpsilon: 1e-3, ParameterSamples: 50, LogitSamples: 10_000, StepSize: 0.1,
	Friction: 1, Epochs: 60, BurnIn: 20_000, Thin: 1000, Samples: 27, ParallelEpochs: 30, EnsembleSize: 15,
	ParallelChains: 35, EnsemblesScored: 5, Temperatures: []float64{0.03, 0.1, 0.3, 1, 3}, Seeds: 5,
}

// presets are the studies of the papers. That of parallel chains has one ensemble for each seed, where the paper draws
// five from its chains.
var presets = map[string]studySettings{
	"wenzel-table2":          wenzelTable2.study("sghmc", "sghmc-masses", "sghmc-cycles", "sghmc-both"),
	"wenzel-figure3":         wenzelFigure3.study("sghmc-both"),
	"duffield-imdb":          duffieldIMDB.study(),
	"duffield-imdb-parallel": duffieldIMDB.parallel(),
}

// wenzelFigure3 has the temperatures of the authors' code: four in each power of ten.
var wenzelFigure3 = func() wenzel {
	w := wenzelTable2
	w.Temperatures = nil
	for i := -16; i <= 0; i++ {
		w.Temperatures = append(w.Temperatures, math.Pow(10, float64(i)/4))
	}
	return w
}()

// study are the samplers of some files, from random starts, without modes and fits.
func (w wenzel) study(walks ...string) studySettings {
	epoch := int64(w.Network.TrainingReviews / w.BatchSize)
	return studySettings{Version: 3, Problem: "imdb", Train: w.Network.TrainingReviews, Tests: w.Network.TestReviews,
		LSTMUnits: int64(w.Network.LSTMUnits), Variance: w.PriorVariance, Batch: int64(w.BatchSize),
		Temperatures: w.Temperatures, Seeds: w.Seeds, Members: 1, Walks: walks, LR: w.LearningRate, Momentum: w.Momentum,
		Begin: int64(w.SamplingStart) * epoch, Cycle: int64(w.CycleLength) * epoch, MassEvery: epoch,
		MassBatches: int64(w.PreconditionerBatches), Draws: (w.Epochs - w.SamplingStart) / w.CycleLength}
}

// epoch has the batch that is not whole, as the counts of updates in the paper.
func (d duffield) epoch() int64 {
	return int64(math.Ceil(float64(d.Network.TrainingReviews) / float64(d.BatchSize)))
}

func (d duffield) study() studySettings {
	return studySettings{Version: 3, Problem: "imdb", Train: d.Network.TrainingReviews, Tests: d.Network.TestReviews,
		LSTMUnits: int64(d.Network.LSTMUnits), Variance: d.PriorVariance, Batch: int64(d.BatchSize),
		Temperatures: d.Temperatures, Seeds: d.Seeds, Members: 1, Walks: []string{"sghmc"},
		ModeUpdates: int64(d.MAPEpochs) * d.epoch(), ModeLR: d.LearningRate, ModeEps: 1e-5,
		FitUpdates: int64(d.VIEpochs) * d.epoch(), FitSamples: d.VISamples, FitScale: math.Exp(d.VIInitLogSD),
		Begin: int64(d.BurnIn - d.Thin), Cycle: int64(d.Thin), Draws: d.Samples,
		Published: &published{StepSize: d.StepSize, Friction: d.Friction, WeightDecay: d.WeightDecay,
			ParameterSamples: d.ParameterSamples, LogitSamples: d.LogitSamples, LaplaceEpsilon: d.LaplaceEpsilon}}
}

func (d duffield) parallel() studySettings {
	s := d.study()
	s.Members, s.Draws, s.ModeUpdates, s.FitUpdates = d.EnsembleSize, 1, 0, 0
	s.Begin = int64(d.ParallelEpochs)*d.epoch() - s.Cycle
	return s
}

// shortened has all lengths multiplied by a factor, so that the parts keep their proportions.
func (s studySettings) shortened(factor float64) studySettings {
	for _, n := range []*int64{&s.Begin, &s.Cycle, &s.ModeUpdates, &s.FitUpdates} {
		*n = int64(math.Ceil(float64(*n) * factor))
	}
	return s
}

// published are the settings of the preset with the changes of other flags.
func (o options) published() (s studySettings, err error) {
	if s, err = preset.Pick(o.preset, presets); err != nil {
		return s, err
	}
	s.Seed = o.seed
	if o.seeds > 0 {
		s.Seeds = o.seeds
	}
	if o.given["epochs"] {
		whole := (s.Begin + int64(s.Draws)*s.Cycle) / int64(s.Train/int(s.Batch))
		s = s.shortened(float64(o.epochs) / float64(whole))
	}
	if o.temperatures != "" {
		s.Temperatures = nil
		for _, text := range strings.Split(o.temperatures, ",") {
			t, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !(t > 0) {
				return s, fmt.Errorf("-temperatures is %q: it must be numbers above 0 with commas", o.temperatures)
			}
			s.Temperatures = append(s.Temperatures, t)
		}
	}
	return s, nil
}
