package main

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
)

// claim is one of the paper. Its margin, from pairs of one seed, is above 0 where it holds.
type claim struct {
	Claim  string         `json:"claim"`
	Margin seeds.Estimate `json:"margin"`
	Holds  bool           `json:"holds"` // by more than two standard errors; never with one seed
}

// forgotten is how much higher the losses on the episodes before the last are at the end than when they had just been
// learned, on average.
func forgotten(losses [][]float64) (mean float64) {
	last := len(losses) - 1
	for i, x := range losses[last][:last] {
		mean += (x - losses[i][i]) / float64(last)
	}
	return mean
}

// claimsOf compares what the seeds gave with figures 6 and 7 and table 1 of the paper.
func claimsOf(s settings, all []outcome) (out []claim) {
	one, other := laplaceWay(s.Lambda[0]).name, laplaceWay(s.Lambda[1]).name
	forgets := func(o outcome, way string) float64 { return forgotten(o.Learned.Losses[way]) }
	atEnd := func(o outcome, way string) float64 {
		return excess(o.Learned.Losses[way], o.Learned.Single)[len(episodes)-1]
	}
	detects := func(o outcome, method string) detection {
		return o.Outliers[slices.IndexFunc(o.Outliers, func(d detection) bool { return d.Method == method })]
	}
	for _, c := range []struct {
		claim  string
		margin func(o outcome) float64
	}{
		{"sequential MAP forgets", func(o outcome) float64 { return forgets(o, sequential) }},
		{one + ", forgets less", func(o outcome) float64 { return forgets(o, sequential) - forgets(o, one) }},
		{other + ", forgets less", func(o outcome) float64 { return forgets(o, sequential) - forgets(o, other) }},
		{one + ", has a lower loss at the end", func(o outcome) float64 { return atEnd(o, sequential) - atEnd(o, one) }},
		{other + ", has a lower loss at the end",
			func(o outcome) float64 { return atEnd(o, sequential) - atEnd(o, other) }},
		{"offline has the lowest", func(o outcome) float64 {
			return min(atEnd(o, sequential), atEnd(o, one), atEnd(o, other)) - atEnd(o, offline)
		}},
		{"total uncertainty tells better after SGD than before",
			func(o outcome) float64 { return detects(o, methodSGD).Total - detects(o, methodBase).Total }},
		{"and better after serial SGHMC",
			func(o outcome) float64 { return detects(o, methodSerial).Total - detects(o, methodSGD).Total }},
		{"and better after parallel SGHMC",
			func(o outcome) float64 { return detects(o, methodParallel).Total - detects(o, methodSerial).Total }},
		{"epistemic uncertainty tells better in parallel than serial",
			func(o outcome) float64 {
				return detects(o, methodParallel).Epistemic - detects(o, methodSerial).Epistemic
			}},
		{"in parallel it tells better than the total",
			func(o outcome) float64 {
				return detects(o, methodParallel).Epistemic - detects(o, methodParallel).Total
			}},
		{"serial, it is lower for what is foreign (AUROC below 1/2)",
			func(o outcome) float64 { return 0.5 - detects(o, methodSerial).Epistemic }},
	} {
		var x []float64
		for _, o := range all {
			x = append(x, c.margin(o))
		}
		out = append(out, claim{c.claim, seeds.Over(x), seeds.Positive(x)})
	}
	return out
}
