package cc

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/vm"
	"github.com/stretchr/testify/require"
)

// BenchmarkModels measures compiled plans against the same densities in hand-written C, alternating in one run: the
// shortest of many segments each, in nanoseconds.
func BenchmarkModels(b *testing.B) {
	compiler, err := Find()
	require.NoError(b, err)
	data, err := os.ReadFile("testdata/baseline.c")
	require.NoError(b, err)
	text := strings.Replace(string(data), `#include "../abi.h"`, Header, 1)
	object, err := compiler.object(text, time.Minute, "-funsafe-math-optimizations")
	require.NoError(b, err)
	baseline, err := load(object)
	require.NoError(b, err)
	for _, m := range []struct {
		c    irtest.Case
		name string
	}{{irtest.EightSchools(), "schools"}, {irtest.Logistic(768, 8), "logistic"}, {irtest.LogLinear(1192), "loglinear"}} {
		b.Run(m.name, func(b *testing.B) {
			main, err := baseline.symbol("baseline_" + m.name)
			require.NoError(b, err)
			p, info, err := Compile(m.c.Plan, Options{CacheDir: "off"})
			require.NoError(b, err)
			ours := irtest.NewMemory(irtest.Entry{Prologue: p.Prologue, Main: p.Main, Dense: vm.Dense()}, m.c)
			hand := irtest.NewMemory(irtest.Entry{Prologue: baseline.Prologue, Main: main, Dense: vm.Dense()}, m.c)
			want, err := hand.Eval(m.c.X, 1)
			require.NoError(b, err)
			got, err := ours.Eval(m.c.X, 1)
			require.NoError(b, err)
			if m.name != "logistic" { // whose columns lie elsewhere
				require.NoError(b, irtest.Differ(got, want, 1e-12))
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			const calls = 2000
			best := [2]float64{math.Inf(1), math.Inf(1)}
			for b.Loop() {
				for k, m := range []*irtest.Memory{ours, hand} {
					began := time.Now()
					m.Repeat(calls)
					best[k] = min(best[k], float64(time.Since(began))/calls)
				}
			}
			b.ReportMetric(best[0], "ns/gradient")
			b.ReportMetric(best[1], "ns/hand-written")
			b.ReportMetric(best[0]/best[1], "ratio")
			b.ReportMetric(info.Seconds, "s/compile")
		})
	}
}
