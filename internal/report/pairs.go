package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

const (
	maxPair       = 5   // elements of a pair plot
	pairDraws     = 400 // its draws
	pairDivergent = 150 // how many of them at most are draws that diverged, if there are as many others
	traceTicks    = 600 // places along a trace where a divergence can be marked
)

// positions are the draws that a pair plot shows, the same ones for all elements.
type positions struct {
	chain, draw []int
	marks       string // "1" for one that diverged, else "0"
}

// divergent says of each draw of each chain whether it diverged; nil if that is not known.
func divergent(d *draws.Draws) [][]bool {
	traces := statistic(d, draws.StatDivergent)
	if traces == nil {
		return nil
	}
	out := make([][]bool, len(traces))
	for c, trace := range traces {
		out[c] = make([]bool, len(trace))
		for i, v := range trace {
			out[c][i] = v != 0
		}
	}
	return out
}

// pairPositions takes draws evenly from those that diverged and from the others.
func pairPositions(d *draws.Draws) positions {
	diverged := divergent(d)
	var bad, good [][2]int
	for c := range d.Chains() {
		for i := range d.Len(c) {
			if diverged != nil && diverged[c][i] {
				bad = append(bad, [2]int{c, i})
			} else {
				good = append(good, [2]int{c, i})
			}
		}
	}
	bad = sample.Evenly(bad, max(pairDivergent, pairDraws-len(good)))
	good = sample.Evenly(good, pairDraws-len(bad))
	var p positions
	for _, at := range append(good, bad...) { // divergent draws last, on top
		p.chain, p.draw = append(p.chain, at[0]), append(p.draw, at[1])
	}
	p.marks = strings.Repeat("0", len(good)) + strings.Repeat("1", len(bad))
	return p
}

// of are the values of an element at the positions.
func (p positions) of(d *draws.Draws, element int) []float64 {
	out := make([]float64, len(p.draw))
	for k := range out {
		out[k] = d.Row(p.chain[k], p.draw[k])[element]
	}
	return out
}

// divergentTicks are the places of the divergent draws of all chains in [0, longest chain], packed, at most traceTicks.
func divergentTicks(d *draws.Draws) string {
	hit := make([]bool, traceTicks)
	for _, chain := range divergent(d) {
		for i, bad := range chain {
			if bad {
				hit[(2*i+1)*traceTicks/(2*d.MaxLen())] = true // the middle of the draw
			}
		}
	}
	var at []float64
	for k, ok := range hit {
		if ok {
			at = append(at, (float64(k)+0.5)/traceTicks)
		}
	}
	return pack(at, 0, 1)
}

// pairElements are the elements of the pair plot: those named, or up to four chosen ones, see [Options].
func pairElements(d *draws.Draws, names []string, order []int, at positions, wanted []string) ([]int, error) {
	if len(wanted) > 0 {
		var pair []int
		for _, name := range wanted {
			i := slices.Index(names, name)
			if i < 0 {
				return nil, fmt.Errorf("%w: the pair plot wants %q, which is not an element such as theta[0]", draws.ErrUnknownName,
					name)
			}
			if !slices.Contains(pair, i) {
				pair = append(pair, i)
			}
		}
		return pair, nil
	}
	first := strings.IndexByte(at.marks, '1')
	apart := make([]float64, len(names))
	var moving []int
	for _, i := range order {
		values := at.of(d, i)
		if low, high, ok := finiteRange(values); !ok || !(low < high) {
			continue
		}
		moving = append(moving, i)
		if first > 0 {
			apart[i] = distance(values[:first], values[first:])
		}
	}
	slices.SortStableFunc(moving, func(i, j int) int { return cmp.Compare(apart[j], apart[i]) })
	return moving[:min(4, len(moving))], nil
}

// distance is how far the mean of b is from that of a, in standard deviations of a; 0 if that is not defined.
func distance(a, b []float64) float64 {
	mean, variance := sample.MeanVar(a)
	other, _ := sample.MeanVar(b)
	if v := math.Abs(other-mean) / math.Sqrt(variance); sample.Finite(v) {
		return v
	}
	return 0
}
