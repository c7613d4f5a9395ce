package bench

import (
	"fmt"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
)

// BenchmarkAdd is one addition of ten numbers without gradients: the price of a call from Go. A scope that holds a
// hundred of them frees the results.
func BenchmarkAdd(b *testing.B) {
	v := tensor(b, SchoolsStart(1))
	b.ReportAllocs()
	done := false
	for !done {
		err := torch.Do(func(*torch.Scope) error {
			for range 100 {
				if done = !b.Loop(); done {
					break
				}
				v.Add(v).T()
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLogistic is one value and gradient of the 1000 x 25 logistic regression.
func BenchmarkLogistic(b *testing.B) {
	m, err := NewLogistic(1000, 25, torch.CPU)
	if err != nil {
		b.Fatal(err)
	}
	w := tensor(b, m.Start())
	gradients(b, 1, func() error {
		_, _, err := torch.ValueAndGrad(m.LogDensity, w)
		return err
	})
}

// BenchmarkSchools is one value and gradient of eight schools for each of K chains.
func BenchmarkSchools(b *testing.B) {
	m, err := NewSchools(torch.CPU)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("plain", func(b *testing.B) {
		x := tensor(b, SchoolsStart(1))
		gradients(b, 1, func() error {
			_, _, err := torch.ValueAndGrad(m.LogDensity, x)
			return err
		})
	})
	for _, k := range []int{1, 4, 64, 1024} {
		b.Run(fmt.Sprintf("chains=%d", k), func(b *testing.B) {
			x := tensor(b, SchoolsStart(k), k, SchoolsDim)
			gradients(b, k, func() error {
				_, _, err := torch.VmapValueAndGrad(m.LogDensity, x)
				return err
			})
		})
	}
}

// gradients times f in a scope of its own, as an update of a sampler has one, and reports gradients of single chains.
func gradients(b *testing.B, chains int, f func() error) {
	b.ReportAllocs()
	for b.Loop() {
		if err := torch.Do(func(*torch.Scope) error { return f() }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*chains)/b.Elapsed().Seconds(), "gradients/s")
}

func tensor(b *testing.B, x []float64, shape ...int) torch.Tensor {
	b.Helper()
	t, err := torch.FromSlice(x, shape...)
	if err != nil {
		b.Fatal(err)
	}
	return t
}
