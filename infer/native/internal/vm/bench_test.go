package vm

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/stretchr/testify/require"
)

// Beside hand-written C stand the models of bench/compiled.
func BenchmarkModels(b *testing.B) {
	for name, m := range map[string]irtest.Case{"eight-schools": irtest.EightSchools(),
		"logistic": irtest.Logistic(768, 8), "log-linear": irtest.LogLinear(1192)} {
		for _, v := range Variants() {
			b.Run(name+"/"+v, func(b *testing.B) {
				_, e := compile(b, v, m)
				memory := irtest.NewMemory(e, m)
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
