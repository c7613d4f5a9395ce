package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseFlags(t *testing.T) {
	const file = `package libtch

// #cgo CFLAGS: -I${SRCDIR} -O1
// #cgo CXXFLAGS: -I${SRCDIR} -std=c++17 "-I/opt/lib torch/include"
// #cgo LDFLAGS: -L/opt/torch/lib -Wl,-rpath,/opt/torch/lib -ltorch
import "C"
`
	f, err := parseFlags(file, "/copy/libtch")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"-I/copy/libtch", "-std=c++17", "-I/opt/lib torch/include"}; !slices.Equal(f.compile, want) {
		t.Errorf("compiler flags %q, want %q", f.compile, want)
	}
	if want := []string{"-L/opt/torch/lib", "-Wl,-rpath,/opt/torch/lib", "-ltorch"}; !slices.Equal(f.link, want) {
		t.Errorf("linker flags %q, want %q", f.link, want)
	}
	if _, err := parseFlags("package libtch", ""); err == nil || !strings.Contains(err.Error(), "set-up") {
		t.Errorf("a file without flags: error %v, want one that names set-up", err)
	}
}

func TestDifference(t *testing.T) {
	if d, err := difference([]float64{1, 200}, []float64{1, 200 + 1e-9}); err != nil || math.Abs(d-5e-12) > 1e-13 {
		t.Errorf("difference %g, %v; want 1e-9 / 200", d, err)
	}
	for _, got := range [][]float64{{1, 1 + 1e-9}, {1, math.NaN()}, {1}} {
		if _, err := difference(got, []float64{1, 1}); err == nil {
			t.Errorf("%v passes for 1, 1", got)
		}
	}
}

// The quartiles of 1..5 are 2, 3, 4; between numbers they are interpolated.
func TestNewRow(t *testing.T) {
	r := newRow(comparison{chains: 4}, "cpu", []float64{1000, 1000, 1000, 1000, 1000},
		[]float64{5000, 1000, 3000, 2000, 4000})
	if r.Ratio != 3 || r.Quartiles != [2]float64{2, 4} || r.Kelvin != 3 || r.Cpp != 1 {
		t.Errorf("ratio %g, quartiles %v, times %g and %g; want 3, [2 4], 3 and 1", r.Ratio, r.Quartiles, r.Kelvin, r.Cpp)
	}
	if r.PerChain != 0.75 || math.Abs(r.GradientsPerSecond-4e6/3) > 1e-6 {
		t.Errorf("per chain %g us, %g gradients/s; want 0.75 and 1333333.3", r.PerChain, r.GradientsPerSecond)
	}
}
