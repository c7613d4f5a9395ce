package vi

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/climb"
	"github.com/kelvin-ppl/kelvin/infer/internal/fitcheck"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// far is what to do about a fit that is far from the posterior, for each family.
var far = map[string]string{
	"diag": "compare with hmc.NUTS; vi.Dense has correlations, and a hierarchical model is nearer to a normal " +
		"distribution in its non-centred form.",
	"dense": "compare with hmc.NUTS; a hierarchical model is nearer to a normal distribution in its non-centred form.",
	"low_rank": "compare with hmc.NUTS; vi.Dense has all correlations, and a hierarchical model is nearer to a normal " +
		"distribution in its non-centred form.",
}

// trend is the NELBO of a fit so far: means over windows of equal length, for each of K chains. Where there are too
// many windows, two and two become one, so that a trend has the same size however long the fit. It is not changed once
// made.
type trend struct {
	Length int64       // updates in a window
	Means  [][]float64 // of each chain; the last window may not be full
	Counts [][]int64   // updates in each window that were not held
	Last   int64       // updates in the last window, held ones too
}

// mostWindows is how many windows a trend may have; even.
const mostWindows = 64

// with is the trend after one more update; t may be nil.
func (t *trend) with(nelbo []float64, held []bool) *trend {
	if t == nil || len(t.Means) != len(nelbo) {
		t = &trend{Length: 1, Means: make([][]float64, len(nelbo)), Counts: make([][]int64, len(nelbo))}
	}
	next := &trend{Length: t.Length, Means: make([][]float64, len(nelbo)), Counts: make([][]int64, len(nelbo))}
	windows := len(t.Means[0])
	merge := windows == mostWindows && t.Last == t.Length
	open := windows == 0 || t.Last == t.Length
	if next.Last = t.Last + 1; open {
		next.Last = 1
	}
	if merge {
		next.Length *= 2
	}
	for k, v := range nelbo {
		means, counts := slices.Clone(t.Means[k]), slices.Clone(t.Counts[k])
		if merge {
			for i := range windows / 2 {
				a, b := counts[2*i], counts[2*i+1]
				means[i], counts[i] = 0, a+b
				if a+b > 0 {
					means[i] = (windowSum(t.Means[k][2*i], a) + windowSum(t.Means[k][2*i+1], b)) / float64(a+b)
				}
			}
			means, counts = means[:windows/2], counts[:windows/2]
		}
		if open {
			means, counts = append(means, 0), append(counts, 0)
		}
		if i := len(means) - 1; (held == nil || !held[k]) && !math.IsNaN(v) && !math.IsInf(v, 0) {
			counts[i]++
			means[i] += (v - means[i]) / float64(counts[i])
		}
		next.Means[k], next.Counts[k] = means, counts
	}
	return next
}

// windowSum is the sum of a window.
func windowSum(mean float64, count int64) float64 { return mean * float64(count) }

// bytes is a trend for a checkpoint.
func (t *trend) bytes() []byte {
	if t == nil {
		return nil
	}
	b, err := json.Marshal(t)
	if err != nil { // all numbers are finite
		return nil
	}
	return b
}

func readTrend(b []byte) (*trend, error) {
	if len(b) == 0 {
		return nil, nil
	}
	t := &trend{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("the NELBO so far cannot be read: %w", err)
	}
	for k := range t.Means {
		if len(t.Counts) != len(t.Means) || len(t.Counts[k]) != len(t.Means[k]) || len(t.Means[k]) != len(t.Means[0]) {
			return nil, fmt.Errorf("the NELBO so far is damaged")
		}
	}
	return t, nil
}

// ends compares the last quarter of the windows of chain k with the quarter before: their means and the standard error
// of the difference, from the spread of the windows. ok is false where there are too few updates to say.
func (t *trend) ends(k int) (before, after, se float64, ok bool) {
	quarter := len(t.Means[k]) / 4
	if quarter < 4 {
		return 0, 0, 0, false
	}
	n := len(t.Means[k])
	before, one := windowMean(t.Means[k][n-2*quarter : n-quarter])
	after, two := windowMean(t.Means[k][n-quarter:])
	return before, after, math.Hypot(one, two), true
}

// windowMean is the mean of numbers and its standard error.
func windowMean(x []float64) (mean, se float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se / float64(len(x)*(len(x)-1)))
}

