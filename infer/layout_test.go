package infer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
)

// Sites come in the order of their names, byte by byte (capitals first), one after the other: each offset is the sum of
// the sizes before it, and a scalar takes one place.
func TestLayoutSortsSites(t *testing.T) {
	shapes := infer.Shapes{"w": {2, 3}, "b": {}, "a": {4}, "Z": {1}}
	l := layoutOf(t, shapes)
	want := []infer.Site{
		{Name: "Z", Shape: []int{1}, Offset: 0, Size: 1},
		{Name: "a", Shape: []int{4}, Offset: 1, Size: 4},
		{Name: "b", Shape: []int{}, Offset: 5, Size: 1},
		{Name: "w", Shape: []int{2, 3}, Offset: 6, Size: 6},
	}
	if diff := cmp.Diff(want, l.Sites); diff != "" {
		t.Fatal(diff)
	}
	assert.Equal(t, 1+4+1+6, l.Dim())
	assert.Equal(t, []string{"Z", "a", "b", "w"}, l.Names())
	assert.Equal(t, "Z[1] a[4] b[] w[2 3]", l.String())
	for _, s := range want {
		found, ok := l.Site(s.Name)
		assert.True(t, ok)
		assert.Equal(t, s, found)
	}
	for _, name := range []string{"", "A", "aa", "x"} {
		_, ok := l.Site(name)
		assert.False(t, ok, name)
	}

	// The layout has shapes of its own.
	shapes["w"][0] = 7
	s, _ := l.Site("w")
	assert.Equal(t, []int{2, 3}, s.Shape)
}

// Elements are named in row-major order, as the draws container names its columns, which is other code.
func TestLayoutNamesElements(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {2, 3}, "b": {}, "v": {2}, "t": {2, 1, 2}})
	want := []string{"b", "t[0,0,0]", "t[0,0,1]", "t[1,0,0]", "t[1,0,1]", "v[0]", "v[1]", "w[0,0]", "w[0,1]", "w[0,2]",
		"w[1,0]", "w[1,1]", "w[1,2]"}
	got := make([]string, l.Dim())
	for i := range got {
		got[i] = l.At(i)
	}
	assert.Equal(t, want, got)
	d, err := draws.New(l.Sites, nil, 1)
	require.NoError(t, err)
	assert.Equal(t, d.Names(), got)
	assert.Equal(t, "element 13", l.At(13))
	assert.Equal(t, "element -1", l.At(-1))
}

func TestLayoutEqual(t *testing.T) {
	a := layoutOf(t, infer.Shapes{"w": {2, 3}, "b": {}})
	assert.True(t, a.Equal(a))
	assert.True(t, a.Equal(layoutOf(t, infer.Shapes{"b": {}, "w": {2, 3}})))
	for name, other := range map[string]infer.Shapes{
		"another name":  {"w": {2, 3}, "c": {}},
		"another shape": {"w": {3, 2}, "b": {}},
		"a vector of 1": {"w": {2, 3}, "b": {1}},
		"fewer sites":   {"w": {2, 3}},
		"more sites":    {"w": {2, 3}, "b": {}, "c": {}},
	} {
		assert.False(t, a.Equal(layoutOf(t, other)), name)
		assert.False(t, layoutOf(t, other).Equal(a), name)
	}
	var none *infer.Layout
	assert.False(t, a.Equal(none))
	assert.False(t, none.Equal(a))
	assert.True(t, none.Equal(none))
}

func TestLayoutExcept(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"a": {}, "b": {}, "c": {}})
	assert.Equal(t, []string{"a", "c"}, l.Except("b"))
	assert.Equal(t, []string{"a", "b", "c"}, l.Except("z"))
	assert.Empty(t, l.Except("c", "b", "a"))
	assert.Equal(t, []string{"a", "b", "c"}, l.Names(), "the layout is not changed")
}

// A layout that is nil has nothing in it, and does not crash.
func TestLayoutNil(t *testing.T) {
	var l *infer.Layout
	assert.Zero(t, l.Dim())
	assert.Empty(t, l.Names())
	_, ok := l.Site("w")
	assert.False(t, ok)
}

func TestLayoutErrors(t *testing.T) {
	for name, c := range map[string]struct {
		shapes infer.Shapes
		want   string
	}{
		"no sites": {nil, "infer.NewLayout: there are no sites: layout does not fit"},
		"size 0": {infer.Shapes{"a": {2}, "w": {3, 0}},
			`infer.NewLayout: site "w" has shape [3 0]: sizes must be positive: layout does not fit`},
		"negative size": {infer.Shapes{"w": {-1}},
			`infer.NewLayout: site "w" has shape [-1]: sizes must be positive: layout does not fit`},
		// 2⁴⁰·2⁴⁰ does not fit an int of 64 bits; silently it would be 0.
		"too many elements": {infer.Shapes{"w": {1 << 40, 1 << 40}},
			`infer.NewLayout: site "w" has shape [1099511627776 1099511627776]: that is too many elements: layout does not fit`},
		// Each fits, and their sum does not.
		"too many together": {infer.Shapes{"v": {1 << 62}, "w": {1 << 62}},
			`infer.NewLayout: draws: site 1 ("w"): 4611686018427387904 elements after 4611686018427387904 are too many ` +
				`for an int: layout does not fit`},
		"empty name": {infer.Shapes{"": {1}}, "infer.NewLayout: draws: site 0 has no name: layout does not fit"},
		// Draws refuse such a name, and a run would notice only after burn-in.
		"control character": {infer.Shapes{"w\n": {1}},
			`infer.NewLayout: draws: site 0: name "w\n" has a control character: layout does not fit`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := infer.NewLayout(c.shapes)
			assert.EqualError(t, err, c.want)
			assert.ErrorIs(t, err, infer.ErrLayout)
		})
	}
}
