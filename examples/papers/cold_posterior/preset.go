package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// wenzel are the settings of Wenzel et al. (2020). Epochs, SamplingStart and CycleLength are in epochs. Samplers begin
// at random and are at T = 0 until the cycle before SamplingStart, in which the temperature rises.
type wenzel struct {
	Network                                 nn.CNNLSTM
	TrainingReviews, TestReviews, BatchSize int
	PriorVariance, LearningRate, Momentum   float64
	Epochs, SamplingStart, CycleLength      int
	PreconditionerBatches, Seeds            int
	Temperatures                            []float64
}

var wenzelTable2 = wenzel{Network: network(70), TrainingReviews: 20_000, TestReviews: 25_000, BatchSize: 32,
	PriorVariance: 1, LearningRate: 0.1, Momentum: 0.98, Epochs: 500, SamplingStart: 50, CycleLength: 25,
	PreconditionerBatches: 32, Seeds: 3, Temperatures: []float64{1}}

// duffield are the settings of Duffield et al. (2025). The rates are of AdamW, and StepSize and Friction are ε and α of
// SGHMC. BurnIn and Thin are in updates. The paper names no starts and no ε of AdamW: here they are the example's.
type duffield struct {
	Network                                      nn.CNNLSTM
	TrainingReviews, TestReviews, BatchSize      int
	PriorVariance, LearningRate, WeightDecay     float64
	MAPEpochs, VIEpochs, VISamples               int
	VIInitLogSD, LaplaceEpsilon                  float64
	ParameterSamples, LogitSamples               int
	StepSize, Friction                           float64
	Epochs, BurnIn, Thin, Samples                int
	ParallelEpochs, ParallelChains, EnsembleSize int
	Seeds                                        int
	Temperatures                                 []float64
}

var duffieldIMDB = duffield{Network: network(128), TrainingReviews: 25_000, TestReviews: 25_000, BatchSize: 32,
	PriorVariance: 1.0 / 40, LearningRate: 1e-3, WeightDecay: 1e-2, MAPEpochs: 30, VIEpochs: 30, VISamples: 1,
	VIInitLogSD: -3, LaplaceEpsilon: 1e-3, ParameterSamples: 50, LogitSamples: 10_000, StepSize: 0.1, Friction: 1,
	Epochs: 60, BurnIn: 20_000, Thin: 1000, Samples: 27, ParallelEpochs: 30, ParallelChains: 35, EnsembleSize: 15,
	Seeds: 5, Temperatures: []float64{0.03, 0.1, 0.3, 1, 3}}

func network(units int) nn.CNNLSTM {
	return nn.CNNLSTM{Vocab: 20_000, Length: 100, Embedding: 128, Filters: 64, Kernel: 5, Pool: 4, Hidden: units}
}

// presets are the studies of the papers. That of parallel chains has one ensemble for each seed, where the paper draws
// five from its chains.
var presets = map[string]studySettings{
	"wenzel-table2":          wenzelTable2.study("sghmc", "sghmc-masses", "sghmc-cycles", "sghmc-both"),
	"wenzel-figure3":         wenzelTable2.figure3(),
	"duffield-imdb":          duffieldIMDB.study(),
	"duffield-imdb-parallel": duffieldIMDB.parallel(),
}

// study are some samplers, without modes and fits.
func (w wenzel) study(walks ...string) studySettings {
	epoch := w.TrainingReviews / w.BatchSize
	return studySettings{Version: 3, Problem: "imdb", Train: w.TrainingReviews, Tests: w.TestReviews, Network: w.Network,
		Variance: w.PriorVariance, Batch: w.BatchSize, Temperatures: w.Temperatures, Seeds: w.Seeds, Members: 1,
		Walks: walks, LR: w.LearningRate, Momentum: w.Momentum, Begin: w.SamplingStart * epoch,
		Cycle: w.CycleLength * epoch, MassEvery: epoch, MassBatches: w.PreconditionerBatches,
		Draws: (w.Epochs - w.SamplingStart) / w.CycleLength}
}

// figure3 has the temperatures of the authors' code: four in each power of ten.
func (w wenzel) figure3() studySettings {
	w.Temperatures = nil
	for i := -16; i <= 0; i++ {
		w.Temperatures = append(w.Temperatures, math.Pow(10, float64(i)/4))
	}
	return w.study("sghmc-both")
}

// study has epochs with the batch that is not whole, as the counts of updates in the paper.
func (d duffield) study() studySettings {
	epoch := (d.TrainingReviews / d.BatchSize) + 1
	return studySettings{Version: 3, Problem: "imdb", Train: d.TrainingReviews, Tests: d.TestReviews, Network: d.Network,
		Variance: d.PriorVariance, Batch: d.BatchSize, Temperatures: d.Temperatures, Seeds: d.Seeds, Members: 1,
		Walks: []string{"sghmc"}, ModeUpdates: d.MAPEpochs * epoch, ModeLR: d.LearningRate, ModeEps: 1e-5,
		FitUpdates: d.VIEpochs * epoch, FitSamples: d.VISamples, FitScale: math.Exp(d.VIInitLogSD),
		Begin: d.BurnIn - d.Thin, Cycle: d.Thin, Draws: d.Samples, Published: &d}
}

func (d duffield) parallel() studySettings {
	s := d.study()
	s.Begin = s.ModeUpdates/d.MAPEpochs*d.ParallelEpochs - s.Cycle
	s.Members, s.Draws, s.ModeUpdates, s.FitUpdates = d.EnsembleSize, 1, 0, 0
	return s
}

// own is what Duffield et al. do in another way than this example: explicit SGHMC and fits from random starts, AdamW
// with a constant step, and Laplace approximations without the prior's precision.
func (s studySettings) own() duffield {
	if s.Published != nil {
		return *s.Published
	}
	return duffield{ParameterSamples: s.Draws, LogitSamples: 1000}
}

// shortened has all lengths multiplied by a factor.
func (s studySettings) shortened(factor float64) studySettings {
	for _, n := range []*int{&s.Begin, &s.Cycle, &s.ModeUpdates, &s.FitUpdates} {
		*n = int(math.Ceil(float64(*n) * factor))
	}
	return s
}

// published are the settings of the preset with the changes of other flags.
func (o options) published() (s studySettings, err error) {
	s, err = preset.Pick(o.preset, presets)
	s.Seed = o.seed
	if o.seeds > 0 {
		s.Seeds = o.seeds
	}
	if err == nil && o.given["epochs"] {
		whole := float64(s.Begin+s.Draws*s.Cycle) * float64(s.Batch) / float64(s.Train)
		s = s.shortened(float64(o.epochs) / whole)
	}
	if o.temperatures == "" {
		return s, err
	}
	s.Temperatures = nil
	for _, text := range strings.Split(o.temperatures, ",") {
		t, err := strconv.ParseFloat(text, 64)
		if err != nil || !(t > 0) {
			return s, fmt.Errorf("-temperatures is %q: it must be numbers above 0 with commas", o.temperatures)
		}
		s.Temperatures = append(s.Temperatures, t)
	}
	return s, err
}
