package fuse

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/torch"
)

func atmc(p *Program) { thermostats(p, 0) }

func relativistic(p *Program) { thermostats(p, 1) }

func thermostats(p *Program, limit float64) {
	p.Begin(0, false, false)
	p.Mean(Part(1))
	p.ATMC(Part(0), Part(1), ATMC{H: 0.01, Friction: 1, Scale: 0.1, Velocity: 0.01, Plus: -0.01, Limit: limit})
}

func sghmc(p *Program) {
	momenta := Part(0)
	p.Begin(0, false, false)
	p.Combine(Theta, Term{C: 1, X: Theta}, Term{C: 0.01, X: momenta})
	p.Combine(momenta, Term{C: 0.99, X: momenta}, Term{C: 0.01, X: Grad}, Term{C: 0.1, X: Noise})
}

func BenchmarkPass(b *testing.B) {
	for _, d := range []int{1_000, 10_000, 2_700_000} {
		for _, threads := range []int{1, 2} {
			for name, write := range map[string]func(*Program){"sghmc": sghmc, "atmc": atmc,
				"relativistic": relativistic} {
				b.Run(fmt.Sprintf("%s-%d-%d", name, d, threads), func(b *testing.B) {
					m := &memory{}
					block := func() unsafe.Pointer { return m.block(4 * d) }
					p := &Pass{Dim: d, Single: true, Streams: torch.NewStreams(1, 1), Threads: threads}
					p.Rows(Grad, block(), nil)
					for _, r := range []Register{Theta, Part(0), Part(1)} {
						x := block()
						p.Rows(r, x, x) // as when a state is advanced
					}
					var program Program
					write(&program)
					b.ResetTimer()
					for range b.N {
						p.Run(&program)
					}
					b.StopTimer()
					m.free()
				})
			}
		}
		out := make([]float32, d)
		for _, width := range []int{16, 8} {
			b.Run(fmt.Sprintf("noise-%d-%d", d, width), func(b *testing.B) {
				for i := range b.N {
					floats(width, 1, 2, uint64(d*i), out)
				}
			})
		}
	}
}
