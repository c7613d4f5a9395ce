package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
)

// moment is a mean over draws with its Monte-Carlo standard error.
type moment struct{ mean, se float64 }

// moments are the means of the named elements.
func moments(draws map[string][][]float64, names []string) map[string]moment {
	out := map[string]moment{}
	for _, name := range names {
		x := draws[name]
		sum, n := 0.0, 0
		for _, chain := range x {
			for _, v := range chain {
				sum += v
			}
			n += len(chain)
		}
		out[name] = moment{sum / float64(n), diag.MCSEMean(x)}
	}
	return out
}

// apart is the largest difference of two sides' means, each averaged over its rounds, in standard errors of the
// difference: 0 where one has none.
func apart(a, b row) float64 {
	most := 0.0
	averages := averaged(b.means)
	for name, x := range averaged(a.means) {
		if y, ok := averages[name]; ok {
			most = math.Max(most, math.Abs(x.mean-y.mean)/math.Hypot(x.se, y.se)) // NaN stays
		}
	}
	return most
}

// averaged are means over rounds, which are independent.
func averaged(rounds []map[string]moment) map[string]moment {
	out, n := map[string]moment{}, float64(len(rounds))
	for _, round := range rounds {
		for name, m := range round {
			sum := out[name]
			out[name] = moment{sum.mean + m.mean/n, math.Hypot(sum.se, m.se/n)}
		}
	}
	return out
}
