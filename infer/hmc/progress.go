package hmc

import (
	"fmt"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// Progress is where a run stands.
type Progress struct {
	Chain  int         // the chain that has just made a transition
	Info   kernel.Info // of that transition
	Chains int

	Done, Total   int64   // transitions of the warm-up and draws kept, of all chains
	Warming       int     // chains that are still in their warm-up
	Draws, Wanted int64   // draws kept, of all chains
	Divergences   int64   // after the warm-up, of all chains
	Gradients     int64   // leapfrog steps of the transitions seen
	StepSize      float64 // of the chain's transition
	Elapsed       time.Duration
	Resumed       int64 // transitions that were made before the run was resumed
}

// String is the state of the run in one line.
func (p Progress) String() string {
	var b strings.Builder
	phase := "sampling"
	if p.Warming > 0 {
		phase = "warm-up"
	}
	fmt.Fprintf(&b, "%d chains, %s: %3.0f %%, %d of %d draws, %d divergences, step %.3g", p.Chains, phase,
		100*float64(p.Done)/float64(max(p.Total, 1)), p.Draws, p.Wanted, p.Divergences, p.StepSize)
	if made := p.Done - p.Resumed; made > 0 {
		fmt.Fprintf(&b, ", %.1f gradients a draw", float64(p.Gradients)/float64(made))
		if p.Done < p.Total {
			left := time.Duration(float64(p.Elapsed) * float64(p.Total-p.Done) / float64(made))
			fmt.Fprintf(&b, ", %v left", left.Round(time.Second))
		}
	}
	return b.String()
}
