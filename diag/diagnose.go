package diag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// DiagnoseOptions are the thresholds of [Diagnose]. The zero value is the recommended one; negative
// thresholds are an [draws.ErrRange].
type DiagnoseOptions struct {
	// Sites are the sites to look at; empty is all.
	Sites []string
	// RHat is the largest rank-normalised split R-hat that passes; 0 is 1.01 (Vehtari et al. 2021).
	RHat float64
	// ESSPerChain times the number of chains, of which 16 count at most, is the smallest bulk and tail effective sample
	// size that passes; 0 is 100. More chains need no larger sample: what estimates need is a total.
	ESSPerChain float64
	// EBFMI is the smallest E-BFMI of a chain that passes; 0 is 0.3 (Stan).
	EBFMI float64
	// MaxTreeDepth is the limit that the sampler ran with; 0 is 10 (Stan). A draw of at least that depth was cut off.
	MaxTreeDepth int
}

// Diagnose looks for the signs that draws should not be trusted, with the thresholds of Stan and ArviZ:
//
//   - transitions that diverged: any is serious
//   - transitions cut off at the largest tree depth
//   - E-BFMI of a chain below 0.3
//   - updates that were held: serious above 1%
//   - R-hat of an element above 1.01: serious where the chains disagree, or above 1.1; of chains that are fits serious
//     where these are more than a standard deviation apart, or one is more than twice as wide as another
//   - bulk or tail effective sample size of an element below 100 for each chain
//   - chains whose step sizes differ by a factor of 10 or more, that never moved (serious), or that have not finished
//   - no tail effective sample size, because draws that are no whole numbers repeat an extreme value
//   - draws that are not finite (serious), elements that never moved but by rounding, too few draws, a single chain;
//     the zeros and ones of square matrices that move elsewhere, as of Cholesky factors, are no findings
//   - what the run noted of itself, [draws.Draws.Notes]
//
// An R-hat that chance explains where chains are short is no sign that they disagree: it is Info up to 1.05 and Warning
// up to 1.1, with the advice to draw more. Chance explains what chains of one law exceed with probability 1e-4, divided
// by the number of elements.
//
// Advice is in the words of the method that made the draws, [draws.AttrMethod]. Statistics are found by the names of
// [draws.Draws.StatName]; a check that applies but whose statistic is missing is a [CodeSkipped] of severity Info.
// [draws.ErrNoDraws], [draws.ErrRange] and [draws.ErrUnknownName] are the errors; bad draws are findings, not errors.
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
			return nil, failf(draws.ErrRange, "diagnose: %s is %v, want a positive number, or 0 for the default",
				v.name, *v.value)
		}
		if *v.value == 0 {
			*v.value = v.or
		}
	}
	if opt.MaxTreeDepth < 0 {
		return nil, failf(draws.ErrRange, "diagnose: MaxTreeDepth is %d, want at least 1, or 0 for 10",
			opt.MaxTreeDepth)
	}
	if opt.MaxTreeDepth == 0 {
		opt.MaxTreeDepth = 10
	}
	g := diagnosis{Report: &Report{Chains: d.Chains(), Draws: d.MinLen()}, d: d, opt: opt}
	g.adviser = adviser{draws: d.MinLen(), depth: opt.MaxTreeDepth, dim: d.Dim()}
	g.method, g.family = method(d)
	g.kernel = "hmc.NUTS"
	if depths := slices.Concat(g.traces(draws.StatTreeDepth)...); len(depths) > 0 && slices.Max(depths) == 0 {
		g.kernel = "hmc.HMC" // of one trajectory, and no trees
	}
	g.target, _ = strconv.ParseFloat(d.Attrs()[attrTarget], 64)
	g.endless = slices.ContainsFunc(d.Notes(), func(n draws.Note) bool { return n.Kind == endless })
	g.undefined = slices.ContainsFunc(d.Notes(), func(n draws.Note) bool { return n.Kind == undefined && n.Serious })
	g.given = d.Attrs()[attrStep] == given
	g.scaled = d.Attrs()[attrScaled]
	g.cold = cold(d.Attrs()[draws.AttrTemperature], g.traces(draws.StatTemperature))
	g.lengths()
	g.sampler()
	g.unlike()
	fixed := structural(d)
	g.elements(slices.DeleteFunc(elements, func(i int) bool { return fixed[i] }))
	for _, n := range d.Notes() {
		severity := Warning
		if n.Serious {
			severity = Serious
		}
		g.Findings = append(g.Findings, Finding{Code: Code(n.Kind), Severity: severity, Chain: -1, Observation: -1,
			Message: n.Text, Advice: n.Advice})
	}
	g.sort()
	return g.Report, nil
}

// diagnosis is a report in the making.
type diagnosis struct {
	*Report
	adviser
	d    *draws.Draws
	opt  DiagnoseOptions
	cold bool // the draws say that they are of T = 0
}

// cold says whether draws are of T = 0, where every method is an optimiser, by their attribute or their statistic.
func cold(attr string, stat [][]float64) bool {
	if attr != "" {
		t, err := strconv.ParseFloat(attr, 64)
		return err == nil && t == 0
	}
	low, high := sample.Extremes(stat)
	return low == 0 && high == 0
}