// Notes are what a run says of its fit: whether the ELBO has settled, whether the chains found the same optimum, and
// how near it is to the posterior.
func (t *fit) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := t.own(state)
	if err != nil || s.trend == nil {
		return nil
	}
	// In nats: the NELBO of a run at temperature T is T times that of the tempered density.
	nat := 1.0
	if run.Info.Temperature > 0 {
		nat = run.Info.Temperature
	}
	var notes []draws.Note
	worst, climbs := 0.0, 0
	best, least, se := 0, 0, 0.0
	finals := make([]float64, len(s.trend.Means))
	for k := range s.trend.Means {
		before, after, noise, ok := s.trend.ends(k)
		if !ok {
			return []draws.Note{{Kind: "elbo_not_settled", Serious: true,
				Text: fmt.Sprintf("The fit made %d updates, too few to tell whether the ELBO has settled.",
					s.Steps()),
				Advice: fmt.Sprintf("Increase infer.Options.Warmup; %d is the default of %s.", climb.Decay, t.name)}}
		}
		if gain := (before - after) / nat; gain > max(1, 4*noise/nat) {
			climbs++
			worst = max(worst, gain)
		}
		finals[k], se = after, max(se, noise)
		if after < finals[best] {
			best = k
		}
		if after > finals[least] {
			least = k
		}
	}
	if climbs > 0 {
		notes = append(notes, draws.Note{Kind: "elbo_not_settled", Serious: true,
			Text: fmt.Sprintf("The ELBO of %d of %d chains still climbs: by %.3g nats between the last two "+
				"quarters of %d updates.", climbs, len(finals), worst, s.Steps()),
			Advice: fmt.Sprintf("Increase infer.Options.Warmup (with an Optimizer of your own let its step size fall "+
				"over as many updates), or set %s{Optimizer: optim.Adam{LR: ...}} to a larger step.", t.name)})
	}
	if gap := (finals[least] - finals[best]) / nat; climbs == 0 && gap > max(1, 4*se/nat) {
		notes = append(notes, draws.Note{Kind: "different_optima", Serious: true,
			Text: fmt.Sprintf("The chains ended at different optima: the ELBO of chain %d is %.3g nats below that of "+
				"chain %d.", least, gap, best),
			Advice: fmt.Sprintf("Use the draws of chain %d alone, or increase %s{Samples} and infer.Options.Warmup.",
				best, t.name)})
	} else if off, at := s.apart(); climbs == 0 && off > apartLimit {
		notes = append(notes, draws.Note{Kind: "fits_differ", Serious: off > 1,
			Text: fmt.Sprintf("The fits of the chains differ: their means of %s are %.2g standard deviations of the fits "+
				"apart, their ELBOs %.2g nats.", s.Mean.Layout.At(at), off, gap),
			Advice: fmt.Sprintf("%s: the posterior may have several modes, or the ELBO a flat ridge, and the draws take "+
				"each fit as equally likely: compare with hmc.NUTS.", t.name)})
	}
	if climbs == 0 && (len(notes) == 0 || notes[0].Kind != "different_optima") {
		notes = append(notes, t.closeness(s, run)...)
	}
	return notes
}

// apartLimit is how far the means of two chains may be from one another, in standard deviations of the fits. Ends of
// the default optimiser at one optimum are less than a tenth apart.
const apartLimit = 0.3

// apart is the largest distance between means of an element in two chains, in standard deviations of the fits (the root
// of their mean square), and the element.
func (s State) apart() (off float64, at int) {
	_ = torch.Do(func(*torch.Scope) error {
		means, variances := torch.Must(s.Mean.Values()), torch.Must(torch.ToSlice[float64](s.gaussian().variance()))
		k, d := s.Mean.Chains(), s.Mean.Layout.Dim()
		for j := range d {
			least, most, square := math.Inf(1), math.Inf(-1), 0.0
			for c := range k {
				least, most = min(least, means[c*d+j]), max(most, means[c*d+j])
				square += variances[c*d+j] / float64(k)
			}
			if v := (most - least) / math.Sqrt(square); v > off {
				off, at = v, j
			}
		}
		return nil
	})
	return off, at
}

// closeness compares a fit that has settled with the posterior.
func (t *fit) closeness(s State, run infer.RunSummary) []draws.Note {
	if t.klWeight(max(s.Steps()-1, 0)) != 1 {
		return nil // it is of another distribution
	}
	return fitcheck.Notes(fitcheck.Fit{Name: t.name, Target: t.target, Temperature: run.Info.Temperature,
		Batch: run.Batch, Mean: s.Mean, Advice: far[t.family.name()],
		Width: t.family.noise(int64(s.Mean.Layout.Dim())),
		Map: func(eps *ts.Tensor) (deviations, logq *ts.Tensor, err error) {
			q := s.gaussian()
			deviations = q.apply(eps)
			logq, _ = q.density(eps, deviations)
			return deviations, logq, nil
		}})
}
