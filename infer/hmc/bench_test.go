//go:build unix

package hmc

import (
	"context"
	"math"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/require"
)

// BenchmarkSample reports what runs through infer.Sample cost in processor time for each gradient, beyond the density
// itself: the least of all runs.
func BenchmarkSample(b *testing.B) {
	cpu := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, d := range []int{10, 100} {
		density, program := spreadProgram(b, d)
		for _, chains := range []int{1, 4} {
			for name, o := range map[string]infer.Options{
				"silent":     {Observer: infer.Silent},
				"observer":   {Observer: infer.ObserverFunc(func(infer.Progress) {})},
				"checkpoint": {Observer: infer.Silent, Checkpoint: &infer.Checkpoint{}},
			} {
				b.Run(name+"/chains="+strconv.Itoa(chains)+"/d="+strconv.Itoa(d), func(b *testing.B) {
					o := o
					o.Chains, o.Draws = chains, 2000
					x, grad, logp := make([]float64, d), make([]float64, d), make([]float64, 1)
					alone := math.Inf(1)
					for range 20 {
						from := cpu()
						for range 20000 {
							_ = density.ValueAndGrad(x, logp, grad)
						}
						alone = min(alone, float64(cpu()-from)/20000)
					}
					least := math.Inf(1)
					for b.Loop() {
						if o.Checkpoint != nil {
							o.Checkpoint.Dir = b.TempDir()
						}
						from := cpu()
						r, err := infer.Run(context.Background(), program, onDensity{density: density}, o)
						require.NoError(b, err)
						least = min(least, float64(cpu()-from)/float64(r.Gradients))
					}
					b.ReportMetric(alone, "ns/density")
					b.ReportMetric(least-alone, "ns/gradient-beyond")
				})
			}
		}
	}
}
