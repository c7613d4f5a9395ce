package approx

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// Trend is the NELBO of a fit so far: means over windows of equal length, for each of K chains. Where there are too
// many windows, two and two become one, so that a trend has the same size however long the fit. It is not changed once
// made.
type Trend struct {
	Length int         // updates in a window
	Means  [][]float64 // of each chain; the last window may not be full
	Counts [][]int     // updates in each window that were not held
	Last   int         // updates in the last window, held ones too
}

// mostWindows is how many windows a trend may have; even.
const mostWindows = 64

// With is the trend after one more update; t may be nil.
func (t *Trend) With(nelbo []float64, held []bool) *Trend {
	if t == nil || len(t.Means) != len(nelbo) {
		t = &Trend{Length: 1, Means: make([][]float64, len(nelbo)), Counts: make([][]int, len(nelbo))}
	}
	next := &Trend{Length: t.Length, Means: make([][]float64, len(nelbo)), Counts: make([][]int, len(nelbo))}
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
func windowSum(mean float64, count int) float64 { return mean * float64(count) }

// Bytes is a trend for a checkpoint.
func (t *Trend) Bytes() []byte {
	if t == nil {
		return nil
	}
	b, err := json.Marshal(t)
	if err != nil { // all numbers are finite
		return nil
	}
	return b
}

// ReadTrend is the trend of a checkpoint; nil where it has none.
func ReadTrend(b []byte) (*Trend, error) {
	if len(b) == 0 {
		return nil, nil
	}
	t := &Trend{}
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

// Notes are what to say of a fit that has not settled, or whose chains found different optima: by a nat and four
// standard errors. gap is how many nats the NELBOs of the chains are apart. The temperature is that of the NELBOs, name
// that of the method, updates its default, and longer what makes its steps longer.
func (t *Trend) Notes(name string, updates int, longer string, steps int, temperature float64) (notes []draws.Note,
	gap float64) {
	// In nats: the NELBO of a run at temperature T is T times that of the tempered density.
	nat := 1.0
	if temperature > 0 {
		nat = temperature
	}
	worst, climbs := 0.0, 0
	best, least, se := 0, 0, 0.0
	finals := make([]float64, len(t.Means))
	for k := range t.Means {
		before, after, noise, ok := t.ends(k)
		if !ok {
			return []draws.Note{{Kind: "elbo_not_settled", Serious: true,
				Text:   fmt.Sprintf("The fit made %d updates, too few to tell whether the ELBO has settled.", steps),
				Advice: fmt.Sprintf("Increase infer.Options.Warmup; %d is the default of %s.", updates, name)}}, 0
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
	gap = (finals[least] - finals[best]) / nat
	switch {
	case climbs > 0:
		notes = append(notes, draws.Note{Kind: "elbo_not_settled", Serious: true,
			Text: fmt.Sprintf("The ELBO of %d of %d chains still climbs: by %.3g nats between the last two "+
				"quarters of %d updates.", climbs, len(finals), worst, steps),
			Advice: longer})
	case gap > max(1, 4*se/nat):
		notes = append(notes, draws.Note{Kind: "different_optima", Serious: true,
			Text: fmt.Sprintf("The chains ended at different optima: the ELBO of chain %d is %.3g nats below that of "+
				"chain %d.", least, gap, best),
			Advice: fmt.Sprintf("Use the draws of chain %d alone, or increase %s{Samples} and infer.Options.Warmup.",
				best, name)})
	}
	return notes, gap
}

// ends compares the last quarter of the windows of chain k with the quarter before: their means and the standard error
// of the difference, from the spread of the windows. ok is false where there are too few updates to say.
func (t *Trend) ends(k int) (before, after, se float64, ok bool) {
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

// LongerSteps is what makes the steps of an optimiser longer.
func LongerSteps(name string) string {
	return fmt.Sprintf("Increase infer.Options.Warmup (with an Optimizer of your own let its step size fall over as many "+
		"updates), or set %s{Optimizer: optim.Adam{LR: ...}} to a larger step.", name)
}
