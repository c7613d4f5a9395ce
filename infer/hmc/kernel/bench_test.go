package kernel

import (
	"context"
	"testing"
)

// tenD is a Gaussian of variances 1 to 10, in plain Go.
var tenD = gaussian(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)

// BenchmarkNUTS reports gradients per second of whole runs on a 10-dimensional Gaussian: one chain, which calls the
// density itself; and 64, which go through the batcher.
func BenchmarkNUTS(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"1", Options{Chains: 1}},
		{"1/dense", Options{Chains: 1, Metric: Dense}},
		{"1/lowrank", Options{Chains: 1, Metric: LowRank}},
		{"64", Options{Chains: 64}},
		{"4/parallel", Options{Chains: 4, Parallel: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			gradients := int64(0)
			for b.Loop() {
				r, err := sample(context.Background(), tenD, c.o)
				if err != nil {
					b.Fatal(err)
				}
				for _, c := range r.Chains {
					gradients += c.Gradients
				}
			}
			b.ReportMetric(float64(gradients)/b.Elapsed().Seconds(), "grads/s")
		})
	}
}
