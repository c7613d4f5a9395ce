// Package hook lets the rooms below infer/hmc make methods of its transform, without names that users see.
package hook

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// Method is a method with a kernel of its own.
type Method struct {
	Name                  string
	Options               kernel.Options
	StepSize, Temperature infer.Schedule
	Warmup                int
}

// Build binds a method to a target. Package hmc, which the rooms import, sets it.
var Build func(target infer.Target, m Method) (infer.Transform, error)
