package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// methods are the ways to the posterior.
var methods = map[string]infer.Method{"nuts": hmc.NUTS{}, "mams": hmc.MAMS{}, "vi": vi.Dense{}, "meanfield": vi.Diag{},
	"laplace": laplace.DenseHessian{}, "pathfinder": pathfinder.Pathfinder{}}

func methodNames() string { return strings.Join(slices.Sorted(maps.Keys(methods)), ", ") }

// method is that of a fit, with its options.
func (s *saved) method() infer.Method {
	if s.TargetAccept != 0 { // of nuts alone
		return hmc.NUTS{TargetAccept: s.TargetAccept}
	}
	return methods[s.Method]
}

// options are those of the run.
func (s *saved) options() infer.Options {
	return infer.Options{Chains: s.Chains, Warmup: s.Warmup, Draws: s.Draws, Seed: s.Seed}
}
