package diag

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// EBFMI is the estimated Bayesian fraction of missing information of one chain of Hamiltonian Monte Carlo, from the
// energies of its n draws:
//
//	E-BFMI = [Σ (E(i) - E(i-1))² / (n-1)] / [Σ (E(i) - mean)² / (n-1)]
//
// It compares the energy changes that fresh momenta bring with the spread of the energy. Below 0.3 the sampler walks
// slowly through the energy levels and the tails of the posterior are badly explored. Independent energies give 2.
// Betancourt (2016), arXiv:1604.00695. NaN for fewer than 4 draws, equal energies, and energies that are not finite.
func EBFMI(energy []float64) float64 {
	u := usable([][]float64{energy})
	if u == nil {
		return math.NaN()
	}
	y, _ := standardised(u)
	e := y[0]
	_, variance := sample.MeanVar(e)
	changes := 0.0
	for i := 1; i < len(e); i++ {
		d := e[i] - e[i-1]
		changes += d * d
	}
	return changes / float64(len(e)-1) / variance
}

// sampler checks the statistics of the sampler, over all draws of all chains.
func (g *diagnosis) sampler() {
	hamiltonian := g.family == hamiltonian || g.family == unknown
	if g.checks(draws.StatDivergent, CodeDivergence, hamiltonian) {
		if n := g.count(draws.StatDivergent, func(v float64) bool { return v != 0 }); n > 0 {
			g.run(CodeDivergence, Serious, float64(n), 0, "%d of %d transitions diverged (%s)", n, g.d.Total(),
				g.share(n))
		}
	}
	g.jumps()
	g.treeDepth(hamiltonian)
	if g.checks(draws.StatEnergy, CodeEBFMI, hamiltonian) {
		for c, energy := range g.traces(draws.StatEnergy) {
			if v := EBFMI(energy); v < g.opt.EBFMI {
				g.run(CodeEBFMI, Warning, v, g.opt.EBFMI, "chain %d: E-BFMI is %s, below %g", c,
					sample.Below(v, g.opt.EBFMI, 2), g.opt.EBFMI)
				g.Findings[len(g.Findings)-1].Chain = c
			}
		}
	}
	// by the run
	noted := slices.ContainsFunc(g.d.Notes(), func(n draws.Note) bool { return n.Kind == string(CodeHeld) })
	if g.checks(draws.StatHeld, CodeHeld, g.family == gradient || g.family == optimiser) && !noted {
		if n := g.count(draws.StatHeld, func(v float64) bool { return v != 0 }); n > 0 {
			severity := Warning
			if float64(n) > 0.01*float64(g.d.Total()) {
				severity = Serious
			}
			g.run(CodeHeld, severity, float64(n), 0, "%d of %d updates that led to a draw were held (%s)", n,
				g.d.Total(), g.share(n))
		}
	}
}

// The limits of the hint at jumps. Without a jump the ratio was 10 to 30 for normal laws, at most 64 for heavy tails,
// and at most 60 on the 13 posteriors of bench/adaptation at three targets of the acceptance. Short trajectories, as in
// one dimension, often keep the energy by chance. Of the trajectories of HMC that lost acceptance it was at most 32 for
// the smooth densities of the tests, and 105 and more in each of four chains for those that jump.
const (
	jumpRatio     = 200
	jumpLeapfrogs = 15
)

