package draws

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
)

func TestThin(t *testing.T) {
	d := testDraws(t, 7, 4)
	thin := must(d.Thin(3))(t)
	equalFloats(t, "chain 0", thin.Element(0, 2), []float64{2, 302, 602})
	equalFloats(t, "chain 1", thin.Element(1, 2), []float64{10002, 10302})
	equalFloats(t, "lp", must(thin.Stat("lp", 0))(t), []float64{9000, 9003, 9006})
	equalDraws(t, must(d.Thin(1))(t), d)
	one := must(d.Thin(math.MaxInt))(t)
	if one.Len(0) != 1 || one.Len(1) != 1 {
		t.Errorf("lengths %d %d, want 1 1", one.Len(0), one.Len(1))
	}
	equalDraws(t, must(testDraws(t, 0, 0).Thin(2))(t), testDraws(t, 0, 0))
	_, err := d.Thin(0)
	checkError(t, err, ErrRange, `draws: thin by 0, want at least 1`)
}

func TestSlice(t *testing.T) {
	d := testDraws(t, 5, 2)
	s := must(d.Slice(1, 4))(t)
	equalFloats(t, "chain 0", s.Element(0, 0), []float64{100, 200, 300})
	equalFloats(t, "chain 1", s.Element(1, 0), []float64{10100})
	equalFloats(t, "lp", must(s.Stat("lp", 0))(t), []float64{9001, 9002, 9003})
	if late := must(d.Slice(3, 5))(t); late.Len(0) != 2 || late.Len(1) != 0 {
		t.Errorf("lengths %d %d, want 2 0", late.Len(0), late.Len(1))
	}
	equalDraws(t, must(d.Slice(0, d.MaxLen()))(t), d)
	equalDraws(t, must(d.Slice(0, d.MinLen()))(t), testDraws(t, 2, 2))
	for _, c := range []struct {
		from, to int
		text     string
	}{
		{-1, 2, `draws: slice from -1 to 2, want 0 <= from <= to <= 5, the longest chain`},
		{3, 2, `draws: slice from 3 to 2, want 0 <= from <= to <= 5, the longest chain`},
		{0, 6, `draws: slice from 0 to 6, want 0 <= from <= to <= 5, the longest chain`},
	} {
		_, err := d.Slice(c.from, c.to)
		checkError(t, err, ErrRange, c.text)
	}
}

func TestSelect(t *testing.T) {
	d := testDraws(t, 2, 1)
	s := must(d.Select("w", "tau"))(t)
	want := []Site{{Name: "w", Shape: []int{2, 3}, Offset: 0, Size: 6}, {Name: "tau", Shape: nil, Offset: 6, Size: 1}}
	if diff := layoutDifference(s.Sites(), want, s.Stats(), d.Stats()); diff != "" {
		t.Error(diff)
	}
	equalFloats(t, "row", s.Row(0, 1), []float64{103, 104, 105, 106, 107, 108, 100})
	equalFloats(t, "row", s.Row(1, 0), []float64{10003, 10004, 10005, 10006, 10007, 10008, 10000})
	equalFloats(t, "lp", must(s.Stat("lp", 0))(t), []float64{9000, 9001})
	equalDraws(t, must(d.Select("tau", "v", "w"))(t), d)

	_, err := d.Select("tau", "mu")
	checkError(t, err, ErrUnknownName, `draws: no site "mu"; the sites are "tau", "v", "w"`)
	_, err = d.Select("tau", "v", "tau")
	checkError(t, err, ErrLayout, `draws: select: site "tau" is named twice`)
	_, err = d.Select()
	checkError(t, err, ErrLayout, `draws: select: no site named`)
}

func TestMerge(t *testing.T) {
	d := testDraws(t, 3, 1)
	m := must(d.Merge(testDraws(t, 0, 2), d))(t)
	if m.Chains() != 6 {
		t.Fatalf("%d chains, want 6", m.Chains())
	}
	for c, n := range []int{3, 1, 0, 2, 3, 1} {
		if m.Len(c) != n {
			t.Errorf("chain %d has %d draws, want %d", c, m.Len(c), n)
		}
	}
	equalFloats(t, "chain 3", m.Element(3, 1), []float64{10001, 10101})
	equalDraws(t, must(d.Merge())(t), d)
}

// Containers made from another one share no draws with it.
func TestSubsetsAreCopies(t *testing.T) {
	d := testDraws(t, 2, 2)
	for name, s := range map[string]*Draws{
		"thin":   must(d.Thin(1))(t),
		"slice":  must(d.Slice(0, 1))(t),
		"select": must(d.Select("tau"))(t),
		"merge":  must(d.Merge())(t),
	} {
		if err := s.AppendChain(0, make([]float64, s.Dim()), []float64{0, 0}); err != nil {
			t.Fatal(err)
		}
		s.Row(0, 0)[0] = -1 // what a user must not do must still not reach the source
		t.Run(name, func(t *testing.T) { equalDraws(t, d, testDraws(t, 2, 2)) })
	}
}

