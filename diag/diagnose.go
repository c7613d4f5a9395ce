package diag

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// DiagnoseOptions are the thresholds of [Diagnose]. The zero value is the recommended one; negative thresholds are an
// [draws.ErrRange].
type DiagnoseOptions struct {
	// Sites are the sites to look at; empty is all.
	Sites []string
	// RHat is the largest rank-normalised split R-hat that passes; 0 is 1.01 (Vehtari et al. 2021).
	RHat float64
	// ESSPerChain times the number of chains is the smallest bulk and tail effective sample size that passes; 0 is 100.
	ESSPerChain float64
	// EBFMI is the smallest E-BFMI of a chain that passes; 0 is 0.3 (Stan).
	EBFMI float64
	// MaxTreeDepth is the limit that the sampler ran with; 0 is 10 (Stan). A draw of at least that depth was cut off.
	MaxTreeDepth int
}

// The advice of the findings; of those of Diagnose after the pages of Stan and of ArviZ on warnings.
var advice = map[Code]string{
	CodeDivergence: "The sampler met curvature that its step size cannot follow, and what lies there is missing from the draws. " +
		"Raise the target acceptance (0.9, 0.95, 0.99); if divergences stay, reparametrise (hierarchies: non-centred) or use tighter priors.",
	CodeTreeDepth: "Trajectories ended before they turned: draws are valid but dear. Raise the largest tree depth; " +
		"scale the parameters alike, or adapt a dense metric, so that shorter trajectories do.",
	CodeEBFMI: "Fresh momenta change the energy too little to reach the tails. Run longer; reparametrise hierarchies and " +
		"heavy tails, for instance non-centred.",
	CodeRHat: "The chains have not mixed: do not use the draws. Run longer warm-up and longer chains; look at the traces for " +
		"several modes, for parameters that the data do not identify, and for chains that got stuck.",
	CodeESSBulk:   "Means and medians are imprecise. Draw more, or reparametrise to weaken correlations.",
	CodeESSTail:   "Variances and tail quantiles are imprecise. Draw more; heavy tails may want a reparametrisation.",
	CodeNotFinite: "Means and diagnostics are not defined. Look for a step size that is too large, and for a density that overflows.",
	CodeConstant:  "A fixed quantity may be so; a parameter that never moved has not been sampled.",
	CodeFewDraws:  "Nothing can be said about convergence. Draw more.",
	CodeOneChain:  "Chains from different starting points show what one cannot. Run four.",
	CodeUnequal:   "Diagnostics use the first draws of each chain, as many as the shortest has.",
	CodeSkipped:   "",
}

// Diagnose looks for the signs that draws should not be trusted, with the warnings and the thresholds of Stan and ArviZ:
//
//   - transitions that diverged: any is serious
//   - transitions cut off at the largest tree depth
//   - E-BFMI of a chain below 0.3
//   - R-hat of an element above 1.01: serious
//   - bulk or tail effective sample size of an element below 100 for each chain
//   - draws that are not finite (serious), elements that never moved, too few draws, a single chain
//
// Statistics are found by the names of [StatName]. A check whose statistic is missing is a [CodeSkipped] of severity
// Info. [draws.ErrNoDraws], [draws.ErrRange] and [draws.ErrUnknownName] are the errors; bad draws are findings, not errors.
func Diagnose(d *draws.Draws, opt DiagnoseOptions) (*Report, error) {
	elements, err := selected(d, "diagnose", opt.Sites)
	if err != nil {
		return nil, err
	}
	for _, v := range []struct {
		name  string
		value *float64
		or    float64
	}{{"RHat", &opt.RHat, 1.01}, {"ESSPerChain", &opt.ESSPerChain, 100}, {"EBFMI", &opt.EBFMI, 0.3}} {
		if !(*v.value >= 0) {
			return nil, failf(draws.ErrRange, "diagnose: %s is %v, want a positive number, or 0 for the default", v.name, *v.value)
		}
		if *v.value == 0 {
			*v.value = v.or
		}
	}
	if opt.MaxTreeDepth < 0 {
		return nil, failf(draws.ErrRange, "diagnose: MaxTreeDepth is %d, want at least 1, or 0 for 10", opt.MaxTreeDepth)
	}
	if opt.MaxTreeDepth == 0 {
		opt.MaxTreeDepth = 10
	}
	r := &Report{Chains: d.Chains(), Draws: d.MinLen()}
	r.lengths(d)
	r.sampler(d, opt)
	r.elements(d, elements, opt)
	r.sort()
	return r, nil
}

// add appends a finding with the advice of its kind.
func (r *Report) add(f Finding, format string, args ...any) {
	f.Message, f.Advice = fmt.Sprintf(format, args...), advice[f.Code]
	r.Findings = append(r.Findings, f)
}

func (r *Report) lengths(d *draws.Draws) {
	if d.MinLen() != d.MaxLen() {
		r.add(Finding{Code: CodeUnequal, Chain: -1, Observation: -1, Figure: float64(d.MinLen()), Threshold: float64(d.MaxLen())},
			"chains have %d to %d draws", d.MinLen(), d.MaxLen())
	}
	if d.Chains() == 1 {
		r.add(Finding{Code: CodeOneChain, Severity: Warning, Chain: -1, Observation: -1, Figure: 1, Threshold: 2}, "there is a single chain")
	}
	if d.MinLen() < minDraws {
		r.add(Finding{Code: CodeFewDraws, Severity: Warning, Chain: -1, Observation: -1, Figure: float64(d.MinLen()), Threshold: minDraws},
			"a chain has %d draws, fewer than %d", d.MinLen(), minDraws)
	}
}

