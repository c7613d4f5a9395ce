package draws

import (
	"math"
	"slices"
	"sync"
	"testing"
)

func TestAppendAndAccess(t *testing.T) {
	d := must(New(testSites()[:2], []string{"lp", "diverging"}, 2))(t)
	x := []float64{1, 2, 3, 4, 5, 6} // chain 0: tau 1, v (2, 3); chain 1: tau 4, v (5, 6)
	stats := []float64{-1, 0, -2, 1}
	if err := d.Append(x, stats); err != nil {
		t.Fatal(err)
	}
	x[0], stats[0] = 99, 99 // what was appended is a copy
	if err := d.Append([]float64{7, 8, 9, 10, 11, 12}, []float64{-3, 1, -4, 0}); err != nil {
		t.Fatal(err)
	}
	equalFloats(t, "Row(0,0)", d.Row(0, 0), []float64{1, 2, 3})
	equalFloats(t, "Row(1,1)", d.Row(1, 1), []float64{10, 11, 12})
	equalFloats(t, "StatRow(0,1)", d.StatRow(0, 1), []float64{-3, 1})
	equalFloats(t, "StatRow(1,0)", d.StatRow(1, 0), []float64{-2, 1})
	rows := d.Rows()
	equalFloats(t, "Rows", slices.Concat(rows...), slices.Concat(d.Row(0, 0), d.Row(0, 1), d.Row(1, 0), d.Row(1, 1)))
	equalFloats(t, "Element(1,2)", d.Element(1, 2), []float64{6, 12})
	equalFloats(t, "Pooled(1)", d.Pooled(1), []float64{2, 8, 5, 11})
	equalFloats(t, "lp 0", must(d.Stat("lp", 0))(t), []float64{-1, -3})
	equalFloats(t, "diverging 1", must(d.Stat("diverging", 1))(t), []float64{1, 0})
	v := must(d.Values("v"))(t)
	if len(v) != 2 || len(v[0]) != 2 {
		t.Fatalf("Values has shape [%d][%d], want [2][2]", len(v), len(v[0]))
	}
	equalFloats(t, "v[0][1]", v[0][1], []float64{8, 9})
	equalFloats(t, "v[1][0]", v[1][0], []float64{5, 6})
	v[1][0][0] = 99
	equalFloats(t, "Row after a change of Values", d.Row(1, 0), []float64{4, 5, 6})
	if d.Chains() != 2 || d.Dim() != 3 || d.Len(1) != 2 || d.Total() != 4 {
		t.Errorf("chains %d, dim %d, len %d, total %d", d.Chains(), d.Dim(), d.Len(1), d.Total())
	}
}

func TestUnequalChains(t *testing.T) {
	d := testDraws(t, 3, 1)
	if d.Len(0) != 3 || d.Len(1) != 1 || d.MinLen() != 1 || d.MaxLen() != 3 || d.Total() != 4 {
		t.Errorf("lengths %d %d, min %d, max %d, total %d", d.Len(0), d.Len(1), d.MinLen(), d.MaxLen(), d.Total())
	}
	equalFloats(t, "Element", d.Element(0, 8), []float64{8, 108, 208})
	equalFloats(t, "Pooled", d.Pooled(8), []float64{8, 108, 208, 10008})
	v := must(d.Values("tau"))(t)
	if len(v[0]) != 3 || len(v[1]) != 1 || v[1][0][0] != 10000 {
		t.Errorf("Values is %v", v)
	}
	if err := d.Append(make([]float64, 18), make([]float64, 4)); err != nil { // goes to the end of each chain
		t.Fatal(err)
	}
	if d.Len(0) != 4 || d.Len(1) != 2 {
		t.Errorf("lengths %d %d, want 4 2", d.Len(0), d.Len(1))
	}
}

func TestAppendErrors(t *testing.T) {
	d := testDraws(t, 1, 1)
	ok, stats := make([]float64, 18), make([]float64, 4)
	checkError(t, d.Append(ok[:9], stats), ErrSize, `draws: append: x has 9 numbers, want 18 (2 chains x 9)`)
	checkError(t, d.Append(ok, stats[:2]), ErrSize, `draws: append: stats has 2 numbers, want 4 (2 chains x 2)`)
	checkError(t, d.AppendChain(2, ok[:9], stats[:2]), ErrRange, `draws: append: chain 2, want 0 to 1`)
	checkError(t, d.AppendChain(-1, ok[:9], stats[:2]), ErrRange, `draws: append: chain -1, want 0 to 1`)
	checkError(t, d.AppendChain(1, ok, stats[:2]), ErrSize, `draws: append to chain 1: x has 18 numbers, want 9`)
	checkError(t, d.AppendChain(1, ok[:9], nil), ErrSize, `draws: append to chain 1: stats has 0 numbers, want 2`)
	equalDraws(t, d, testDraws(t, 1, 1)) // an error leaves nothing behind
}

func TestStatErrors(t *testing.T) {
	d := testDraws(t, 1, 1)
	_, err := d.Stat("energy", 0)
	checkError(t, err, ErrUnknownName, `draws: no statistic "energy"; the statistics are "lp", "diverging"`)
	_, err = d.Stat("lp", 2)
	checkError(t, err, ErrRange, `draws: statistic lp: chain 2, want 0 to 1`)
	_, err = d.Values("mu")
	checkError(t, err, ErrUnknownName, `draws: no site "mu"; the sites are "tau", "v", "w"`)
}

