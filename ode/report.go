package ode

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
)

// Report is what became of the solutions of a system so far, in this process.
type Report struct {
	Solutions   int // all
	Steps       int // that were taken
	Rejected    int // that were tried and not taken
	Evaluations int // of the right-hand side with its derivatives

	BlowUps int // solutions that are NaN: they left the finite numbers, or their steps became too short
	Limit   int // solutions that are NaN: they needed more than Options.MaxSteps steps
	Stiff   int // those of Limit whose steps were short for stability and not for accuracy: the system is stiff there
	Times   int // solutions that are NaN: they start after the first time
}

// Report counts the solutions of a system.
func (s *System) Report() Report {
	var c counts
	if s == nil {
		return Report{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.order {
		if one := s.solvers[key]; one.cSolver != nil {
			c.add(one.cSolver)
		}
	}
	return report(c)
}

func report(c counts) Report {
	return Report{Solutions: c.Solutions, Steps: c.Steps, Rejected: c.Rejected, Evaluations: c.Evaluations,
		BlowUps: c.Ends[endBlowUp] + c.Ends[endMemory], Limit: c.Ends[endSteps] + c.Ends[endStiff],
		Stiff: c.Ends[endStiff], Times: c.Ends[endTimes]}
}

// String says what became of the solutions, and what to do.
func (r Report) String() string {
	var b strings.Builder
	per := func(n int) float64 { return float64(n) / float64(max(r.Solutions, 1)) }
	fmt.Fprintf(&b, "%d solutions, each of %.4g steps and %.4g evaluations of the right-hand side", r.Solutions,
		per(r.Steps), per(r.Evaluations))
	if r.BlowUps > 0 {
		fmt.Fprintf(&b, "; %d blew up", r.BlowUps)
	}
	if other := r.Limit - r.Stiff; other > 0 {
		fmt.Fprintf(&b, "; %d needed too many steps: raise Options.MaxSteps, or the tolerances", other)
	}
	if r.Stiff > 0 {
		fmt.Fprintf(&b, "; %d are stiff and needed too many steps: use ode.Options{Method: ode.SDIRK}", r.Stiff)
	}
	if r.Times > 0 {
		fmt.Fprintf(&b, "; %d start after the first time", r.Times)
	}
	return b.String()
}

// noSolution is the kind of the note of a run in which solutions failed.
const noSolution = "no_solution"

// failedShare is the share of failed solutions from which on figures can be wrong.
const failedShare = 0.01

func init() { foreign.AddCounter(watch) }

// watch counts the solutions of all systems from now on.
func watch() foreign.Count {
	before := allCounts()
	return foreign.Count{
		Notes: func() []draws.Note { return report(allCounts().minus(before)).notes() },
		Aside: func(f func()) {
			counted := allCounts().minus(before)
			f()
			before = allCounts().minus(counted)
		},
	}
}

// notes say that solutions failed, and what to do.
func (r Report) notes() []draws.Note {
	failed := r.BlowUps + r.Limit + r.Times
	if failed == 0 {
		return nil
	}
	var why, advice []string
	add := func(count int, reason, remedy string) {
		if count > 0 {
			why, advice = append(why, fmt.Sprintf("%d %s", count, reason)), append(advice, remedy)
		}
	}
	add(r.Stiff, "are stiff and needed too many steps", "use ode.Options{Method: ode.SDIRK}")
	add(r.Limit-r.Stiff, "needed too many steps", "raise ode.Options.MaxSteps, or the tolerances RTol and ATol")
	add(r.BlowUps, "blew up", "give the parameters priors under which the solution exists up to the last time")
	add(r.Times, "start after the first time", "bound the prior of the start by the first time")
	return []draws.Note{{Kind: noSolution, Serious: float64(failed) > failedShare*float64(r.Solutions),
		Text: fmt.Sprintf("%d of %d solutions of differential equations failed, warm-up included: %s. "+
			"Their points have no density.", failed, r.Solutions, strings.Join(why, ", ")),
		Advice: strings.Join(advice, "; ") + "."}}
}