// run appends a finding about the whole run, with the advice of its kind.
func (g *diagnosis) run(code Code, s Severity, figure, threshold float64, format string, args ...any) {
	g.Findings = append(g.Findings, Finding{Code: code, Severity: s, Chain: -1, Observation: -1, Figure: figure,
		Threshold: threshold, Message: fmt.Sprintf(format, args...), Advice: g.of(code, 1)})
}

func (g *diagnosis) lengths() {
	shortest, longest := g.d.MinLen(), g.d.MaxLen()
	if shortest != longest {
		severity := Info
		if float64(shortest) < unfinished*float64(longest) {
			severity = Warning
		}
		lengths := make([]int, g.d.Chains())
		for c := range lengths {
			lengths[c] = g.d.Len(c)
		}
		g.run(codeUnequal, severity, float64(shortest), float64(longest),
			"chains have %d to %d draws: chain %d has not finished", shortest, longest, slices.Index(lengths, shortest))
	}
	if g.d.Chains() == 1 && g.family != fitted {
		g.run(codeOneChain, Warning, 1, 2, "there is a single chain")
	}
	if shortest < essDraws {
		severity := Warning
		if g.family == optimiser && shortest > 0 {
			severity = Info
		}
		g.run(codeFewDraws, severity, float64(shortest), essDraws, "a chain has %d draws, fewer than %d", shortest,
			essDraws)
	}
}

// mostChains is how many chains count for the effective sample size that is wanted.
const mostChains = 16

// leastESS is the smallest effective sample size that passes.
func leastESS(perChain float64, chains int) float64 {
	return perChain * float64(min(chains, mostChains))
}

// samePoint is the relative difference up to which points of an optimiser, or of fits at T = 0, are the same. Around 0
// it is the difference itself, where their log posteriors are equal: a relative difference of sameDensity. rounding is
// the relative difference of one number that was calculated in several ways, some units in its last place.
const samePoint, sameDensity, rounding = 1e-7, 1e-12, 1e-14

// oneNumber says whether draws from low to high, of any method, are one number but for rounding.
func oneNumber(low, high float64) bool {
	return high-low <= rounding*max(math.Abs(low), math.Abs(high))
}

// onePoint says whether numbers from low to high, of points of an optimiser, are one number but for rounding.
func (g *diagnosis) onePoint(low, high float64) bool {
	if high-low <= samePoint*math.Abs(high) {
		return true
	}
	density := g.traces(draws.StatLP)
	least, most := sample.Extremes(density)
	return high-low <= samePoint && len(density) > 0 && most-least <= sameDensity*math.Abs(most)
}

