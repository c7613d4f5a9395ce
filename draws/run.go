package draws

import (
	"maps"
	"slices"
)

// Names of the statistics of a draw. Every method of inference writes what it measures under these names, and
// diagnostics read them.
const (
	StatLP          = "lp"          // log density of the draw, up to a constant, not divided by T
	StatGradNorm    = "grad_norm"   // Euclidean norm of the gradient of the log posterior
	StatHeld        = "held"        // 1 where an update was refused because it was not finite, else 0
	StatAccept      = "accept"      // mean acceptance probability of the trajectory
	StatStepSize    = "step_size"   // of the leapfrog
	StatTreeDepth   = "tree_depth"  // doublings of NUTS's trajectory
	StatLeapfrog    = "n_leapfrog"  // leapfrog steps of the trajectory, and so gradients
	StatDivergent   = "divergent"   // 1 where the trajectory of HMC or NUTS diverged, else 0
	StatEnergy      = "energy"      // the Hamiltonian
	StatMaxDepth    = "max_depth"   // 1 where the largest tree depth cut the trajectory off, else 0
	StatTemperature = "temperature" // T of the draw, where it changes from draw to draw
	StatNELBO       = "nelbo"       // negative evidence lower bound
)

// Names of attributes; see [Draws.SetAttr].
const (
	AttrMethod      = "method"      // the method's name, such as "hmc.NUTS"
	AttrTemperature = "temperature" // T, a number as strconv.ParseFloat reads it; 1 is the Bayes posterior
)

// Note is what a run found out about itself, such as a fit that did not converge. Package diag
// reports notes as findings.
type Note struct {
	// Kind names the sort of note in one word of lower-case letters and underscores, such as "not_converged".
	Kind string
	// Serious is true where figures from the draws can be wrong, false where they are only imprecise.
	Serious bool
	// Text says what was found. Advice says what to do about it and names fields as the user writes them.
	Text, Advice string
}

// Attrs is a copy of the attributes.
func (d *Draws) Attrs() map[string]string {
	attrs := make(map[string]string, len(d.attrs))
	maps.Copy(attrs, d.attrs)
	return attrs
}

// SetAttr sets an attribute of the run that made the draws: which method, which temperature. An empty value removes the
// attribute. It excludes all other use of d at the same time.
func (d *Draws) SetAttr(key, value string) {
	if value == "" {
		delete(d.attrs, key)
		return
	}
	if d.attrs == nil {
		d.attrs = map[string]string{}
	}
	d.attrs[key] = value
}

// Notes is a copy of the notes, in the order in which they were added.
func (d *Draws) Notes() []Note { return slices.Clone(d.notes) }

// AddNote adds a note. A note that d already has is not added again. It excludes all other use of d at the same time.
func (d *Draws) AddNote(n Note) {
	if !slices.Contains(d.notes, n) {
		d.notes = append(d.notes, n)
	}
}

// describe copies the attributes and notes of the containers that d was made from. An attribute on which they
// contradict each other is left out.
func (d *Draws) describe(from ...*Draws) *Draws {
	contradicted := map[string]bool{}
	for _, f := range from {
		for key, value := range f.attrs {
			if old, ok := d.attrs[key]; ok && old != value {
				contradicted[key] = true
			}
			d.SetAttr(key, value)
		}
		for _, n := range f.notes {
			d.AddNote(n)
		}
	}
	for key := range contradicted {
		delete(d.attrs, key)
	}
	return d
}

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

// StatName is the name under which d holds a statistic, given by one of the constants: that name, CmdStan's
// (divergent__), or ArviZ's (diverging). ok is false if d has none of them. "diverging" next to [StatGradNorm] is not
// ArviZ's: early stochastic-gradient runs of Kelvin wrote their held updates so.
func (d *Draws) StatName(stat string) (name string, ok bool) {
	for _, name := range append([]string{stat}, aliases[stat]...) {
		if name == "diverging" && slices.Contains(d.stats, StatGradNorm) {
			continue
		}
		if slices.Contains(d.stats, name) {
			return name, true
		}
	}
	return "", false
}