// An index out of range gives nil or 0, as documented.
func TestOutOfRange(t *testing.T) {
	d := testDraws(t, 2, 1)
	for _, got := range [][]float64{
		d.Row(-1, 0), d.Row(2, 0), d.Row(0, -1), d.Row(0, 2), d.Row(1, 1),
		d.Element(-1, 0), d.Element(2, 0), d.Element(0, -1), d.Element(0, 9), // 9 is the first statistic in storage
		d.Pooled(-1), d.Pooled(9), d.StatRow(-1, 0), d.StatRow(2, 0), d.StatRow(0, -1), d.StatRow(0, 2),
	} {
		if got != nil {
			t.Errorf("got %v, want nil", got)
		}
	}
	if d.Len(-1) != 0 || d.Len(2) != 0 {
		t.Errorf("Len out of range is %d, %d", d.Len(-1), d.Len(2))
	}
}

// The zero value is an empty container without chains.
func TestZeroValue(t *testing.T) {
	var d Draws
	if d.Chains() != 0 || d.Dim() != 0 || d.MinLen() != 0 || d.MaxLen() != 0 || d.Total() != 0 || len(d.Names()) != 0 {
		t.Error("the zero value is not empty")
	}
	const want = `draws: append: the container has no chains; make it with New`
	checkError(t, d.Append(nil, nil), ErrRange, want)
	checkError(t, d.AppendChain(0, nil, nil), ErrRange, want)
	_, err := d.Summary()
	checkError(t, err, ErrNoDraws, `draws: summary: there are no draws`)
}

// Statistics alone, without parameters, are a container too.
func TestNoSites(t *testing.T) {
	d := must(New(nil, []string{"lp"}, 1))(t)
	if err := d.Append(nil, []float64{-1}); err != nil {
		t.Fatal(err)
	}
	if row := d.Row(0, 0); row == nil || len(row) != 0 {
		t.Errorf("row is %v, want empty", row)
	}
	if rows := must(d.Summary())(t); len(rows) != 0 {
		t.Errorf("summary is %v, want empty", rows)
	}
	equalFloats(t, "lp", must(d.Stat("lp", 0))(t), []float64{-1})
}

// A row has no room at its end, so that appending to it cannot write into the container, and it outlives growth.
func TestRowIsASafeView(t *testing.T) {
	d := testDraws(t, 1, 0)
	row := d.Row(0, 0)
	_ = append(row, math.NaN())
	equalFloats(t, "lp", must(d.Stat("lp", 0))(t), []float64{9000})
	for range 1000 {
		if err := d.AppendChain(0, make([]float64, 9), []float64{0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	equalFloats(t, "old row", row, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8})
}

// Different chains may be appended to at the same time; go test -race watches.
func TestConcurrentChains(t *testing.T) {
	const chains, n = 4, 500
	d := must(New([]Site{{Name: "x", Size: 1}}, []string{"lp"}, chains))(t)
	var wg sync.WaitGroup
	for c := range chains {
		wg.Go(func() {
			for i := range n {
				if err := d.AppendChain(c, []float64{float64(c*n + i)}, []float64{0}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, v := range d.Pooled(0) {
		if v != float64(i) {
			t.Fatalf("draw %d is %v", i, v)
		}
	}
}

// Appending n draws copies a number of floats that is linear in n: the number of allocations is logarithmic.
func TestAppendIsAmortised(t *testing.T) {
	x := make([]float64, 10)
	allocs := testing.AllocsPerRun(3, func() {
		d, err := New([]Site{{Name: "x", Shape: []int{10}, Size: 10}}, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 10000 {
			if err := d.Append(x, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs > 100 { // growth by at least 1.25: log(1e5) / log(1.25) is 52, and a few for New
		t.Errorf("%v allocations for 10000 draws", allocs)
	}
}

// Statistics are found by Kelvin's names, CmdStan's and ArviZ's; the held updates of early runs are no divergences.
// With room made before, appending allocates nothing and changes nothing of what there is.
func TestGrow(t *testing.T) {
	d := must(New(testSites()[:2], []string{"lp"}, 2))(t)
	row := func() {
		if err := d.Append([]float64{1, 2, 3, 4, 5, 6}, []float64{7, 8}); err != nil {
			t.Fatal(err)
		}
	}
	row()
	for _, n := range []int{-1, 0, math.MaxInt, 500} {
		d.Grow(n)
	}
	if n := testing.AllocsPerRun(200, row); n != 0 {
		t.Errorf("a draw allocates %v times", n)
	}
	equalFloats(t, "Row(0,0)", d.Row(0, 0), []float64{1, 2, 3})
	equalFloats(t, "Row(1,200)", d.Row(1, 200), []float64{4, 5, 6})
}

func TestStatName(t *testing.T) {
	for _, c := range []struct{ has, stat, want string }{
		{"lp__", StatLP, "lp__"}, {"n_steps", StatLeapfrog, "n_steps"}, {"accept", StatAccept, "accept"},
		{"lp", StatEnergy, ""}, {"lp", "other", ""}, {"other", "other", "other"},
		{"diverging", StatDivergent, "diverging"}, {"divergent__", StatDivergent, "divergent__"},
		{"held", StatDivergent, ""}, {"diverging", StatHeld, ""},
	} {
		d := must(New(nil, []string{"step", c.has}, 1))(t)
		if name, ok := d.StatName(c.stat); name != c.want || ok != (c.want != "") {
			t.Errorf("%q of %q: got %q, %v, want %q", c.stat, c.has, name, ok, c.want)
		}
	}
	early := must(New(nil, []string{"lp", "grad_norm", "diverging"}, 1))(t)
	if name, ok := early.StatName(StatDivergent); ok {
		t.Errorf("%q of a stochastic-gradient run was taken for divergences", name)
	}
}
