package main

import "fmt"

// heek are the settings of Heek and Kalchbrenner (2019) on CIFAR-10. Cycle and CollectAfter are in epochs. The largest
// move, which the limit of the momenta makes, is always 10/3 of AverageMove.
type heek struct {
	Layers, BaseFilters, TrainingImages, TestImages, BatchSize int
	Epochs, Cycle, CollectAfter, SGDEpochs                     int
	AverageMove, StepMomentum                                  float64
}

var atmcCIFAR = heek{Layers: 56, BaseFilters: 32, TrainingImages: 50_000, TestImages: 10_000, BatchSize: 128,
	Epochs: 1000, Cycle: 50, CollectAfter: 150, SGDEpochs: 180, AverageMove: 0.0003, StepMomentum: 0.9}

// wenzel are the settings of Wenzel et al. (2020) for ResNet-20. Their SGD has Nesterov's momentum and steps that fall
// by a table. Here it has a cosine.
type wenzel struct {
	Layers, BaseFilters, TrainingImages, TestImages, BatchSize int
	LearningRate, Momentum, Temperature                        float64
	Epochs, SamplingStart, CycleLength, SGDEpochs, Seeds       int
	SGDMomentum                                                float64
}

var wenzelResNet = wenzel{Layers: 20, BaseFilters: 16, TrainingImages: 50_000, TestImages: 10_000, BatchSize: 128,
	LearningRate: 0.1, Momentum: 0.98, Temperature: 1, Epochs: 1500, SamplingStart: 150, CycleLength: 50, SGDEpochs: 200,
	Seeds: 3, SGDMomentum: 0.9}

// presets are the flags of each.
var presets = map[string]map[string]string{"atmc-cifar": atmcCIFAR.flags(), "wenzel-resnet": wenzelResNet.flags()}

func (h heek) flags() map[string]string {
	return texts(map[string]any{"net": plusPlus, "whole": true, "depth": h.Layers, "filters": h.BaseFilters,
		"images": h.TrainingImages, "tests": h.TestImages, "batch": h.BatchSize, "epochs": h.Epochs, "cycle": h.Cycle,
		"start": h.CollectAfter, "sgd-epochs": h.SGDEpochs, "move": h.AverageMove, "momentum": h.StepMomentum})
}

func (w wenzel) flags() map[string]string {
	return texts(map[string]any{"net": twenty, "norm": batchNorm, "whole": true, "depth": w.Layers,
		"filters": w.BaseFilters, "images": w.TrainingImages, "tests": w.TestImages, "batch": w.BatchSize,
		"epochs": w.Epochs, "cycle": w.CycleLength, "start": w.SamplingStart, "sgd-epochs": w.SGDEpochs,
		"lr": w.LearningRate, "momentum": w.SGDMomentum, "momentum-sghmc": w.Momentum, "temperature": w.Temperature,
		"prepared": true, "only": "SGD,SGHMC", "seeds": w.Seeds})
}

// texts are values as they are given on a command line.
func texts(values map[string]any) map[string]string {
	all := map[string]string{}
	for flag, v := range values {
		all[flag] = fmt.Sprint(v)
	}
	return all
}
