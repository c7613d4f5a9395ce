package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// fact is one figure of the run. Bad marks one that calls for attention.
type fact struct {
	Name, Value string
	Bad         bool
}

// facts are the figures that head the page, and then further ones.
func facts(d *draws.Draws, more [][2]string) []fact {
	lengths := strconv.Itoa(d.MaxLen())
	if d.MinLen() != d.MaxLen() {
		lengths = fmt.Sprintf("%d to %d", d.MinLen(), d.MaxLen())
	}
	f := []fact{
		{Name: "chains", Value: strconv.Itoa(d.Chains())},
		{Name: "draws in a chain", Value: lengths},
		{Name: "draws in all", Value: strconv.Itoa(d.Total())},
		{Name: "sites", Value: strconv.Itoa(len(d.Sites()))},
		{Name: "elements", Value: strconv.Itoa(d.Dim())},
	}
	diverged := fact{Name: "divergences", Value: "not recorded"}
	if all := divergent(d); all != nil {
		n := 0
		for _, chain := range all {
			n += count(chain)
		}
		diverged.Value, diverged.Bad = strconv.Itoa(n), n > 0
	}
	f = append(f, diverged)
	for _, m := range more {
		m := valid(m[:])
		f = append(f, fact{Name: m[0], Value: m[1]})
	}
	stats := "none"
	if names := d.Stats(); len(names) > 0 {
		stats = strings.Join(names, ", ")
	}
	return append(f, fact{Name: "statistics", Value: shown(stats)})
}

// chainTable has a row for each chain, at most 64, with what the sampler recorded.
type chainTable struct {
	Head []string
	Rows [][]fact
	More int // chains without a row
}

func chainsOf(d *draws.Draws) chainTable {
	t := chainTable{Head: []string{"chain", "draws"}}
	type column struct {
		traces [][]float64
		of     func([]float64) fact
	}
	var columns []column
	add := func(head, stat string, of func([]float64) fact) {
		if traces := statistic(d, stat); traces != nil {
			t.Head = append(t.Head, head)
			columns = append(columns, column{traces, of})
		}
	}
	plain := func(f func([]float64) float64) func([]float64) fact {
		return func(x []float64) fact { return fact{Value: short(f(x))} }
	}
	add("divergences", draws.StatDivergent, func(x []float64) fact {
		n := 0
		for _, v := range x {
			if v != 0 {
				n++
			}
		}
		return fact{Value: strconv.Itoa(n), Bad: n > 0}
	})
	add("mean acceptance", draws.StatAccept, plain(mean))
	add("last step size", draws.StatStepSize, plain(func(x []float64) float64 { return x[len(x)-1] }))
	add("largest tree depth", draws.StatTreeDepth, plain(slices.Max[[]float64]))
	add("mean leapfrog steps", draws.StatLeapfrog, plain(mean))
	add("E-BFMI", draws.StatEnergy, func(x []float64) fact {
		v := diag.EBFMI(x)
		return fact{Value: short(v), Bad: v < 0.3}
	})
	for c := range min(d.Chains(), 64) {
		row := []fact{{Value: strconv.Itoa(c)}, {Value: strconv.Itoa(d.Len(c))}}
		for _, col := range columns {
			row = append(row, col.of(col.traces[c]))
		}
		t.Rows = append(t.Rows, row)
	}
	t.More = d.Chains() - len(t.Rows)
	return t
}

// factsOf are the figures of an element in one line.
func factsOf(r *diag.Row) string {
	return fmt.Sprintf("mean %s, sd %s, R-hat %s, ESS bulk %s, tail %s", short(r.Mean), short(r.SD), places(r.RHat, 3),
		places(r.ESSBulk, 0), places(r.ESSTail, 0))
}

// noteOf says what is unusual about the draws of an element; empty if nothing is.
func noteOf(x [][]float64) string {
	var notes []string
	nan, inf, n := 0, 0, 0
	for _, c := range x {
		for _, v := range c {
			n++
			switch {
			case math.IsNaN(v):
				nan++
			case math.IsInf(v, 0):
				inf++
			}
		}
	}
	if nan > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d draws are NaN.", nan, n))
	}
	if inf > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d draws are infinite.", inf, n))
	}
	if low, high, ok := finiteRange(x...); ok && low == high {
		notes = append(notes, fmt.Sprintf("All finite draws are %s.", short(low)))
	}
	return strings.Join(notes, " ")
}

// short is a number with four significant digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// places is a number with some decimals, or short where that would be long.
func places(v float64, decimals int) string {
	if math.Abs(v) >= 1e9 || !sample.Finite(v) {
		return short(v)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func count(x []bool) (n int) {
	for _, v := range x {
		if v {
			n++
		}
	}
	return n
}

func mean(x []float64) float64 {
	m, _ := sample.MeanVar(x)
	return m
}

// finding is the findings of one kind: the first ones in full, the others counted, and the advice once.
type finding struct {
	Severity string
	Code     string
	Messages []string
	More     int
	Advice   string
}

// findings groups the findings of a diagnosis by kind, in their order.
func findings(r *diag.Report) []finding {
	const most = 5
	var out []finding
	for _, same := range r.Groups() {
		f := same[0]
		kind := finding{Severity: f.Severity.String(), Code: string(f.Code), More: max(len(same)-most, 0), Advice: f.Advice}
		for _, g := range same[:min(most, len(same))] {
			kind.Messages = append(kind.Messages, shown(g.Message))
		}
		out = append(out, kind)
	}
	return out
}

// checked lists the checks that were made.
func checked(r *diag.Report) string {
	var codes []string
	for _, c := range r.Checked {
		codes = append(codes, string(c))
	}
	return strings.Join(codes, ", ")
}
