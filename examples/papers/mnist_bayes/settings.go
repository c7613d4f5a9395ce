package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// settings say what is computed and how long; they are part of what a stored cell must agree with.
type settings struct {
	Seed   uint64 `json:"seed"`
	Scored int    `json:"scored"` // test images that are scored

	Curves []curve `json:"curves"`

	Steps     int `json:"steps"`     // leapfrog steps of a trajectory; 100 in the paper
	Every     int `json:"every"`     // trajectories between swaps; 10 in the paper
	Thin      int `json:"thin"`      // trajectories for a draw
	Minimise  int `json:"minimise"`  // steps of algorithm 3 from the start
	Networks  int `json:"networks"`  // optimised networks of an ensemble
	Updates   int `json:"updates"`   // of Adam
	Evidences int `json:"evidences"` // seeds of the evidence; 28 in the paper
	// EvidenceData is the number of images that the evidence is of; 500 in the paper.
	EvidenceData int `json:"evidence_data"`
	Rungs        int `json:"rungs"`  // of the thermodynamic integration; 102 in the paper
	Rounds       int `json:"rounds"` // trajectories on each rung, half of which count; 200 in the paper
}

// curve is a sweep over temperatures by replica exchange.
type curve struct {
	Network string `json:"network"`
	Data    int    `json:"data"`
	// Refused is the sampler of the paper: it starts near 0, refuses a trajectory that ends outside of the walls, finds
	// step sizes by trials, and swaps pairs at random. Otherwise trajectories bounce from the walls.
	Refused bool `json:"refused"`
	// Filled starts at a draw of the prior, so that the box is filled from the first.
	Filled       bool      `json:"filled"`
	Temperatures []float64 `json:"temperatures"` // rising
	Warmup       int       `json:"warmup"`       // trajectories of each replica
	Draws        int       `json:"draws"`        // kept of each replica
}

// name is what tables and pictures call it.
func (c curve) name() string {
	if c.Refused {
		return fmt.Sprintf("%s, D%d, refused at the walls", c.Network, c.Data)
	}
	return fmt.Sprintf("%s, D%d", c.Network, c.Data)
}

// The two sizes: quick is a minute, to see it work; the default less than half an hour on two cores. Those of the paper
// are presets.
func quickSettings(seed uint64) settings {
	ladder := hmc.GeometricLadder(0.1, 10, 3)
	return settings{Seed: seed, Scored: 200,
		Curves: []curve{{"M3", 50, false, true, ladder, 40, 10}, {"M3*", 50, true, false, ladder, 20, 10}},
		Steps:  10, Every: 1, Minimise: 100, Thin: 1, Networks: 3, Updates: 200, Evidences: 2, EvidenceData: 50, Rungs: 6,
		Rounds: 20}
}

// The rungs are so near to each other that of M3 on 50 images about half of the swaps are accepted; the loss of 500
// images fluctuates ten times as much, so that its ladder is shorter. The network M3* is not started from a draw
// of its prior, at which the loss has no gradient.
func defaultSettings(seed uint64) settings {
	return settings{Seed: seed, Scored: 2000,
		Curves: []curve{
			{"M3", 50, false, true, hmc.GeometricLadder(0.01, 100, 40), 150, 40},
			{"M3*", 50, false, false, hmc.GeometricLadder(0.03, 30, 24), 100, 20},
			{"M3", 50, true, false, hmc.GeometricLadder(0.01, 100, 16), 50, 20},
			{"M3", 500, false, true, hmc.GeometricLadder(0.3, 30, 32), 60, 12},
			{"M3*", 500, false, false, hmc.GeometricLadder(0.1, 10, 16), 40, 8}},
		Steps: 25, Every: 1, Minimise: 500, Thin: 5, Networks: 10, Updates: 1000, Evidences: 3, EvidenceData: 50, Rungs: 30,
		Rounds: 60}
}
