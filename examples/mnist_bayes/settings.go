package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// settings say what is computed and how long; they are part of what a stored cell must agree with.
type settings struct {
	Seed   uint64 `json:"seed"`
	Scored int    `json:"scored"` // test images that are scored

	Curves []curve `json:"curves"`

	Steps     int `json:"steps"`     // leapfrog steps of a trajectory; 100 in the paper
	Every     int `json:"every"`     // trajectories between swaps; 10 in the paper
	Minimise  int `json:"minimise"`  // steps of algorithm 3 from the start
	Warmup    int `json:"warmup"`    // trajectories of each replica
	Draws     int `json:"draws"`     // kept of each replica
	Thin      int `json:"thin"`      // trajectories for a draw
	Networks  int `json:"networks"`  // optimised networks of an ensemble
	Updates   int `json:"updates"`   // of Adam
	Evidences int `json:"evidences"` // seeds of the evidence; 28 in the paper
	// EvidenceData is the number of images that the evidence is of; 500 in the paper.
	EvidenceData int `json:"evidence_data"`
	Rungs        int `json:"rungs"`  // of the thermodynamic integration; 102 in the paper
	Moves        int `json:"moves"`  // trajectories on each rung, half of which count; 200 in the paper
	Fitted       int `json:"fitted"` // trajectories to which the reference is fitted; 1000 in the paper
}

// curve is a sweep over temperatures by replica exchange.
type curve struct {
	Network      string    `json:"network"`
	Data         int       `json:"data"`
	Temperatures []float64 `json:"temperatures"` // rising
}

// The three sizes: quick is a minute, to see it work; the default half an hour on two cores; full is the paper's.
func quickSettings(seed uint64) settings {
	ladder := hmc.GeometricLadder(0.1, 10, 3)
	return settings{Seed: seed, Scored: 200, Curves: []curve{{"M3", 50, ladder}, {"M3*", 50, ladder}},
		Steps: 10, Every: 2, Minimise: 100, Warmup: 20, Draws: 10, Thin: 1, Networks: 3, Updates: 200,
		Evidences: 2, EvidenceData: 50, Rungs: 6, Moves: 20, Fitted: 20}
}

func defaultSettings(seed uint64) settings {
	wide, narrow := hmc.GeometricLadder(0.01, 100, 13), hmc.GeometricLadder(math.Pow(10, -1.5), math.Pow(10, 1.5), 7)
	return settings{Seed: seed, Scored: 5000,
		Curves: []curve{{"M3", 50, wide}, {"M3*", 50, wide}, {"M3", 500, narrow}, {"M3*", 500, narrow}},
		Steps:  100, Every: 10, Minimise: 1000, Warmup: 150, Draws: 30, Thin: 10, Networks: 20, Updates: 2000,
		Evidences: 4, EvidenceData: 50, Rungs: 30, Moves: 60, Fitted: 300}
}

func fullSettings(seed uint64) settings {
	wide, narrow := hmc.GeometricLadder(0.01, 100, 112), hmc.GeometricLadder(math.Pow(10, -1.5), math.Pow(10, 1.5), 84)
	s := settings{Seed: seed, Scored: 70000, Steps: 100, Every: 10, Minimise: 1000, Warmup: 1000, Draws: 100, Thin: 10,
		Networks: 100, Updates: 10000, Evidences: 28, EvidenceData: 500, Rungs: 102, Moves: 200, Fitted: 1000}
	for _, n := range []int{50, 500, 5000} {
		s.Curves = append(s.Curves, curve{"M3", n, wide}, curve{"M3*", n, narrow})
	}
	return s
}
