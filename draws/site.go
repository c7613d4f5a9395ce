package draws

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Site is one named parameter: its place in a draw's flat vector. The elements of the site are at Offset to
// Offset+Size-1, in row-major order of Shape.
type Site struct {
	// Name is not empty and has no control characters. Names are unique in a container.
	Name string
	// Shape has no negative sizes. A scalar has shape [] (nil or empty) and Size 1.
	Shape []int
	// Offset is the index of the first element; Size, the product of Shape, counts the elements.
	Offset, Size int
	// Labels name the elements along each dimension, as the levels of a factor do: a list for each dimension, nil for one
	// that has none; nil for no labels at all. They have no control characters.
	Labels [][]string `json:",omitempty"`
}

func (s Site) clone() Site {
	s.Shape, s.Labels = slices.Clone(s.Shape), slices.Clone(s.Labels)
	return s
}

func (s Site) equal(t Site) bool {
	return s.Name == t.Name && s.Offset == t.Offset && s.Size == t.Size && slices.Equal(s.Shape, t.Shape)
}

// elementNames appends the names of the elements of s: w[0], w[1], or w[0,0], w[0,1], w[1,0], ..., with a label in the
// place of an index where there is one; the bare name for a scalar.
func (s Site) elementNames(names []string) []string {
	if len(s.Shape) == 0 {
		return append(names, s.Name)
	}
	index := make([]int, len(s.Shape))
	var text []byte
	for range s.Size {
		text = append(append(text[:0], s.Name...), '[')
		for k, i := range index {
			if k > 0 {
				text = append(text, ',')
			}
			if k < len(s.Labels) && s.Labels[k] != nil {
				text = append(text, s.Labels[k][i]...)
			} else {
				text = strconv.AppendInt(text, int64(i), 10)
			}
		}
		names = append(names, string(append(text, ']')))
		for k := len(index) - 1; k >= 0; k-- { // the last index runs fastest
			if index[k]++; index[k] < s.Shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return names
}

// wrongLabels says what is wrong with the labels; it is empty where nothing is.
func (s Site) wrongLabels() string {
	if len(s.Labels) > 0 && len(s.Labels) != len(s.Shape) {
		return fmt.Sprintf("there are labels of %d dimensions, want %d, those of shape %v", len(s.Labels), len(s.Shape),
			s.Shape)
	}
	for k, labels := range s.Labels {
		if labels != nil && len(labels) != s.Shape[k] {
			return fmt.Sprintf("there are %d labels along dimension %d, want %d", len(labels), k, s.Shape[k])
		}
		for _, label := range labels {
			if strings.ContainsFunc(label, unicode.IsControl) {
				return fmt.Sprintf("label %q has a control character", label)
			}
		}
	}
	return ""
}

// product is the number of elements of a shape; ok is false where a size is negative or the product is too large.
func product(shape []int) (n int, ok bool) {
	if slices.ContainsFunc(shape, func(s int) bool { return s < 0 }) {
		return 0, false
	}
	if slices.Contains(shape, 0) {
		return 0, true
	}
	p := 1
	for _, s := range shape {
		if s > math.MaxInt64/p {
			return 0, false
		}
		p *= s
	}
	return p, true
}

// checkSites returns the length of the flat vector that sites tile.
func checkSites(sites []Site) (dim int, err error) {
	seen := make(map[string]int, len(sites))
	for i, s := range sites {
		if err := checkName("site", i, s.Name, seen); err != nil {
			return 0, err
		}
		n, ok := product(s.Shape)
		switch {
		case !ok:
			return 0, failf(ErrLayout, "site %d (%q): shape %v: sizes must not be negative, nor their product overflow",
				i, s.Name, s.Shape)
		case s.Size != n:
			return 0, failf(ErrLayout, "site %d (%q): size is %d, want %d, the product of shape %v", i, s.Name, s.Size,
				n, s.Shape)
		case s.Offset != dim:
			return 0, failf(ErrLayout, "site %d (%q): offset is %d, want %d, the end of the sites before it", i, s.Name,
				s.Offset, dim)
		case s.wrongLabels() != "":
			return 0, failf(ErrLayout, "site %d (%q): %s", i, s.Name, s.wrongLabels())
		case n > math.MaxInt-dim:
			return 0, failf(ErrLayout, "site %d (%q): %d elements after %d are too many for an int", i, s.Name, n, dim)
		}
		dim += n
	}
	return dim, nil
}

// checkStats checks the names of the statistics.
func checkStats(stats []string) error {
	seen := make(map[string]int, len(stats))
	for i, name := range stats {
		if err := checkName("statistic", i, name, seen); err != nil {
			return err
		}
	}
	return nil
}

// checkName checks the name of the i-th site or statistic, and notes it in seen. Control characters would break lines
// of tables, and a CSV reader changes line ends.
func checkName(what string, i int, name string, seen map[string]int) error {
	if name == "" {
		return failf(ErrLayout, "%s %d has no name", what, i)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return failf(ErrLayout, "%s %d: name %q has a control character", what, i, name)
	}
	if first, ok := seen[name]; ok {
		return failf(ErrLayout, "%s %d: name %q is also that of %s %d; names must be unique", what, i, name, what,
			first)
	}
	seen[name] = i
	return nil
}

// layoutDifference says how a layout differs from the wanted one; it is empty if it does not.
func layoutDifference(sites, want []Site, stats, wantStats []string) string {
	for i := range min(len(sites), len(want)) {
		if s, t := sites[i], want[i]; !s.equal(t) {
			return fmt.Sprintf("site %d is %q of shape %v, want %q of shape %v", i, s.Name, s.Shape, t.Name, t.Shape)
		}
	}
	if len(sites) != len(want) {
		return fmt.Sprintf("there are %d sites, want %d", len(sites), len(want))
	}
	if !slices.Equal(stats, wantStats) {
		return fmt.Sprintf("the statistics are %s, want %s", listed(stats), listed(wantStats))
	}
	return ""
}
