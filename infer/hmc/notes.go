package hmc

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// fewTrips is how many round trips of all ladders are few: what is said about separate modes rests on as many visits.
const fewTrips = 10

// Notes of a run say which chains are lost; of replica exchange, when its replicas do not travel.
func (t *transform) Notes(_ infer.State, run infer.RunSummary) []draws.Note {
	if t.options.Ladder == nil {
		return lost(run)
	}
	var all []kernel.Swaps
	for _, d := range run.Details {
		if detail, ok := d.(*Detail); ok && detail != nil {
			all = append(all, detail.Swaps...)
		}
	}
	trips, rounds, barrier, best := 0, 0, 0.0, 0.0
	worst, refuses := 0, -1.0
	for l := range all {
		s := &all[l]
		if s.SamplingRounds < 2 { // each pair is tried in every second round
			return nil
		}
		trips += s.SamplingTrips
		rounds += s.SamplingRounds
		for i := range s.Tried {
			if r := s.Rejection(i); r > refuses {
				worst, refuses = i, r
			}
		}
		b := s.Barrier()
		barrier += b[len(b)-1] / float64(len(all))
		best += s.BestRate() / float64(len(all))
	}
	if len(all) == 0 || trips >= fewTrips || math.IsNaN(barrier) {
		return nil
	}
	text := fmt.Sprintf("replicas made %d round trips between the ends of the ladder in %d rounds of swaps; the pair of "+
		"rungs %d and %d refuses %.0f %% of its swaps, and the barrier is %.1f", trips, rounds, worst, worst+1, 100*refuses,
		barrier)
	rungs := len(t.options.Ladder)
	var advice string
	switch want := int(math.Ceil(2*barrier)) + 1; {
	case refuses > 0.9 && !t.options.Adapt && barrier < 0.75*float64(rungs-1):
		advice = "set hmc.Exchange.Adapt, which puts the rungs where swaps are refused"
	case rungs < want || refuses > 0.9:
		advice = fmt.Sprintf("give hmc.Exchange.Ladder more rungs: %d, 1 more than twice the barrier, are a good number",
			max(want, rungs+1))
	case best*float64(rounds) < fewTrips:
		advice = fmt.Sprintf("draw more: so many rounds allow %.1f round trips at best", best*float64(rounds))
		if every := t.every(); every > 1 {
			advice += fmt.Sprintf(", or set hmc.Exchange.Every below %d", every)
		}
	default:
		advice = "move the replicas further between swaps: raise hmc.Exchange.Every, or take longer trajectories in its " +
			"Kernel"
	}
	return []draws.Note{{Kind: "replicas_do_not_travel", Serious: trips == 0,
		Text: text + ": separate modes may have wrong weights", Advice: advice}}
}

// lost are the notes about chains that had not arrived when their warm-up ended.
func lost(run infer.RunSummary) (notes []draws.Note) {
	first := 0 // chain of the group
	for _, d := range run.Details {
		detail, ok := d.(*Detail)
		if !ok || detail == nil {
			continue
		}
		for _, l := range detail.Lost {
			how := "its log density still rose"
			if l.Still {
				how = "it stood still"
			}
			if l.Restarts > 0 {
				how += fmt.Sprintf(", also after %s", count(l.Restarts, "other start"))
			}
			site := run.Layout.At(l.Coordinate)
			notes = append(notes, draws.Note{Kind: "lost_chain", Serious: true,
				Text: fmt.Sprintf("chain %d had not arrived when its warm-up ended: %s; the gradient is largest at %s (%.3g): its "+
					"draws are not of the posterior", first+l.Chain, how, site, l.Gradient),
				Advice: fmt.Sprintf("look at the prior and the scale of %s, and for a density that is not continuous or has no "+
					"maximum; where it only takes longer to arrive, give the run a longer warm-up (infer.Options{Warmup: ...})",
					site)})
		}
		first += len(detail.StepSizes)
	}
	return notes
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// every is the number of transitions between swaps.
func (t *transform) every() int {
	switch {
	case t.options.SwapEvery > 0:
		return t.options.SwapEvery
	case t.options.Adapt:
		return 1
	}
	return 10
}
