package report

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
)

// Draws 0, 1, ..., 100 of the first element have the quantiles 2.5, 25, 50, 75 and 97.5, which are the range of the
// plot; those of the second are 50 to 60. What is not finite has no row.
func TestForest(t *testing.T) {
	d, err := draws.New([]draws.Site{{Name: "a", Size: 1}, {Name: "b", Offset: 1, Size: 1},
		{Name: "c", Offset: 2, Size: 1}}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 101 {
		if err := d.AppendChain(0, []float64{float64(i), 50 + float64(i)/10, math.NaN()}, nil); err != nil {
			t.Fatal(err)
		}
	}
	f := forestOf(d, d.Names(), make([]diag.Row, 3))
	if len(f.Names) != 2 || f.Low != 2.5 || f.High != 97.5 || f.Q[0] != [5]float64{0, 0.2368, 0.5, 0.7632, 1} {
		t.Errorf("the intervals are %+v", f)
	}
	if want := math.Round((55-2.5)/95*1e4) / 1e4; f.Q[1][2] != want {
		t.Errorf("the second median is at %v, want %v", f.Q[1][2], want)
	}
}

// A difference stands beside its error, the first model has none, and replicates of another size are refused.
func TestComparisonAndChecks(t *testing.T) {
	rows := comparisonOf(loo.Comparisons{{Name: "a", ELPD: -10, SE: 2, Stacking: 0.9}, {Name: "b", Rank: 1, ELPD: -13,
		SE: 2.5, Diff: -3, SEDiff: 1.2, Stacking: 0.1}})
	if rows[0] != (comparisonRow{"a", "-10.0 ± 2.0", "0", "0.90"}) || rows[1].Diff != "-3.0 ± 1.2" {
		t.Errorf("the models are %+v", rows)
	}
	_, _, err := predictiveOf([]Predictive{{Name: "y", Observed: []float64{1}, Replicates: [][]float64{{1, 2}}}})
	if err == nil {
		t.Error("replicates of another size are taken")
	}
}