// jumps hints at a density that is not continuous. The energy error of a leapfrog step falls with the step size for a
// smooth density, so that all trajectories of a chain err alike. A jump is an error of its own size, whatever the step:
// the step size shrinks, and then most trajectories keep their energy and the few that cross the jump do not. Looked at
// is the largest tenth of the loss of acceptance beside its smallest quarter. Divergences have another cause.
func (g *diagnosis) jumps() {
	accept, leapfrogs := g.traces(draws.StatAccept), g.traces(draws.StatLeapfrog)
	diverged := g.count(draws.StatDivergent, func(v float64) bool { return v != 0 })
	if g.family != hamiltonian || diverged > 0 || len(leapfrogs) == 0 {
		return
	}
	depths := slices.Concat(g.traces(draws.StatTreeDepth)...)
	trees := len(depths) == 0 || slices.Max(depths) > 0
	for c := range accept {
		loss, long := slices.Clone(accept[c]), slices.Clone(leapfrogs[c])
		for i, a := range loss {
			loss[i] = 1 - min(a, 1)
		}
		who := "the trajectories"
		if !trees {
			loss, who = slices.DeleteFunc(loss, func(v float64) bool { return v == 0 }), "those trajectories that lose any"
		}
		slices.Sort(loss)
		slices.Sort(long)
		n := len(loss)
		if n < 100 {
			continue
		}
		if long[len(long)/2] < jumpLeapfrogs || !(loss[9*n/10] > 0.01) || !(loss[9*n/10] > jumpRatio*loss[n/4]) {
			continue
		}
		g.run(codeJumps, Info, loss[9*n/10], loss[n/4], "chain %d: a quarter of %s lose less than %.1g of "+
			"their acceptance and a tenth more than %.2g, without divergence: the log density may jump", c, who,
			max(loss[n/4], 1e-9), loss[9*n/10])
		g.Findings[len(g.Findings)-1].Chain = c
	}
}

// treeDepth counts the trees that were cut off: by what the sampler says, else by their depth.
func (g *diagnosis) treeDepth(applies bool) {
	if _, ok := g.d.StatName(draws.StatMaxDepth); ok {
		g.checks(draws.StatMaxDepth, CodeTreeDepth, applies)
		n := g.count(draws.StatMaxDepth, func(v float64) bool { return v != 0 })
		if n == 0 {
			return
		}
		if depths := slices.Concat(g.traces(draws.StatTreeDepth)...); len(depths) > 0 {
			g.depth = int(slices.Max(depths)) // the limit, since trees reached it
		}
		g.run(CodeTreeDepth, Warning, float64(n), 0, "%d of %d transitions (%s) reached the largest tree depth", n,
			g.d.Total(), g.share(n))
		return
	}
	if g.checks(draws.StatTreeDepth, CodeTreeDepth, applies) {
		limit := float64(g.opt.MaxTreeDepth)
		if n := g.count(draws.StatTreeDepth, func(v float64) bool { return v >= limit }); n > 0 {
			g.run(CodeTreeDepth, Warning, float64(n), limit,
				"%d of %d transitions (%s) reached the largest tree depth, %d", n, g.d.Total(), g.share(n),
				g.opt.MaxTreeDepth)
		}
	}
}

// checks says whether d has a statistic, and notes that it was checked, or, if it applies to the method,
// that it was not.
func (g *diagnosis) checks(stat string, code Code, applies bool) bool {
	if _, ok := g.d.StatName(stat); ok {
		g.Checked = append(g.Checked, code)
		return true
	}
	if applies {
		g.Findings = append(g.Findings, Finding{Code: CodeSkipped, Site: stat, Chain: -1, Observation: -1,
			Message: fmt.Sprintf("%s was not checked: the draws have no statistic %q", code, stat)})
	}
	return false
}

// traces are the chains of a statistic, none if d lacks it.
func (g *diagnosis) traces(stat string) [][]float64 {
	name, ok := g.d.StatName(stat)
	if !ok {
		return nil
	}
	var all [][]float64
	for c := range g.d.Chains() {
		if trace, err := g.d.Stat(name, c); err == nil { // the name is one of d's
			all = append(all, trace)
		}
	}
	return all
}

// count is the number of draws whose statistic is bad.
func (g *diagnosis) count(stat string, bad func(float64) bool) (n int) {
	for _, trace := range g.traces(stat) {
		for _, v := range trace {
			if bad(v) {
				n++
			}
		}
	}
	return n
}

// share is n of all draws, in per cent, with two digits or those that tell it from 100.
func (g *diagnosis) share(n int) string {
	share, digits := 100*float64(n)/float64(g.d.Total()), 2
	if n < g.d.Total() {
		share = min(share, 99.99)
	}
	if share >= 99 {
		digits = 4
	}
	return strconv.FormatFloat(share, 'g', digits, 64) + "%"
}
