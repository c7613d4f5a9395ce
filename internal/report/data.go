package report

import (
	"encoding/json"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// maxChains is the largest number of chains that a plot shows.
const maxChains = 16

// data is what the script draws from. Field names are short since most are written for each element.
type data struct {
	Lengths   []int       `json:"lengths"`   // draws of each chain
	Details   int         `json:"details"`   // elements that are drawn at once
	Divergent string      `json:"divergent"` // where draws diverged in [0, longest chain], packed
	PairDraws string      `json:"pairdraws"` // "1" for each draw of the pair plot that diverged, else "0"
	Pair      []int       `json:"pair"`      // elements of the pair plot
	Energy    *energyData `json:"energy"`    // nil where there are no energies
	Elements  []element   `json:"elements"`  // worst first
	Forest    *forestData `json:"forest"`    // nil where no element has draws that are finite and vary
	// Checks are the densities of data and replicates, nil for none.
	Checks []predictiveData `json:"checks"`
}

// element is one parameter element.
type element struct {
	Name  string  `json:"n"`
	Facts string  `json:"f"` // mean, sd and so on, as text
	Note  string  `json:"w,omitempty"`
	Bad   bool    `json:"b,omitempty"` // R-hat or effective sample sizes call for attention
	Chain []int   `json:"c"`           // the chains shown; the lists below have one entry for each
	Low   float64 `json:"lo"`          // the range of traces
	High  float64 `json:"hi"`
	// Trace, Auto and Dens are packed: traces from Low to High, autocorrelations from -1 to 1, densities from 0 to the
	// height of the plot. Dens covers [DensLow, DensHigh], as do HDILow and HDIHigh, from 0 to 1.
	Trace    []string    `json:"t"`
	Auto     []string    `json:"a,omitempty"`
	Dens     []string    `json:"d,omitempty"`
	DensLow  float64     `json:"dl"`
	DensHigh float64     `json:"dh"`
	HDI      *[2]float64 `json:"h,omitempty"`
	Ranks    [][]int     `json:"r,omitempty"`
	Expected []float64   `json:"e,omitempty"` // ranks that each bin would hold, in each chain, were they uniform
	Pair     string      `json:"p"`           // values at the draws of the pair plot, packed from PairLow to PairHigh
	PairLow  float64     `json:"pl"`
	PairHigh float64     `json:"ph"`
}

// resolution is how finely an element is shown: points of a trace, cells of a density, lags of an autocorrelation.
type resolution struct{ points, cells, lags int }

// fineness are the resolutions from fine to coarse. Elements drawn at once have the first that fits, the others one of
// those after it.
var fineness = []resolution{{600, 120, 100}, {240, 60, 50}, {160, 60, 40}, {100, 48, 30}, {60, 40, 24}}

// bytesOf is about the size of an element of some chains, without its names.
func (r resolution) bytesOf(chains int) int {
	return chains*(2*r.points+2*r.cells+2*r.lags+20*4+20) + 2*pairDraws + 400
}

// makeData collects the numbers of the plots of the elements in order, as many as fit into the
// budget; plotted are those.
func makeData(d *draws.Draws, names []string, summary *diag.Table, order []int, o Options) (out *data,
	plotted map[int]bool, err error) {
	out = &data{Divergent: divergentTicks(d), Energy: energyOf(d), Forest: forestOf(d, names, summary.Rows),
		Details: o.Details, Pair: []int{},
		Elements: []element{}}
	for c := range d.Chains() {
		out.Lengths = append(out.Lengths, d.Len(c))
	}
	at := pairPositions(d)
	out.PairDraws = at.marks
	pair, err := pairElements(d, names, order, at, o.Pair)
	if err != nil {
		return nil, nil, err
	}
	order = movedFirst(order, pair, o.Details)
	chains := min(d.Chains(), maxChains)
	left := dataBudget - 8*d.Chains()
	place := map[int]int{}
	plotted = map[int]bool{}
	for k, i := range order {
		todo := len(order) - k
		wanted := fineness[:1]
		if k >= o.Details {
			wanted = fineness[1:]
		} else {
			todo = min(todo, o.Details-k)
		}
		res := wanted[len(wanted)-1]
		for _, r := range wanted {
			if r.bytesOf(chains)*todo <= left {
				res = r
				break
			}
		}
		if k < o.Details && res.bytesOf(chains)*todo > left { // many details: as coarse as needed
			res = fineness[len(fineness)-1]
		}
		e := makeElement(d, names[i], &summary.Rows[i], i, res, at)
		e.Bad = flagged(&summary.Rows[i], summary.MinESS())
		encoded, err := json.Marshal(e)
		if err != nil {
			return nil, nil, err
		}
		if left -= len(encoded) + 1; left < 0 {
			break
		}
		place[i], plotted[i] = k, true
		out.Elements = append(out.Elements, e)
	}
	out.Details = min(out.Details, len(out.Elements))
	for _, i := range pair {
		if k, ok := place[i]; ok {
			out.Pair = append(out.Pair, k)
		}
	}
	return out, plotted, nil
}

// movedFirst moves the elements of the pair plot to the end of those drawn at once, where they would be beyond, so that
// their numbers are sure to fit.
func movedFirst(order, pair []int, details int) []int {
	first := order[:min(details, len(order))]
	in := map[int]bool{}
	for _, i := range first {
		in[i] = true
	}
	moved := append([]int{}, first...)
	for _, i := range pair {
		if !in[i] {
			in[i] = true
			moved = append(moved, i)
		}
	}
	for _, i := range order {
		if !in[i] {
			moved = append(moved, i)
		}
	}
	return moved
}

func makeElement(d *draws.Draws, name string, row *diag.Row, index int, res resolution, at positions) element {
	x := make([][]float64, d.Chains())
	for c := range x {
		x[c] = d.Element(c, index)
	}
	e := element{Name: name, Facts: factsOf(row), Note: noteOf(x), Chain: drawn(x, maxChains)}
	low, high, ok := finiteRange(x...)
	if ok {
		e.Low, e.High = low, high
	}
	values := at.of(d, index)
	if pl, ph, ok := finiteRange(values); ok {
		e.PairLow, e.PairHigh = pl, ph
	}
	e.Pair = pack(values, e.PairLow, e.PairHigh)
	for _, c := range e.Chain {
		e.Trace = append(e.Trace, pack(downsample(x[c], res.points), e.Low, e.High))
	}
	if !ok || !(low < high) {
		return e
	}
	ranks := sample.Ranks(x)
	var densities [][]float64
	e.DensLow, e.DensHigh, _ = sample.View(x...)
	for _, c := range e.Chain {
		densities = append(densities, sample.Density(x[c], e.DensLow, e.DensHigh, res.cells))
		rho := diag.Autocorrelation(x[c])
		e.Auto = append(e.Auto, pack(rho[:min(len(rho), res.lags+1)], -1, 1))
		e.Ranks = append(e.Ranks, ranks[c])
		n := 0
		for _, k := range ranks[c] {
			n += k
		}
		e.Expected = append(e.Expected, math.Round(100*float64(n)/float64(len(ranks[c])))/100)
	}
	top := sample.Ceiling(densities)
	for _, f := range densities {
		e.Dens = append(e.Dens, pack(f, 0, top))
	}
	if sample.Finite(row.HDILow) && sample.Finite(row.HDIHigh) {
		e.HDI = &[2]float64{inView(row.HDILow, e), inView(row.HDIHigh, e)}
	}
	return e
}

// inView is a place in the density plot, from 0 to 1, with four digits.
func inView(v float64, e element) float64 {
	return math.Round(within(v, e.DensLow, e.DensHigh)*1e4) / 1e4
}
