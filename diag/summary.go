package diag

import (
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// SummaryOptions chooses rows and columns of [Summary]. The zero value is the table that ArviZ prints.
type SummaryOptions struct {
	// Sites are the sites to summarise, in this order; empty is all in the order of the draws, for those of a run that of
	// their names. A program's Latents are in the order of its model.
	Sites []string
	// HDIProb is the probability of the highest-density interval, above 0 and at most 1. 0 is the default: 0.94, or no
	// interval if there are Quantiles.
	HDIProb float64
	// Quantiles are probabilities of quantiles to show, each in [0, 1], such as 0.05, 0.5 and 0.95. The default is none.
	Quantiles []float64
	// Decimals is the number of digits after the point, at most, of means, deviations and quantiles; 0 is the default 3.
	Decimals int
}

// Row is the summary of one scalar element, the row of [draws.Draws.Summary] and what chains say of its accuracy.
type Row struct {
	draws.Row
	// HDILow and HDIHigh are the ends of the highest-density interval, NaN if the table has none.
	HDILow, HDIHigh float64
	// MCSEMean and MCSESD are the Monte-Carlo standard errors of Mean and SD.
	MCSEMean, MCSESD float64
	// ESSBulk and ESSTail are effective sample sizes, RHat is the rank-normalised split R-hat.
	ESSBulk, ESSTail, RHat float64

	structural bool // see Structural
}

// Structural says whether the element is a constant of its site, a zero or a one of square matrices that move
// elsewhere, such as a Cholesky factor's above its diagonal. Nothing was sampled there, and a text has no line of it.
func (r *Row) Structural() bool { return r.structural }

// Table is a summary, one row for each element.
type Table struct {
	Rows []Row // one for each element
	// HDIProb is the probability of the interval, 0 if there is none; Quantiles are the probabilities of the quantiles.
	HDIProb   float64
	Quantiles []float64
	// Decimals is the largest number of digits shown.
	Decimals int
	// Chains and Draws (of each chain) say what the figures are made of; Dropped counts the draws that were left out
	// because their chain is longer than the shortest.
	Chains, Draws, Dropped int
}

// Summary is one row for each element of the sites. All figures of a row come from the same draws: the first n of each
// chain, n the length of the shortest.
//
// A figure that is not defined is NaN: the diagnostics of an element that never moved or has fewer than 4 draws in a
// chain, and all figures where a draw is NaN. [draws.ErrNoDraws], [draws.ErrRange] for a probability or Decimals, and
// [draws.ErrUnknownName] are the errors.
func Summary(d *draws.Draws, opt SummaryOptions) (*Table, error) {
	if opt.HDIProb == 0 && len(opt.Quantiles) == 0 {
		opt.HDIProb = 0.94
	}
	if !(opt.HDIProb >= 0 && opt.HDIProb <= 1) {
		return nil, failf(draws.ErrRange, "summary: HDIProb is %v, want above 0 and at most 1", opt.HDIProb)
	}
	for _, p := range opt.Quantiles {
		if err := checkProbability("summary: Quantiles", p); err != nil {
			return nil, err
		}
	}
	if opt.Decimals == 0 {
		opt.Decimals = 3
	}
	if opt.Decimals < 0 || opt.Decimals > 15 {
		return nil, failf(draws.ErrRange, "summary: Decimals is %d, want 1 to 15, or 0 for 3", opt.Decimals)
	}
	elements, err := selected(d, "summary", opt.Sites)
	if err != nil {
		return nil, err
	}
	t := &Table{
		Rows: make([]Row, len(elements)), HDIProb: opt.HDIProb, Quantiles: slices.Clone(opt.Quantiles),
		Decimals: opt.Decimals, Chains: d.Chains(), Draws: d.MinLen(), Dropped: d.Total() - d.Chains()*d.MinLen(),
	}
	names := d.Names()
	fixed := structural(d)
	sample.Each(len(elements), func(i int) {
		t.Rows[i] = summarise(traces(d, elements[i]), opt)
		t.Rows[i].structural = fixed[elements[i]]
		t.Rows[i].Name = names[elements[i]]
	})
	return t, nil
}

// selected are the indices of the elements of the named sites, or of all; every chain must have draws.
func selected(d *draws.Draws, doing string, sites []string) ([]int, error) {
	if d == nil || d.MinLen() == 0 {
		return nil, failf(draws.ErrNoDraws, "%s: every chain needs at least one draw", doing)
	}
	var elements []int
	if len(sites) == 0 {
		for i := range d.Dim() {
			elements = append(elements, i)
		}
	}
	for _, name := range sites {
		s, err := d.Site(name)
		if err != nil {
			return nil, err
		}
		for i := range s.Size {
			elements = append(elements, s.Offset+i)
		}
	}
	return elements, nil
}

// traces are the chains of one element, cut to the length of the shortest.
func traces(d *draws.Draws, element int) [][]float64 {
	x := make([][]float64, d.Chains())
	for c := range x {
		x[c] = d.Element(c, element)[:d.MinLen()]
	}
	return x
}

func summarise(x [][]float64, opt SummaryOptions) Row {
	row := Row{HDILow: math.NaN(), HDIHigh: math.NaN(), MCSEMean: MCSEMean(x), MCSESD: MCSESD(x)}
	row.RHat, row.ESSBulk, row.ESSTail = convergence(x)
	all := pooled(x)
	row.Mean, row.SD, row.Quantiles = sample.Describe(all, opt.Quantiles)
	if opt.HDIProb > 0 {
		row.HDILow, row.HDIHigh = hdiOfSorted(all, opt.HDIProb)
	}
	return row
}

// HDI is the highest-density interval of draws with the probability prob: of the intervals between order statistics
// x(i) and x(i+k), k = floor(prob n), the narrowest, and of equally narrow ones the lowest. It is one interval, also
// where the density has two peaks. Chen and Shao (1999), Journal of Computational and Graphical Statistics 8, 69-92; as
// in ArviZ.
//
// Both ends are NaN if a draw is NaN or there are none. prob = 1 is the range of the draws. A [draws.ErrRange] says
// that prob is not above 0 and at most 1.
func HDI(x []float64, prob float64) (low, high float64, err error) {
	if !(prob > 0 && prob <= 1) {
		return math.NaN(), math.NaN(), failf(draws.ErrRange, "hdi: probability is %v, want above 0 and at most 1", prob)
	}
	sorted := slices.Clone(x)
	slices.Sort(sorted) // NaNs come first
	low, high = hdiOfSorted(sorted, prob)
	return low, high, nil
}

func hdiOfSorted(x []float64, prob float64) (low, high float64) {
	n := len(x)
	if n == 0 || math.IsNaN(x[0]) {
		return math.NaN(), math.NaN()
	}
	k := min(int(prob*float64(n)), n-1)
	best := 0
	for i := 1; i+k < n; i++ {
		if x[i+k]-x[i] < x[best+k]-x[best] {
			best = i
		}
	}
	return x[best], x[best+k]
}
