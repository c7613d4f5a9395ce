package diag

import "testing"

// One element of four chains of 1000 draws.
func BenchmarkSummarise(b *testing.B) {
	x := ar1(1, 4, 1000, 0.5)
	for b.Loop() {
		summarise(x, SummaryOptions{HDIProb: 0.94})
	}
}
