package native

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Tier says who evaluates a log density.
type Tier string

const (
	Auto    Tier = ""        // C where it is linked or there is a compiler, else VM; Replay for what neither can have
	Require Tier = "require" // Auto, but an error where only Eager is left
	C       Tier = "native"  // compiled C
	VM      Tier = "vm"      // the virtual machine
	Replay  Tier = "replay"  // the operations of libtorch that one evaluation did, done again without autograd and vmap
	Eager   Tier = "eager"   // the log density itself: nothing is compiled
)

// tiers are the values of a Tier, in the words of an error.
var tiers = []Tier{Auto, Require, C, VM, Replay, Eager}

// Check makes sure that a tier is one of those above.
func (t Tier) Check() error {
	if slices.Contains(tiers, t) {
		return nil
	}
	return fmt.Errorf(`native: the tier is %q: it must be "" (native.Auto), "require", "native", "vm", "replay" or `+
		`"eager"`, string(t))
}

// variable names the environment variable that replaces Auto.
const variable = "KELVIN_NATIVE"

// resolve is the tier, with what the environment says in the place of Auto.
func (t Tier) resolve() (Tier, error) {
	if t == Auto {
		t = Tier(strings.ToLower(os.Getenv(variable)))
		if err := t.Check(); err != nil {
			return t, fmt.Errorf("the environment variable %s: %w", variable, err)
		}
		return t, nil
	}
	return t, t.Check()
}

// Options say how a log density is compiled. The zero value is the default.
type Options struct {
	Tier     Tier   // default Auto; where that is left, the environment variable KELVIN_NATIVE
	CacheDir string // of compiled C; default is kelvin/native in the user's cache folder
	// WriteTo is the folder of a Go package to which the C is added as well, with a Go file, so that the next build links
	// it; default is the environment variable KELVIN_COMPILE, which `kelvin compile` sets, and else none.
	WriteTo string
	// ValueFree leaves the value out, and what it alone needs: the gradient is all that is computed.
	ValueFree bool
	// GradientFree leaves the gradient out, and what it alone needs: the value is all that is computed.
	GradientFree bool
}

// Report says what became of a log density.
type Report struct {
	Tier     Tier     // C, VM, Replay or Eager
	Reason   string   // why it is not a faster tier; "" for C
	Ops      int      // instructions in the loops of the plan; operations of a replay
	Loops    int      // steps of the plan
	OverTime int      // loops over time among them, each of several steps
	Notes    []string // loops over time that were found and stay unrolled, with the reasons
	Compiler string   // of C: its version, "" where it is linked; of VM: the instruction set
	Linked   bool     // C is linked into this program
	Cached   bool     // C was in the cache
	Seconds  float64  // that recording and compiling took
	Error    float64  // the largest difference to eager evaluation that was seen, scaled
}

// String is one line.
func (r Report) String() string {
	switch r.Tier {
	case Eager, Auto:
		return fmt.Sprintf("eager: %s", r.Reason)
	case Replay:
		return fmt.Sprintf("replay (%d operations of libtorch): %s", r.Ops, r.Reason)
	case VM:
		return fmt.Sprintf("vm (%s): %s", r.size(), r.Reason)
	}
	by := r.Compiler
	if r.Linked {
		by = "linked"
	}
	return fmt.Sprintf("%s (%s, %s)", r.Tier, r.size(), by)
}

// size says how much a plan does.
func (r Report) size() string {
	s := fmt.Sprintf("%d operations in %d loops", r.Ops, r.Loops)
	if r.OverTime > 0 {
		s += fmt.Sprintf(", %d over time", r.OverTime)
	}
	for _, n := range r.Notes {
		s += "; " + n
	}
	return s
}
