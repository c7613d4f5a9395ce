package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// unpack is what the script does.
func unpack(s string) []float64 {
	var out []float64
	for i := 0; i+1 < len(s); i += 2 {
		k := strings.IndexByte(alphabet, s[i])<<6 | strings.IndexByte(alphabet, s[i+1])
		v := float64(k) / (codes - 1)
		if k == codes {
			v = math.NaN()
		}
		out = append(out, v)
	}
	return out
}

func TestPackKeepsNumbersToHalfAStep(t *testing.T) {
	x := []float64{-2, -1.3, 0, 0.7, 3, math.NaN(), math.Inf(1), math.Inf(-1), -5, 9}
	want := []float64{0, 0.14, 0.4, 0.54, 1, math.NaN(), math.NaN(), math.NaN(), 0, 1}
	got := unpack(pack(x, -2, 3))
	if len(got) != len(want) {
		t.Fatalf("%d numbers, want %d", len(got), len(want))
	}
	for i := range want {
		if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > 0.5/(codes-1) {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// The difference of the ends is beyond the largest float64.
func TestPackOfHugeNumbers(t *testing.T) {
	got := unpack(pack([]float64{-1.5e308, 0, 1.5e308}, -1.5e308, 1.5e308))
	for i, want := range []float64{0, 0.5, 1} {
		if math.Abs(got[i]-want) > 1e-3 {
			t.Errorf("number %d is %v, want %v", i, got[i], want)
		}
	}
	if got := unpack(pack([]float64{3}, 3, 3)); math.Abs(got[0]-0.5) > 1e-3 {
		t.Errorf("a constant is at %v, want the middle", got[0])
	}
}

func TestDownsampleKeepsExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float64, 10007)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	x[17], x[9999] = 100, -200
	y := downsample(x, 100)
	if len(y) > 100 {
		t.Fatalf("%d points, want at most 100", len(y))
	}
	if y[0] != 100 && y[1] != 100 {
		t.Errorf("the peak is not in the first stretch: %v", y[:2])
	}
	for s := range 50 {
		part := x[s*len(x)/50 : (s+1)*len(x)/50]
		a, b := y[2*s], y[2*s+1]
		if min(a, b) != slices.Min(part) || max(a, b) != slices.Max(part) {
			t.Fatalf("stretch %d is %v and %v, want %v and %v", s, a, b, slices.Min(part), slices.Max(part))
		}
		if slices.Index(part, a) > slices.Index(part, b) {
			t.Fatalf("stretch %d is not in order", s)
		}
	}
}

func TestDownsampleGaps(t *testing.T) {
	x := make([]float64, 100)
	for i := range x {
		x[i] = float64(i)
		if i >= 20 && i < 60 {
			x[i] = math.NaN()
		}
	}
	x[70] = math.Inf(1)
	y := downsample(x, 10) // stretches of 20
	for k, want := range []float64{0, 19, math.NaN(), math.NaN(), math.NaN(), math.NaN(), 60, 79, 80, 99} {
		if y[k] != want && !(math.IsNaN(y[k]) && math.IsNaN(want)) {
			t.Errorf("point %d is %v, want %v", k, y[k], want)
		}
	}
	if short := downsample(x[:5], 10); len(short) != 5 {
		t.Errorf("a short trace has %d points, want its 5", len(short))
	}
}

// A range may be as small or as large as numbers go.
func TestPackExtremeRanges(t *testing.T) {
	const tiny, huge = math.SmallestNonzeroFloat64, math.MaxFloat64
	for _, r := range [][2]float64{{0, tiny}, {-tiny, tiny}, {tiny, 2 * tiny}, {-huge, huge}, {0, huge}} {
		got := unpack(pack([]float64{r[0], r[1], -huge, huge}, r[0], r[1]))
		for i, want := range []float64{0, 1, 0, 1} {
			if got[i] != want {
				t.Errorf("in %v: number %d is at %v, want %v", r, i, got[i], want)
			}
		}
	}
	t.Log("seen: 5 ranges from the smallest to the largest number")
}