// elements checks every scalar, the worst ones first within their kind.
func (g *diagnosis) elements(elements []int) {
	type figures struct {
		rhat, bulk, tail, low, high float64
		limit                       float64 // R-hat that chance explains
		disagree                    bool    // by more than chance
		off, spread                 float64 // how far apart fits are that disagree
		repeats                     bool    // no tail effective sample size, as whole numbers may have none
	}
	all := make([]figures, len(elements))
	sample.Each(len(elements), func(i int) {
		x := traces(g.d, elements[i])
		f := &all[i]
		f.rhat, f.bulk, f.tail = convergence(x)
		f.low, f.high = sample.Extremes(x)
		f.repeats = math.IsNaN(f.tail) && whole(x)
		if f.rhat > g.opt.RHat {
			f.limit, f.disagree = disagree(usable(x), 1e-4/float64(len(elements)))
			if f.disagree && g.family == fitted {
				f.off, f.spread = apart(usable(x))
			}
		}
	})
	names := g.d.Names()
	g.Checked = append(g.Checked, CodeRHat, CodeESSBulk, CodeESSTail)
	first := len(g.Findings)
	least := leastESS(g.opt.ESSPerChain, g.d.Chains())
	for i, f := range all {
		site := names[elements[i]]
		add := func(code Code, s Severity, figure, threshold float64, advice, format string, args ...any) {
			g.Findings = append(g.Findings, Finding{Code: code, Severity: s, Site: site, Chain: -1, Observation: -1,
				Figure: figure, Threshold: threshold, Message: site + fmt.Sprintf(format, args...), Advice: advice})
		}
		switch {
		case math.IsNaN(f.low) || math.IsInf(f.low, 0) || math.IsInf(f.high, 0):
			add(CodeNotFinite, Serious, math.NaN(), 0, g.of(CodeNotFinite, 1), " has draws that are not finite")
			continue
		case oneNumber(f.low, f.high), (g.cold || g.family == optimiser || g.family == fitted && math.IsInf(f.off, 1)) &&
			g.onePoint(f.low, f.high):
			add(CodeConstant, Info, f.low, 0, g.of(CodeConstant, 1), " is %.6g in all draws", f.low)
			continue
		}
		// One verdict for all that is found of an element: its chains disagree, or they are too short by a factor.
		times := least / f.bulk
		if !math.IsNaN(f.tail) {
			times = max(times, least/f.tail)
		}
		shown := sample.Above(f.rhat, g.opt.RHat, 3)
		var verdict string
		switch near := f.off <= farApart && f.spread <= unlikeSpread; {
		case f.disagree && g.family == fitted && math.IsInf(f.off, 1):
			verdict = g.of(CodeRHat, 1)
			add(CodeRHat, Serious, f.rhat, g.opt.RHat, verdict, ": R-hat is %s, above %g: each fit has one value, and they "+
				"differ", shown, g.opt.RHat)
		case f.disagree && g.family == fitted && near:
			verdict = g.fitsDiffer()
			add(CodeRHat, Warning, f.rhat, g.opt.RHat, verdict, ": R-hat is %s, above %g: fits are up to %.2g standard "+
				"deviations apart, and their spreads differ by a factor of %.2g", shown, g.opt.RHat, f.off, f.spread)
		case f.disagree && g.family == fitted:
			verdict = g.of(CodeRHat, 1)
			add(CodeRHat, Serious, f.rhat, g.opt.RHat, verdict, ": R-hat is %s, above %g: fits are up to %.2g standard "+
				"deviations apart, and their spreads differ by a factor of %.2g", shown, g.opt.RHat, f.off, f.spread)
		case f.disagree:
			verdict = g.of(CodeRHat, 1)
			add(CodeRHat, Serious, f.rhat, g.opt.RHat, verdict, ": R-hat is %s, above %g", shown, g.opt.RHat)
		case f.rhat > g.opt.RHat:
			severity := Info
			if f.rhat > 1.05 {
				severity = Warning
			}
			if f.rhat > 1.1 {
				severity = Serious
			}
			times = max(times, (f.rhat*f.rhat-1)/max(g.opt.RHat*g.opt.RHat-1, 1e-3))
			add(CodeRHat, severity, f.rhat, g.opt.RHat, g.short(times),
				": R-hat is %s, above %g; chance explains up to %s", shown, g.opt.RHat,
				sample.Above(f.limit, f.rhat, 3))
		}
		advice := func(code Code) string {
			if verdict != "" { // more draws of the same chains do not help
				return verdict
			}
			return g.of(code, times)
		}
		if f.bulk < least {
			add(CodeESSBulk, Warning, f.bulk, least, advice(CodeESSBulk), ": bulk effective sample size is %s, below %g",
				sample.Below(f.bulk, least, 0), least)
		}
		switch {
		case f.tail < least:
			add(CodeESSTail, Warning, f.tail, least, advice(CodeESSTail), ": tail effective sample size is %s, below %g",
				sample.Below(f.tail, least, 0), least)
		case math.IsNaN(f.tail) && !math.IsNaN(f.bulk) && !f.repeats: // of few draws both are NaN
			if verdict == "" {
				verdict = g.stoodStill()
			}
			add(CodeESSTail, Warning, f.tail, least, verdict, ": the tail effective sample size cannot be "+
				"estimated, because one draw in twenty or more is the same extreme value: a chain stood still there")
		}
	}
	slices.SortStableFunc(g.Findings[first:], func(a, b Finding) int {
		if a.Code != b.Code {
			return cmp.Compare(a.Code, b.Code)
		}
		if a.Code == CodeRHat {
			return cmp.Compare(b.Figure, a.Figure)
		}
		return cmp.Compare(a.Figure, b.Figure)
	})
}

// How far fits may be from one another before figures are wrong: as in the notes of package vi, standard deviations
// between their means and the factor between their own.
const (
	farApart     = 1
	unlikeSpread = 2
)

// apart is how far the centres of the chains of u are from one another, in standard deviations (the root of their mean
// square), and the ratio of the largest standard deviation to the smallest. Medians and the ranges of the middle halves
// stand for them, which heavy tails leave alone; where half of a chain is one value, means and standard deviations.
func apart(u [][]float64) (off, spread float64) {
	low, high, least, most, within := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0, 0.0
	center, width := make([]float64, len(u)), make([]float64, len(u))
	for c, chain := range u {
		x := slices.Sorted(slices.Values(chain))
		center[c], width[c] = sample.Quantile(x, 0.5), (sample.Quantile(x, 0.75)-sample.Quantile(x, 0.25))/normalHalf
	}
	if slices.Min(width) == 0 {
		y, _ := standardised(u)
		for c, chain := range y {
			mean, variance := sample.MeanVar(chain)
			center[c], width[c] = mean, math.Sqrt(variance)
		}
	}
	for c := range u {
		low, high = min(low, center[c]), max(high, center[c])
		least, most = min(least, width[c]), max(most, width[c])
		within += width[c] * width[c] / float64(len(u))
	}
	return (high - low) / math.Sqrt(within), most / least
}

// normalHalf is the range of the middle half of the standard normal distribution.
const normalHalf = 1.3489795003921634

// whole says whether all draws are whole numbers, of which many may well be the same.
func whole(x [][]float64) bool {
	for _, chain := range x {
		if slices.ContainsFunc(chain, func(v float64) bool { return v != math.Trunc(v) }) {
			return false
		}
	}
	return true
}
