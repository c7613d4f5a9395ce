package diag

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Names of the statistics of a draw that samplers record and [Diagnose] reads. The names of CmdStan and of ArviZ are
// found too, see [StatName].
const (
	StatLP        = "lp"         // log density, up to a constant
	StatDivergent = "divergent"  // 1 where the trajectory diverged, else 0
	StatTreeDepth = "tree_depth" // doublings of the trajectory
	StatStepSize  = "step_size"  // of the leapfrog
	StatAccept    = "accept"     // mean acceptance probability of the trajectory
	StatEnergy    = "energy"     // the Hamiltonian of the draw
	StatLeapfrog  = "n_leapfrog" // leapfrog steps of the trajectory
	StatMaxDepth  = "max_depth"  // 1 where the trajectory was cut off at the largest depth, else 0
)

// aliases are other names of the statistics: CmdStan's, then ArviZ's.
var aliases = map[string][]string{
	StatLP:        {"lp__"},
	StatDivergent: {"divergent__", "diverging"},
	StatTreeDepth: {"treedepth__", "treedepth"},
	StatStepSize:  {"stepsize__", "stepsize"},
	StatAccept:    {"accept_stat__", "acceptance_rate"},
	StatEnergy:    {"energy__"},
	StatLeapfrog:  {"n_leapfrog__", "n_steps"},
	StatMaxDepth:  {"max_depth__", "reached_max_treedepth"},
}

// StatName is the name under which d holds a statistic, given by one of the constants above: that name, CmdStan's
// (divergent__), or ArviZ's (diverging). ok is false if d has none of them.
func StatName(d *draws.Draws, stat string) (name string, ok bool) {
	have := d.Stats()
	for _, name := range append([]string{stat}, aliases[stat]...) {
		if slices.Contains(have, name) {
			return name, true
		}
	}
	return "", false
}
