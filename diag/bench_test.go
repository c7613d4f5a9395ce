package diag

import "testing"

// One element of four chains of 1000 draws.
func BenchmarkSummarise(b *testing.B) {
	x := ar1(1, 4, 1000, 0.5)
	for b.Loop() {
		summarise(x, SummaryOptions{HDIProb: 0.94})
	}
}

// One observation with 4000 draws.
func BenchmarkPSIS(b *testing.B) {
	x := ar1(1, 1, 4000, 0)[0]
	for b.Loop() {
		if _, err := PSIS(x, 1); err != nil {
			b.Fatal(err)
		}
	}
}