func TestMergeErrors(t *testing.T) {
	d := testDraws(t, 1, 1)
	make1 := func(sites []Site, stats ...string) *Draws { return must(New(sites, stats, 1))(t) }
	renamed, reshaped := testSites(), testSites()
	renamed[0].Name = "sigma"
	reshaped[2].Shape = []int{3, 2}
	for _, c := range []struct {
		name  string
		other *Draws
		text  string
	}{
		{"nil", nil, `draws: merge: container 1 is nil`},
		{"name", make1(renamed, "lp", "diverging"),
			`draws: merge: container 1: site 0 is "sigma" of shape [], want "tau" of shape []`},
		{"shape", make1(reshaped, "lp", "diverging"),
			`draws: merge: container 1: site 2 is "w" of shape [3 2], want "w" of shape [2 3]`},
		{"fewer", make1(testSites()[:2], "lp", "diverging"), `draws: merge: container 1: there are 2 sites, want 3`},
		{"statistics", make1(testSites(), "diverging", "lp"),
			`draws: merge: container 1: the statistics are "diverging", "lp", want "lp", "diverging"`},
		{"no statistics", make1(testSites()),
			`draws: merge: container 1: the statistics are none, want "lp", "diverging"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.Merge(d, c.other)
			checkError(t, err, ErrLayout, c.text)
		})
	}
}

func TestChain(t *testing.T) {
	d, err := New([]Site{{Name: "x", Size: 1}}, []string{"lp"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := d.Append([]float64{float64(i), float64(10 + i)},
			[]float64{float64(-i), float64(-10 - i)}); err != nil {
			t.Fatal(err)
		}
	}
	one, err := d.Chain(1)
	if err != nil || one.Chains() != 1 || one.Len(0) != 3 || one.Row(0, 2)[0] != 12 {
		t.Fatalf("%v, %v", one, err)
	}
	if lp, err := one.Stat("lp", 0); err != nil || lp[1] != -11 {
		t.Fatalf("%v, %v", lp, err)
	}
	for _, c := range []int{-1, 2} {
		if _, err := d.Chain(c); !errors.Is(err, ErrRange) {
			t.Errorf("chain %d: %v", c, err)
		}
	}
}

// What a run says of itself goes with every copy, and a copy that is changed leaves its source alone.
func TestCopiesDescribeTheirRun(t *testing.T) {
	d := testDraws(t, 2, 2)
	d.SetAttr(AttrMethod, "hmc.NUTS")
	d.SetAttr("seed", "3")
	d.SetAttr("gone", "x")
	d.SetAttr("gone", "")
	d.SetAttr("never", "")
	stuck := Note{Kind: "stuck", Serious: true, Text: "the fit is stuck", Advice: "set LR"}
	d.AddNote(stuck)
	d.AddNote(stuck)
	d.AddNote(Note{Kind: "slow"})
	attrs, notes := map[string]string{"method": "hmc.NUTS", "seed": "3"}, []Note{stuck, {Kind: "slow"}}
	other := testDraws(t, 1, 1)
	other.SetAttr("seed", "4")
	other.AddNote(stuck)
	other.AddNote(Note{Kind: "late"})

	for name, s := range map[string]*Draws{
		"itself": d,
		"thin":   must(d.Thin(1))(t),
		"slice":  must(d.Slice(0, 1))(t),
		"select": must(d.Select("tau"))(t),
		"chain":  must(d.Chain(1))(t),
		"merge":  must(d.Merge(testDraws(t, 1, 1)))(t),
	} {
		if !maps.Equal(s.Attrs(), attrs) || !slices.Equal(s.Notes(), notes) {
			t.Errorf("%s: got %v %v, want %v %v", name, s.Attrs(), s.Notes(), attrs, notes)
		}
		if s != d {
			s.SetAttr("seed", "5")
			s.AddNote(Note{Kind: name})
		}
		s.Attrs()["seed"] = "6"
		s.Notes()[0].Kind = "changed"
	}
	if !maps.Equal(d.Attrs(), attrs) || !slices.Equal(d.Notes(), notes) {
		t.Errorf("a change of a copy reached its source: %v %v", d.Attrs(), d.Notes())
	}

	m := must(d.Merge(other, d))(t)
	if want := map[string]string{"method": "hmc.NUTS"}; !maps.Equal(m.Attrs(), want) {
		t.Errorf("merge: got %v, want %v, without the contradicted seed", m.Attrs(), want)
	}
	if want := append(notes, Note{Kind: "late"}); !slices.Equal(m.Notes(), want) {
		t.Errorf("merge: got %v, want %v", m.Notes(), want)
	}
}

// What draws are, named values or points of unconstrained space, stays with every part of them; the two do not merge.
func TestSubsetsKeepTheSpace(t *testing.T) {
	d, other := testDraws(t, 4, 4), testDraws(t, 4, 4)
	d.SetSpace(Named)
	other.SetSpace(Unconstrained)
	for what, part := range map[string]*Draws{
		"Thin": must(d.Thin(2))(t), "Slice": must(d.Slice(1, 3))(t), "Select": must(d.Select(d.Sites()[0].Name))(t),
		"Chain": must(d.Chain(1))(t), "Merge": must(d.Merge(d, testDraws(t, 4, 4)))(t),
	} {
		if part.Space() != Named {
			t.Errorf("%s: %q, want %q", what, part.Space(), Named)
		}
	}
	_, err := d.Merge(d, other)
	checkError(t, err, ErrLayout, `draws: merge: container 1 is on unconstrained space, and the first of named values: `+
		`merge Draws of an infer.Result with Draws, or Unconstrained with Unconstrained`)
}
