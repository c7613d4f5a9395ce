package draws

import (
	"math/rand/v2"
	"testing"
)

// benchDraws is four chains of 1000 draws of 100 elements.
func benchDraws(b *testing.B) *Draws {
	d, err := New([]Site{{Name: "w", Shape: []int{100}, Offset: 0, Size: 100}}, []string{"lp"}, 4)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 12))
	x, stats := make([]float64, 400), make([]float64, 4)
	for range 1000 {
		for k := range x {
			x[k] = rng.NormFloat64()
		}
		if err := d.Append(x, stats); err != nil {
			b.Fatal(err)
		}
	}
	return d
}

func report(b *testing.B, draws int, unit string) {
	b.ReportMetric(float64(draws)*float64(b.N)/b.Elapsed().Seconds(), unit)
}

func BenchmarkAppend(b *testing.B) {
	sites := []Site{{Name: "w", Shape: []int{100}, Offset: 0, Size: 100}}
	x, stats := make([]float64, 400), make([]float64, 4)
	for b.Loop() {
		d, err := New(sites, []string{"lp"}, 4)
		if err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			if err := d.Append(x, stats); err != nil {
				b.Fatal(err)
			}
		}
	}
	report(b, 4000, "draws/s")
}

func BenchmarkSummary(b *testing.B) {
	d := benchDraws(b)
	for b.Loop() {
		if _, err := d.Summary(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 100, "elements/s")
}

func BenchmarkCovariance(b *testing.B) {
	d := benchDraws(b)
	for b.Loop() {
		if _, err := d.Covariance(); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 4000, "draws/s")
}
