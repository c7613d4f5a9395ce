package bench

import (
	"slices"
	"testing"
)

// Two turns of two sides are in the order 0, 1, 1, 0, with the calls of each, and the fastest counts.
func TestRound(t *testing.T) {
	var order, calls []int
	side := func(i int, times ...float64) Side {
		return func(n int) (float64, error) {
			order, calls = append(order, i), append(calls, n)
			ns := times[0]
			times = times[1:]
			return ns, nil
		}
	}
	fastest, err := Round(2, [2]Side{side(0, 5, 4), side(1, 2, 3)}, [2]int{10, 20})
	if err != nil || fastest != [2]float64{4, 2} {
		t.Errorf("fastest %v, %v; want 4 and 2", fastest, err)
	}
	if want := []int{0, 1, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if want := []int{10, 20, 20, 10}; !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
}

func TestQuantile(t *testing.T) {
	if q := Quantile([]float64{2, 1}, 0.25); q != 1.25 {
		t.Errorf("first quartile of 1, 2 is %g, want 1.25", q)
	}
	if q := Quantile([]float64{3, 1, 2}, 0.5); q != 2 {
		t.Errorf("median of 1, 2, 3 is %g", q)
	}
	if n := PerTurn(1e9); n != 1 {
		t.Errorf("%d calls of a second in a turn, want 1", n)
	}
	if n := PerTurn(1e3); n != 3000 {
		t.Errorf("%d calls of a microsecond in a turn of 3 ms", n)
	}
}
