package survival

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Cox is Cox's proportional hazards model (1972) without its baseline: each event tells of who had it among those at
// risk then.
type Cox struct {
	Time  []float64 // of the event, or the end of observation
	Event []bool    // whether there was one
	// Entry is when observation began, below Time: who enters at an event or later is not at risk then (left truncation,
	// Andersen and Gill 1982). Nil is before all events.
	Entry []float64
}

// LogPartial is the logarithm of the partial likelihood at the log hazard ratios eta, of shape [N], as a number for
// Factor. With D the d events at a time t and R those who were at risk then, of an entry before t and a time not before
// t, the term of the l-th of D, l from 0, is (Efron 1977)
//
//	eta_i − log(Σ_R exp(eta) − l/d Σ_D exp(eta))
//
// What is wrong panics with a [dist.Error].
func (m Cox) LogPartial(eta torch.Tensor) torch.Tensor {
	order, terms := m.plan(eta)
	sorted := eta.IndexSelect(0, torch.New(order))
	top := torch.Of(sorted.T().MustDetach(false).MustAmax([]int64{0}, true, false))
	sums := func(eta torch.Tensor) func(index []int) torch.Tensor { // of the first of them
		r := eta.Sub(top).Exp()
		of := torch.Cat(0, torch.New([]float64{0}), torch.Of(r.T().MustCumsum(0, r.T().DType(), false)))
		return func(index []int) torch.Tensor { return of.IndexSelect(0, torch.New(index)) }
	}
	at := sums(sorted)
	risk := at(terms.riskEnd).Sub(at(terms.tiedEnd).Sub(at(terms.tiedStart)).Mul(torch.New(terms.share)))
	if m.Entry != nil {
		entries, late := m.late(order, terms)
		risk = risk.Sub(sums(eta.IndexSelect(0, torch.New(entries)))(late))
	}
	events := sorted.IndexSelect(0, torch.New(terms.event))
	return events.Sub(risk.Log()).Sub(top).Sum()
}

// coxTerms has, for each event, its place among the sorted, the ends of those at risk and of those tied with it, and
// the share of the latter that is taken off.
type coxTerms struct {
	event, riskEnd, tiedStart, tiedEnd []int
	share                              []float64
}

// late sorts by entry, the last first, and says for each event how many of these enter at it or later.
func (m Cox) late(order []int, terms coxTerms) (entries, late []int) {
	entries = slices.Clone(order)
	slices.SortStableFunc(entries, func(a, b int) int { return cmp.Compare(m.Entry[b], m.Entry[a]) })
	n := 0
	for _, event := range terms.event { // the last first
		for n < len(entries) && m.Entry[entries[n]] >= m.Time[order[event]] {
			n++
		}
		late = append(late, n)
	}
	return entries, late
}

// plan sorts by time, the last first, and events first among equals.
func (m Cox) plan(eta torch.Tensor) (order []int, terms coxTerms) {
	n := len(m.Time)
	if shape := eta.Shape(); len(m.Event) != n || len(shape) != 1 || shape[0] != n {
		panic(&dist.Error{Distribution: "Cox", Parameter: "eta", Value: fmt.Sprintf("of shape %v", shape),
			Allowed: fmt.Sprintf("there are %d times and %d events: all are of one length", n, len(m.Event))})
	}
	for i := range n {
		order = append(order, i)
		if m.Entry != nil && (len(m.Entry) != n || !(m.Entry[i] < m.Time[i])) {
			panic(&dist.Error{Distribution: "Cox", Parameter: "Entry", Value: fmt.Sprint(m.Entry),
				Allowed: fmt.Sprintf("there are %d, each below its time: that of %d is %g", n, i, m.Time[i])})
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case m.Time[a] != m.Time[b]:
			return map[bool]int{true: -1, false: 1}[m.Time[a] > m.Time[b]]
		case m.Event[a] != m.Event[b]:
			return map[bool]int{true: -1, false: 1}[m.Event[a]]
		}
		return 0
	})
	for from := 0; from < n; {
		to, d := from, 0
		for to < n && m.Time[order[to]] == m.Time[order[from]] {
			if m.Event[order[to]] {
				d++
			}
			to++
		}
		for l := range d {
			terms.event = append(terms.event, from+l)
			terms.riskEnd = append(terms.riskEnd, to)
			terms.tiedStart, terms.tiedEnd = append(terms.tiedStart, from), append(terms.tiedEnd, from+d)
			terms.share = append(terms.share, float64(l)/float64(d))
		}
		from = to
	}
	if len(terms.event) == 0 {
		panic(&dist.Error{Distribution: "Cox", Parameter: "Event", Value: "without an event",
			Allowed: "at least one is required"})
	}
	return order, terms
}
