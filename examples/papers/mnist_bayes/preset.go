package main

import (
	"cmp"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// baldock are the settings of Baldock and Marzari (2019) for one figure. Repeats and what follows are of thermodynamic
// integration. The networks at minima are found by Adam, where the paper has its algorithm 3.
type baldock struct {
	Network                           string // "" for thermodynamic integration alone
	TrainingImages                    int
	Replicas                          int
	TMin, TMax                        float64
	TrajectoriesPerSwap, Leapfrogs    int
	MinimisationSteps, BurnIn         int // BurnIn is in trajectories
	OptimisedNetworks                 int
	Repeats, LambdaPoints             int
	BurnInPerLambda, SamplesPerLambda int
}

// figures23 are those of replica exchange with M3, and figure4 of M3*.
func figures23(images int) baldock {
	return baldock{Network: "M3", TrainingImages: images, Replicas: 112, TMin: 1e-2, TMax: 1e2, TrajectoriesPerSwap: 10,
		Leapfrogs: 100, MinimisationSteps: 1000, BurnIn: 100, OptimisedNetworks: 100}
}

func figure4(images int) baldock {
	b := figures23(images)
	b.Network, b.Replicas, b.TMin, b.TMax = "M3*", 84, math.Pow(10, -1.5), math.Pow(10, 1.5)
	return b
}

var presets = map[string]baldock{
	"baldock-d50": figures23(50), "baldock-d500": figures23(500), "baldock-d5000": figures23(5000),
	"baldock-m3star-d50": figure4(50), "baldock-m3star-d500": figure4(500), "baldock-m3star-d5000": figure4(5000),
	"baldock-evidence": {TrainingImages: 500, Leapfrogs: 100, Repeats: 28, LambdaPoints: 102, BurnInPerLambda: 100,
		SamplesPerLambda: 100},
}

// settings have 100 draws of each replica, one for each swap. All other images are scored.
func (b baldock) settings(o options) settings {
	s := settings{Seed: o.seed, Scored: 70_000, Steps: b.Leapfrogs, Every: b.TrajectoriesPerSwap,
		Minimise: b.MinimisationSteps, Thin: b.TrajectoriesPerSwap, Networks: b.OptimisedNetworks, Updates: 10_000,
		Evidences: b.Repeats, EvidenceData: b.TrainingImages, Rungs: b.LambdaPoints,
		Rounds: b.BurnInPerLambda + b.SamplesPerLambda}
	if b.Network != "" {
		s.Curves = []curve{{b.Network, b.TrainingImages, !o.bounce, o.bounce && b.Network == "M3",
			hmc.GeometricLadder(b.TMin, b.TMax, cmp.Or(o.replicas, b.Replicas)), b.BurnIn, 100}}
	}
	return s
}
