package sample

import (
	"math"
	"math/rand/v2"
	"testing"
)

// All S ranks are shared out, S/bins of them in each bin where that is a whole number.
func TestRankHistogramCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	x := make([][]float64, 4)
	for c := range x {
		x[c] = make([]float64, 500)
		for i := range x[c] {
			x[c][i] = r.NormFloat64()
		}
	}
	h := Ranks(x)
	bins := make([]int, len(h[0]))
	for c, counts := range h {
		n := 0
		for b, k := range counts {
			n += k
			bins[b] += k
		}
		if n != 500 {
			t.Errorf("chain %d has %d ranks, want 500", c, n)
		}
	}
	if len(bins) != 20 {
		t.Fatalf("%d bins, want 20", len(bins))
	}
	for b, n := range bins {
		if n != 100 {
			t.Errorf("bin %d has %d ranks of all chains, want 2000/20", b, n)
		}
	}
}

// Two chains, one below the other: the bins of the first are the lower half.
func TestRankHistogramEdges(t *testing.T) {
	x := [][]float64{make([]float64, 100), make([]float64, 100)}
	for i := range 100 {
		x[0][i], x[1][i] = float64(99-i), float64(100+i)
	}
	h := Ranks(x)
	for b := range 20 {
		low, high := 10, 0
		if b >= 10 {
			low, high = high, low
		}
		if h[0][b] != low || h[1][b] != high {
			t.Errorf("bin %d has %d and %d, want %d and %d", b, h[0][b], h[1][b], low, high)
		}
	}
}

// The bin of a rank r is floor((r - 1/2) bins/S), also where bins do not divide S.
func TestRankHistogramOddSizes(t *testing.T) {
	const s = 211 // prime
	x := [][]float64{make([]float64, s)}
	for i := range s {
		x[0][i] = float64(i)
	}
	h := Ranks(x)[0]
	want := make([]int, len(h))
	for r := 1; r <= s; r++ {
		want[int((float64(r)-0.5)*float64(len(h))/s)]++
	}
	for b := range h {
		if h[b] != want[b] {
			t.Errorf("bin %d has %d, want %d", b, h[b], want[b])
		}
	}
}

// Equal draws have their average rank, NaNs none, infinities the first and the last.
func TestRankHistogramTies(t *testing.T) {
	x := [][]float64{make([]float64, 100), make([]float64, 100)}
	for i := range 100 {
		x[0][i], x[1][i] = 1, 1
	}
	x[0][0], x[1][0], x[0][1] = math.Inf(-1), math.Inf(1), math.NaN()
	h := Ranks(x)
	bins := len(h[0]) // 199 ranks: the ties share 100, the middle
	mid := int(99.5 * float64(bins) / 199)
	if h[0][0] != 1 || h[0][mid] != 98 || h[1][mid] != 99 || h[1][bins-1] != 1 {
		t.Errorf("counts are %v and %v", h[0], h[1])
	}
}

func TestRankBins(t *testing.T) {
	for _, c := range []struct{ s, chains, want int }{{4000, 4, 20}, {3600, 4, 20}, {3990, 4, 19}, {4001, 4, 20},
		{60, 4, 3}, {4, 2, 2}, {0, 1, 2}} {
		if got := rankBins(c.s, c.chains); got != c.want {
			t.Errorf("%d draws of %d chains have %d bins, want %d", c.s, c.chains, got, c.want)
		}
	}
}
