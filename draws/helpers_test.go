package draws

import (
	"errors"
	"math"
	"testing"
)

// same is equality in which NaN equals NaN, and 0 and -0 differ.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

func equalFloats(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
}

// near checks a relative tolerance (absolute around 0).
func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if same(got, want) {
		return
	}
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s: got %.17g, want %.17g, off by %g", what, got, want, got-want)
	}
}

func checkError(t *testing.T, err, kind error, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", text)
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %q is not of kind %q", err, kind)
	}
	if err.Error() != text {
		t.Errorf("error text\n got %s\nwant %s", err, text)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// layout of the tests: a scalar, a vector and a 2 x 3 matrix; Dim is 9.
func testSites() []Site {
	return []Site{
		{Name: "tau", Shape: nil, Offset: 0, Size: 1},
		{Name: "v", Shape: []int{2}, Offset: 1, Size: 2},
		{Name: "w", Shape: []int{2, 3}, Offset: 3, Size: 6},
	}
}

// testDraws has two chains of n0 and n1 draws; element e of draw i of chain c is 10000c + 100i + e, and the statistics
// are 9000 + i and c, so that every number says where it belongs.
func testDraws(t *testing.T, n0, n1 int) *Draws {
	t.Helper()
	d := must(New(testSites(), []string{"lp", "diverging"}, 2))(t)
	for c, n := range []int{n0, n1} {
		for i := range n {
			x := make([]float64, 9)
			for e := range x {
				x[e] = float64(10000*c + 100*i + e)
			}
			if err := d.AppendChain(c, x, []float64{float64(9000 + i), float64(c)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// column makes a one-chain container of one scalar site "x".
func column(t *testing.T, x ...float64) *Draws {
	t.Helper()
	d := must(New([]Site{{Name: "x", Size: 1}}, nil, 1))(t)
	for _, v := range x {
		if err := d.Append([]float64{v}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// equalDraws compares layout, lengths, values and statistics.
func equalDraws(t *testing.T, got, want *Draws) {
	t.Helper()
	if diff := layoutDifference(got.Sites(), want.Sites(), got.Stats(), want.Stats()); diff != "" {
		t.Fatal(diff)
	}
	if got.Chains() != want.Chains() || got.Dim() != want.Dim() {
		t.Fatalf("got %d chains of dim %d, want %d of %d", got.Chains(), got.Dim(), want.Chains(), want.Dim())
	}
	for c := range want.Chains() {
		if got.Len(c) != want.Len(c) {
			t.Fatalf("chain %d has %d draws, want %d", c, got.Len(c), want.Len(c))
		}
		for i := range want.Len(c) {
			equalFloats(t, "row", got.Row(c, i), want.Row(c, i))
		}
		for _, name := range want.Stats() {
			equalFloats(t, name, must(got.Stat(name, c))(t), must(want.Stat(name, c))(t))
		}
	}
}
