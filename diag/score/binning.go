package score

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Binning chooses the bins of probabilities. The zero value is 15 bins of equal width.
type Binning struct {
	// Bins is the number of bins; 0 is 15.
	Bins int
	// EqualMass makes bins of nearly equal numbers of cases, for predictions that crowd near 0 or 1 ("adaptive"; Nguyen
	// and O'Connor 2015, Proceedings of EMNLP). Bins end at the probabilities of rank ceil(k n/Bins); equal
	// probabilities stay in one bin. So there are fewer bins where many are equal or cases are few, and none is empty.
	EqualMass bool
}

// mostBins bounds the number of bins: a diagram of more shows nothing.
const mostBins = 1 << 20

// ends are the upper ends of the bins, the last one 1, after a check of p.
func (b Binning) ends(doing string, p []float64) ([]float64, error) {
	if b.Bins < 0 {
		return nil, failf(draws.ErrRange, "%s: %d bins, want at least 1, or 0 for 15", doing, b.Bins)
	}
	if b.Bins > mostBins {
		return nil, failf(draws.ErrRange, "%s: %d bins, want at most %d", doing, b.Bins, mostBins)
	}
	for _, v := range p {
		if err := checkProbability(doing, v); err != nil {
			return nil, err
		}
	}
	if b.Bins == 0 {
		b.Bins = 15
	}
	var high []float64
	if !b.EqualMass {
		for k := range b.Bins {
			high = append(high, float64(k+1)/float64(b.Bins))
		}
		return high, nil
	}
	sorted := sortedCopy(p)
	last := sorted[len(sorted)-1]
	for k := 1; k < b.Bins; k++ {
		rank := (k*len(sorted) + b.Bins - 1) / b.Bins // ceil; 1 at least
		if v := sorted[rank-1]; v < last && (len(high) == 0 || v > high[len(high)-1]) {
			high = append(high, v)
		}
	}
	return append(high, 1), nil
}

// binOf is the first bin whose upper end is at least p.
func binOf(high []float64, p float64) int {
	k, _ := slices.BinarySearch(high, p)
	return k
}

// Format writes the reliability diagram as text, a line for each bin that has cases: the ends of the bin, the number of
// cases, and a bar for the accuracy with a mark | at the confidence. The mark right of the bar's end is
// over-confidence. The error is that of w.
func (r *Reliability) Format(w io.Writer) error {
	if w == nil {
		return failf(draws.ErrRange, "write reliability diagram: the writer is nil")
	}
	if _, err := io.WriteString(w, r.String()); err != nil {
		return fmt.Errorf("diag/score: write reliability diagram: %w", err)
	}
	return nil
}

// String is the text that [Reliability.Format] writes.
func (r *Reliability) String() string {
	const width = 40
	cells := func(p float64) int { return int(math.Round(p * width)) }
	cases := 1
	for _, b := range r.Bins {
		cases = max(cases, len(fmt.Sprint(b.Cases)))
	}
	var s strings.Builder
	fmt.Fprintf(&s, "confidence   %*s  accuracy\n", max(cases, len("cases")), "cases")
	for _, b := range r.Bins {
		if b.Cases == 0 {
			continue
		}
		bar := []byte(strings.Repeat("#", cells(b.Accuracy)) + strings.Repeat(" ", width-cells(b.Accuracy)))
		bar = append(bar, ' ')
		bar[cells(b.Confidence)] = '|'
		fmt.Fprintf(&s, "%.3f-%.3f  %*d  %.3f %s\n", b.Low, b.High, max(cases, len("cases")), b.Cases, b.Accuracy,
			strings.TrimRight(string(bar), " "))
	}
	fmt.Fprintf(&s, "ECE %.4f, largest gap %.4f\n", r.ECE, r.MCE)
	return s.String()
}

// AccuracyInterval is the Clopper-Pearson interval of the probability of being right in the bin, of a level above 0 and
// below 1, such as 0.95. Both ends are NaN in an empty bin, for an accuracy that is no share, and for another level.
func (b Bin) AccuracyInterval(level float64) (low, high float64) {
	if b.Cases < 1 || !(b.Accuracy >= 0 && b.Accuracy <= 1) || !(level > 0 && level < 1) {
		return math.NaN(), math.NaN()
	}
	return sample.ClopperPearson(int(math.Round(b.Accuracy*float64(b.Cases))), b.Cases, level)
}
