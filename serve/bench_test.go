//go:build cgo && linux

package serve_test

import (
	"syscall"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/stretchr/testify/require"
)

// clock reports the processor time of f, which other programs of the machine do not change.
func clock(b *testing.B, f func()) {
	now := func() float64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	f()
	before := now()
	for b.Loop() {
		f()
	}
	b.ReportMetric((now()-before)/float64(b.N), "cpu-ns/op")
}

// A gradient of each model: in Go, by the virtual machine in C, and by compiled C.
func BenchmarkGradient(b *testing.B) {
	for _, m := range all(b) {
		p, loaded, _ := exported(b, m)
		x, grad := infertest.Points(1, loaded.Dim())[0], make([]float64, loaded.Dim())
		b.Run(m.Name+"/go", func(b *testing.B) {
			clock(b, func() { loaded.LogDensity(x, grad) })
		})
		start, err := p.Start(p.Batch(), 2, 1)
		require.NoError(b, err)
		for _, tier := range []native.Tier{native.VM, native.C} {
			code, _, err := infer.Compile(p.Target().Summed(), start, p.Batch(), native.Options{Tier: tier})
			require.NoError(b, err)
			b.Run(m.Name+"/"+string(tier), func(b *testing.B) {
				clock(b, func() { _, err = code.Eval(x, 1, grad) })
				require.NoError(b, err)
			})
		}
	}
}
