package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

func TestWorstFirst(t *testing.T) {
	nan := math.NaN()
	rows := []diag.Row{
		{Row: draws.Row{Name: "fine"}, RHat: 1.001, ESSBulk: 4000, ESSTail: 3000},
		{Row: draws.Row{Name: "constant"}, RHat: nan, ESSBulk: nan, ESSTail: nan},
		{Row: draws.Row{Name: "slow tail"}, RHat: 1.002, ESSBulk: 4000, ESSTail: 200},
		{Row: draws.Row{Name: "apart"}, RHat: 1.4, ESSBulk: 20, ESSTail: 300},
		{Row: draws.Row{Name: "nan", Mean: nan}, RHat: nan, ESSBulk: nan, ESSTail: nan},
		{Row: draws.Row{Name: "slow"}, RHat: 1.02, ESSBulk: 300, ESSTail: 300},
	}
	var got []string
	for _, i := range worstFirst(rows) {
		got = append(got, rows[i].Name)
	}
	if want := []string{"nan", "apart", "slow", "slow tail", "fine", "constant"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

func TestDrawnChains(t *testing.T) {
	x := [][]float64{{0, 1}, {0, 2}, {50, 50}, {1, 1}, {math.NaN(), 1}, {0, 1}, {-9, -9}}
	if got := drawn(x, 3); !slices.Equal(got, []int{2, 4, 6}) {
		t.Errorf("the chains are %v, want 2, 4 and 6", got)
	}
	if got := drawn(x, 7); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("the chains are %v, want all", got)
	}
}

func TestElementsOfThePairPlotAreSureToFit(t *testing.T) {
	if got := movedFirst([]int{5, 4, 3, 2, 1, 0}, []int{0, 4, 2}, 2); !slices.Equal(got, []int{5, 4, 0, 2, 3, 1}) {
		t.Errorf("the order is %v", got)
	}
}

// Draws that diverged are all there while they are few, and lie where they should.
func TestPairPositions(t *testing.T) {
	d := funnel(t, 4, 300)
	p := pairPositions(d)
	bad := divergent(d)
	n := 0
	for _, chain := range bad {
		n += count(chain)
	}
	if n == 0 || n > pairDivergent {
		t.Fatalf("%d draws diverged, which is not what the test is about", n)
	}
	marked := 0
	for k := range p.draw {
		if (p.marks[k] == '1') != bad[p.chain[k]][p.draw[k]] {
			t.Fatalf("draw %d of chain %d is marked wrongly", p.draw[k], p.chain[k])
		}
		if p.marks[k] == '1' {
			marked++
		}
	}
	if marked != n || len(p.draw) != pairDraws || len(p.marks) != pairDraws {
		t.Errorf("%d draws with %d that diverged, want %d with %d", len(p.draw), marked, pairDraws, n)
	}
}

// Of the elements of the funnel, log_tau is the one in which draws that diverged stand apart.
func TestPairShowsWhereDrawsDiverge(t *testing.T) {
	d := funnel(t, 4, 1000)
	pair, err := pairElements(d, d.Names(), []int{0, 2, 3, 4, 5, 6, 7, 8, 9, 1}, pairPositions(d), nil)
	if err != nil || len(pair) != 4 || pair[0] != 1 {
		t.Errorf("the elements are %v (%v), want log_tau first", pair, err)
	}
}

// A tick is in the middle of the place that a trace gives to its draw.
func TestDivergentTicks(t *testing.T) {
	d := container(t, []draws.Site{scalar("x", 0)}, []string{"divergent"}, []int{3, 2},
		func(c, i int, _ *rand.Rand) ([]float64, []float64) {
			return []float64{0}, []float64{float64(c * i)}
		})
	got := unpack(divergentTicks(d)) // draw 1 of chain 1, of 3 places
	if len(got) != 1 || math.Abs(got[0]-0.5) > 1.0/traceTicks {
		t.Errorf("ticks are at %v, want 0.5", got)
	}
}