// sampler checks the statistics of Hamiltonian Monte Carlo, over all draws of all chains.
func (r *Report) sampler(d *draws.Draws, opt DiagnoseOptions) {
	count := func(stat string, code Code, bad func(float64) bool) (n int, ok bool) {
		stats, ok := r.statistic(d, stat, code)
		for _, v := range slices.Concat(stats...) {
			if bad(v) {
				n++
			}
		}
		return n, ok
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(d.Total()) }
	if n, ok := count(draws.StatDivergent, CodeDivergence, func(v float64) bool { return v != 0 }); ok && n > 0 {
		r.add(Finding{Code: CodeDivergence, Severity: Serious, Chain: -1, Observation: -1, Figure: float64(n)},
			"%d of %d transitions diverged (%.1f%%)", n, d.Total(), share(n))
	}
	depth := float64(opt.MaxTreeDepth)
	if _, ok := d.StatName(draws.StatMaxDepth); ok { // the sampler itself says which trees it cut off
		if n, ok := count(draws.StatMaxDepth, CodeTreeDepth, func(v float64) bool { return v != 0 }); ok && n > 0 {
			r.add(Finding{Code: CodeTreeDepth, Severity: Warning, Chain: -1, Observation: -1, Figure: float64(n)},
				"%d of %d transitions (%.1f%%) reached the largest tree depth", n, d.Total(), share(n))
		}
	} else if n, ok := count(draws.StatTreeDepth, CodeTreeDepth, func(v float64) bool { return v >= depth }); ok && n > 0 {
		r.add(Finding{Code: CodeTreeDepth, Severity: Warning, Chain: -1, Observation: -1, Figure: float64(n), Threshold: depth},
			"%d of %d transitions (%.1f%%) reached the largest tree depth, %d", n, d.Total(), share(n), opt.MaxTreeDepth)
	}
	energies, _ := r.statistic(d, draws.StatEnergy, CodeEBFMI)
	for c, energy := range energies {
		if v := EBFMI(energy); v < opt.EBFMI {
			r.add(Finding{Code: CodeEBFMI, Severity: Warning, Chain: c, Observation: -1, Figure: v, Threshold: opt.EBFMI},
				"chain %d: E-BFMI is %.2g, below %.2g", c, v, opt.EBFMI)
		}
	}
}

// statistic is the trace of a statistic in each chain; if d lacks it, that is noted.
func (r *Report) statistic(d *draws.Draws, stat string, code Code) (traces [][]float64, ok bool) {
	name, ok := d.StatName(stat)
	if !ok {
		r.add(Finding{Code: CodeSkipped, Site: stat, Chain: -1, Observation: -1},
			"%s was not checked: the draws have no statistic %q", code, stat)
		return nil, false
	}
	for c := range d.Chains() {
		trace, err := d.Stat(name, c)
		if err != nil { // cannot be: the name is one of d's
			return nil, false
		}
		traces = append(traces, trace)
	}
	r.Checked = append(r.Checked, code)
	return traces, true
}

// elements checks every scalar, the worst ones first within their kind.
func (r *Report) elements(d *draws.Draws, elements []int, opt DiagnoseOptions) {
	type figures struct{ rhat, bulk, tail, low, high float64 }
	all := make([]figures, len(elements))
	sample.Each(len(elements), func(i int) {
		x := traces(d, elements[i])
		f := &all[i]
		f.rhat, f.bulk, f.tail = convergence(x)
		f.low, f.high = sample.Extremes(x)
	})
	names := d.Names()
	r.Checked = append(r.Checked, CodeRHat, CodeESSBulk, CodeESSTail)
	first := len(r.Findings)
	least := opt.ESSPerChain * float64(d.Chains())
	for i, f := range all {
		site := names[elements[i]]
		at := func(code Code, s Severity, figure, threshold float64) Finding {
			return Finding{Code: code, Severity: s, Site: site, Chain: -1, Observation: -1, Figure: figure, Threshold: threshold}
		}
		switch {
		case math.IsNaN(f.low) || math.IsInf(f.low, 0) || math.IsInf(f.high, 0):
			r.add(at(CodeNotFinite, Serious, math.NaN(), 0), "%s has draws that are not finite", site)
			continue
		case f.low == f.high:
			r.add(at(CodeConstant, Info, f.low, 0), "%s is %.6g in all draws", site, f.low)
			continue
		}
		if f.rhat > opt.RHat {
			r.add(at(CodeRHat, Serious, f.rhat, opt.RHat), "%s: R-hat is %.3f, above %g", site, f.rhat, opt.RHat)
		}
		if f.bulk < least {
			r.add(at(CodeESSBulk, Warning, f.bulk, least), "%s: bulk effective sample size is %.0f, below %g", site, f.bulk, least)
		}
		if f.tail < least {
			r.add(at(CodeESSTail, Warning, f.tail, least), "%s: tail effective sample size is %.0f, below %g", site, f.tail, least)
		}
	}
	slices.SortStableFunc(r.Findings[first:], func(a, b Finding) int {
		if a.Code != b.Code {
			return cmp.Compare(a.Code, b.Code)
		}
		if a.Code == CodeRHat {
			return cmp.Compare(b.Figure, a.Figure)
		}
		return cmp.Compare(a.Figure, b.Figure)
	})
}
