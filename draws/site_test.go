package draws

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	sites := append(testSites(),
		Site{Name: "cube", Shape: []int{2, 1, 2}, Offset: 9, Size: 4},
		Site{Name: "none", Shape: []int{3, 0}, Offset: 13, Size: 0},
		Site{Name: "one", Shape: []int{1}, Offset: 13, Size: 1})
	d := must(New(sites, nil, 1))(t)
	// Row-major: the last index runs fastest. A vector of length 1 keeps its index, a scalar has none.
	want := []string{
		"tau", "v[0]", "v[1]", "w[0,0]", "w[0,1]", "w[0,2]", "w[1,0]", "w[1,1]", "w[1,2]",
		"cube[0,0,0]", "cube[0,0,1]", "cube[1,0,0]", "cube[1,0,1]", "one[0]",
	}
	if got := d.Names(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d.Dim() != len(want) {
		t.Errorf("Dim is %d, want %d", d.Dim(), len(want))
	}
}

func TestNewErrors(t *testing.T) {
	scalar := func(name string, offset int) Site { return Site{Name: name, Offset: offset, Size: 1} }
	huge := int(math.MaxInt64)
	for _, c := range []struct {
		name   string
		sites  []Site
		stats  []string
		chains int
		kind   error
		text   string
	}{
		{"no chains", nil, nil, 0, ErrRange, `draws: 0 chains; there must be at least 1`},
		{"unnamed site", []Site{scalar("a", 0), scalar("", 1)}, nil, 1, ErrLayout, `draws: site 1 has no name`},
		{"repeated site", []Site{scalar("a", 0), scalar("b", 1), scalar("a", 2)}, nil, 1, ErrLayout,
			`draws: site 2: name "a" is also that of site 0; names must be unique`},
		{"line break in a name", []Site{scalar("a\nb", 0)}, nil, 1, ErrLayout,
			`draws: site 0: name "a\nb" has a control character`},
		{"gap", []Site{scalar("a", 0), scalar("b", 2)}, nil, 1, ErrLayout,
			`draws: site 1 ("b"): offset is 2, want 1, the end of the sites before it`},
		{"overlap", []Site{{Name: "a", Shape: []int{2}, Offset: 0, Size: 2}, scalar("b", 1)}, nil, 1, ErrLayout,
			`draws: site 1 ("b"): offset is 1, want 2, the end of the sites before it`},
		{"size", []Site{{Name: "a", Shape: []int{2, 3}, Offset: 0, Size: 5}}, nil, 1, ErrLayout,
			`draws: site 0 ("a"): size is 5, want 6, the product of shape [2 3]`},
		{"size of a scalar", []Site{{Name: "a", Shape: nil, Offset: 0, Size: 0}}, nil, 1, ErrLayout,
			`draws: site 0 ("a"): size is 0, want 1, the product of shape []`},
		{"negative", []Site{{Name: "a", Shape: []int{-1, 0}, Offset: 0, Size: 0}}, nil, 1, ErrLayout,
			`draws: site 0 ("a"): shape [-1 0]: sizes must not be negative, nor their product overflow`},
		{"overflow", []Site{{Name: "a", Shape: []int{huge, 2}, Offset: 0, Size: 1}}, nil, 1, ErrLayout,
			`draws: site 0 ("a"): shape [9223372036854775807 2]: sizes must not be negative, nor their product overflow`},
		{"too many", []Site{scalar("a", 0), {Name: "b", Shape: []int{huge}, Offset: 1, Size: math.MaxInt}}, nil, 1,
			ErrLayout,
			`draws: site 1 ("b"): 9223372036854775807 elements after 1 are too many for an int`},
		{"too many with statistics", []Site{{Name: "a", Shape: []int{huge}, Offset: 0, Size: math.MaxInt}},
			[]string{"lp"}, 1, ErrLayout,
			`draws: 9223372036854775807 elements and 1 statistics are too many for an int`},
		{"unnamed statistic", nil, []string{"lp", ""}, 1, ErrLayout, `draws: statistic 1 has no name`},
		{"repeated statistic", nil, []string{"lp", "lp"}, 1, ErrLayout,
			`draws: statistic 1: name "lp" is also that of statistic 0; names must be unique`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strconv.IntSize == 32 && strings.Contains(c.text, strconv.FormatInt(int64(huge), 10)) {
				t.Skip("the text is that of a 64-bit machine")
			}
			_, err := New(c.sites, c.stats, c.chains)
			checkError(t, err, c.kind, c.text)
		})
	}
}

// A zero size makes the product zero however large the other sizes are.
func TestZeroSizeDoesNotOverflow(t *testing.T) {
	must(New([]Site{{Name: "a", Shape: []int{math.MaxInt64, math.MaxInt64, 0}, Offset: 0, Size: 0}}, nil, 1))(t)
}

// The container keeps its own copy of what it was given, and gives out copies.
func TestLayoutIsCopied(t *testing.T) {
	sites, stats := testSites(), []string{"lp"}
	d := must(New(sites, stats, 1))(t)
	sites[1].Name, sites[2].Shape[0], stats[0] = "changed", 7, "changed"
	got := d.Sites()
	got[2].Shape[1] = 7
	s := must(d.Site("w"))(t)
	s.Shape[0] = 7
	d.Stats()[0] = "changed"
	want := must(New(testSites(), []string{"lp"}, 1))(t)
	equalDraws(t, d, want)
}

func TestSite(t *testing.T) {
	d := testDraws(t, 0, 0)
	if s := must(d.Site("v"))(t); !s.equal(testSites()[1]) {
		t.Errorf("got %v", s)
	}
	_, err := d.Site("mu")
	checkError(t, err, ErrUnknownName, `draws: no site "mu"; the sites are "tau", "v", "w"`)

	empty := must(New(nil, nil, 1))(t)
	_, err = empty.Site("mu")
	checkError(t, err, ErrUnknownName, `draws: no site "mu"; the sites are none`)

	var many []Site
	for i := range 14 {
		many = append(many, Site{Name: string(rune('a' + i)), Offset: i, Size: 1})
	}
	_, err = must(New(many, nil, 1))(t).Site("z")
	checkError(t, err, ErrUnknownName,
		`draws: no site "z"; the sites are "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" and 2 more`)
}
