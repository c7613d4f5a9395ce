package vm

import (
	"runtime"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm/baseline"
	"github.com/stretchr/testify/require"
)

// models are cases with the same function in C.
func models() map[string]struct {
	irtest.Case
	run func(n int, x, grad []float64) float64
} {
	eight, logistic, linear := irtest.EightSchools(), irtest.Logistic(768, 8), irtest.LogLinear(1192)
	data := func(c irtest.Case) (list [][]float64) {
		for _, b := range c.Plan.Buffers {
			if b.Kind == ir.Const {
				list = append(list, b.Data)
			}
		}
		return list
	}
	l, r := data(logistic), data(linear)
	return map[string]struct {
		irtest.Case
		run func(n int, x, grad []float64) float64
	}{
		"eight-schools": {eight, baseline.EightSchools},
		"logistic":      {logistic, func(n int, x, g []float64) float64 { return baseline.Logistic(n, x, g, l[0], l[1]) }},
		"log-linear": {linear, func(n int, x, g []float64) float64 {
			return baseline.LogLinear(n, x, g, r[0], r[1], r[3], r[2])
		}},
	}
}

// vectors says whether the baseline, which gcc compiles for AVX-512, runs here.
func vectors() bool { return runtime.GOARCH != "amd64" || slices.Contains(Variants(), "avx512") }

// The C functions are the densities of the plans.
func TestBaseline(t *testing.T) {
	if !vectors() {
		t.Skip("the baseline needs AVX-512")
	}
	for name, m := range models() {
		want, err := irtest.Reference(m.Case)
		require.NoError(t, err)
		grad := make([]float64, len(m.X))
		got := irtest.Result{Value: m.run(1, m.X, grad), Grad: grad}
		require.NoError(t, irtest.Differ(got, irtest.Result{Value: want.Value, Grad: want.Grad}, 1e-11), name)
	}
}

func BenchmarkModels(b *testing.B) {
	for name, m := range models() {
		if vectors() {
			b.Run(name+"/C", func(b *testing.B) {
				cpu := irtest.Clock(func() { m.run(b.N, m.X, make([]float64, len(m.X))) })
				b.ReportMetric(cpu/float64(b.N), "cpu-ns/op")
			})
		}
		for _, v := range Variants() {
			b.Run(name+"/"+v, func(b *testing.B) {
				_, e := compile(b, v, m.Case)
				memory := irtest.NewMemory(e, m.Case)
				defer memory.Close()
				require.NoError(b, memory.Prepare())
				_, err := memory.Eval(m.X, 1)
				require.NoError(b, err)
				b.ResetTimer()
				b.ReportMetric(irtest.Clock(func() { memory.Repeat(b.N) })/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
