package curves

import (
	"encoding/binary"
	"math"
	"testing"
)

// FuzzCurves draws any numbers: nothing panics, and the mean of a density is the share of the draws in its view.
func FuzzCurves(f *testing.F) {
	add := func(x ...float64) {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		f.Add(b)
	}
	tiny := math.SmallestNonzeroFloat64
	add()
	add(1)
	add(0, tiny, 0, tiny, 0, tiny)
	add(-tiny, tiny, 0, 3*tiny)
	add(-math.MaxFloat64, math.MaxFloat64, 0, math.MaxFloat64)
	add(2, 2, 2, 2, 2)
	add(math.NaN(), math.Inf(1), math.Inf(-1), 1, 2)
	add(1, math.Nextafter(1, 2), 1)
	f.Fuzz(func(t *testing.T, b []byte) {
		var x []float64
		for ; len(b) >= 8; b = b[8:] {
			x = append(x, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		chains := [][]float64{x[:len(x)/2], x[len(x)/2:]}
		Ranks(chains)
		Energies(chains)
		low, high, ok := View(chains...)
		if !ok || low >= high {
			return
		}
		d := Density(x, low, high, 64)
		Ceiling([][]float64{d, nil})
		inside, finite, sum := 0.0, 0.0, 0.0
		for _, v := range x {
			if Finite(v) {
				finite++
				if low <= v && v <= high {
					inside++
				}
			}
		}
		for _, v := range d {
			sum += v / 64
		}
		if math.Abs(sum-inside/finite) > 1e-9 {
			t.Fatalf("the density of %v in [%g, %g] has mass %g, want %g", x, low, high, sum, inside/finite)
		}
	})
}
