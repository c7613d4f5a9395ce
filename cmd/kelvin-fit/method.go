package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// method is a way to the posterior: its value, and the same in Go, with the path of its package.
type method struct {
	of         infer.Method
	code, path string
}

// methods are those of kelvin fit.
var methods = map[string]method{
	"nuts":       {hmc.NUTS{}, "hmc.NUTS{}", "infer/hmc"},
	"mams":       {hmc.MAMS{}, "hmc.MAMS{}", "infer/hmc"},
	"vi":         {vi.Dense{}, "vi.Dense{}", "infer/vi"},
	"meanfield":  {vi.Diag{}, "vi.Diag{}", "infer/vi"},
	"laplace":    {laplace.DenseHessian{}, "laplace.DenseHessian{}", "infer/laplace"},
	"pathfinder": {pathfinder.Pathfinder{}, "pathfinder.Pathfinder{}", "infer/pathfinder"},
}

// method is the method of a fit, with its options.
func (s *saved) method() method {
	m := methods[s.Method]
	if s.TargetAccept != 0 { // of nuts alone
		m.of, m.code = hmc.NUTS{TargetAccept: s.TargetAccept}, fmt.Sprintf("hmc.NUTS{TargetAccept: %g}", s.TargetAccept)
	}
	return m
}

func methodNames() string { return strings.Join(slices.Sorted(maps.Keys(methods)), ", ") }
