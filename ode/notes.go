package ode

import (
	"fmt"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/tally"
	"github.com/kelvin-ppl/kelvin/ode/internal/solve"
)

// noSolution is the kind of the note of a run in which solutions failed.
const noSolution = "no_solution"

// failedShare is the share of failed solutions from which on figures can be wrong.
const failedShare = 0.01

func init() { tally.Add(watch) }

// watch counts the solutions of all systems from now on.
func watch() func() []draws.Note {
	before := solve.All()
	return func() []draws.Note { return report(solve.All().Minus(before)).notes() }
}

// notes say that solutions failed, and what to do.
func (r Report) notes() []draws.Note {
	failed := r.BlowUps + r.Limit + r.Times
	if failed == 0 {
		return nil
	}
	var why, advice []string
	add := func(count int64, reason, remedy string) {
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
