//go:build unix

package kernel

import (
	"context"
	"math"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spread is a Gaussian of d variances from 1 to 10, in plain Go. Its chains share nothing.
func spread(d int) Density {
	inverse := make([]float64, d)
	for i := range inverse {
		inverse[i] = 1 / (1 + 9*float64(i)/float64(d-1))
	}
	return Func(d, func(x, grad []float64) float64 {
		s := 0.0
		x, grad = x[:len(inverse)], grad[:len(inverse)]
		for i, v := range inverse {
			g := -x[i] * v
			grad[i] = g
			s += x[i] * g
		}
		return 0.5 * s
	})
}

// cpu is the processor time that this process has used. A machine shared with others makes wall time say nothing.
func cpu(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bare is the processor time of one call of a density, in nanoseconds: the least of several segments.
func bare(b *testing.B, d Density) float64 {
	const calls = 20000
	x, grad, logp := make([]float64, d.Dim()), make([]float64, d.Dim()), make([]float64, 1)
	for i := range x {
		x[i] = 1
	}
	least := math.Inf(1)
	for range 20 {
		from := cpu(b)
		for range calls {
			if err := d.ValueAndGrad(x, logp, grad); err != nil {
				b.Fatal(err)
			}
		}
		least = min(least, float64(cpu(b)-from)/calls)
	}
	return least
}

// BenchmarkNUTS reports what whole runs cost in processor time for each gradient, beyond the density itself: the least
// of all runs. The draws go into memory made before.
func BenchmarkNUTS(b *testing.B) {
	for _, d := range []int{10, 100} {
		for _, c := range []struct {
			name string
			o    Options
		}{
			{"1", Options{Chains: 1}},
			{"1/dense", Options{Chains: 1, Metric: Dense}},
			{"1/lowrank", Options{Chains: 1, Metric: LowRank}},
			{"4/batched", Options{Chains: 4}},
			{"4/parallel", Options{Chains: 4, Parallel: true}},
		} {
			b.Run(c.name+"/d="+strconv.Itoa(d), func(b *testing.B) {
				density := spread(d)
				alone := bare(b, density)
				kept := make([]float64, c.o.Chains*1000*d)
				c.o.Record = func(chain, draw int, x []float64, info Info) error {
					if !info.Warmup {
						copy(kept[(chain*1000+draw)*d:], x)
					}
					return nil
				}
				least, gradients := math.Inf(1), 0
				for b.Loop() {
					from := cpu(b)
					r, err := Run(context.Background(), density, c.o)
					if err != nil {
						b.Fatal(err)
					}
					gradients = 0
					for _, n := range r.Gradients {
						gradients += n
					}
					least = min(least, float64(cpu(b)-from)/float64(gradients))
				}
				b.ReportMetric(alone, "ns/density")
				b.ReportMetric(least-alone, "ns/gradient-beyond")
				b.ReportMetric(float64(gradients), "gradients")
			})
		}
	}
}
