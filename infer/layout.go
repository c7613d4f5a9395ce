package infer

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// Site is one named parameter: its shape and its place in the flat vector.
type Site = draws.Site

// Layout gives each named parameter its place in one flat vector of length [Layout.Dim]. Sites are sorted by name and
// lie one after the other, each in row-major order.
type Layout struct {
	Sites []Site
}

// Shapes names parameters and their shapes; [] is a scalar.
type Shapes map[string][]int

// NewLayout lays out the named parameters.
func NewLayout(shapes Shapes) (*Layout, error) {
	if len(shapes) == 0 {
		return nil, fmt.Errorf("infer.NewLayout: there are no sites: %w", ErrLayout)
	}
	names := make([]string, 0, len(shapes))
	for name := range shapes {
		names = append(names, name)
	}
	sort.Strings(names)
	l := &Layout{}
	offset := 0
	for _, name := range names {
		size := 1
		for _, s := range shapes[name] {
			if s < 1 {
				return nil, fmt.Errorf("infer.NewLayout: site %q has shape %v: sizes must be positive: %w", name, shapes[name],
					ErrLayout)
			}
			if s > (math.MaxInt / size) {
				return nil, fmt.Errorf("infer.NewLayout: site %q has shape %v: that is too many elements: %w", name, shapes[name],
					ErrLayout)
			}
			size *= s
		}
		l.Sites = append(l.Sites, Site{Name: name, Shape: slices.Clone(shapes[name]), Offset: offset, Size: size})
		offset += size
	}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("infer.NewLayout: %w", err)
	}
	return l, nil
}

// check makes sure that sites can be found and draws recorded, now instead of after burn-in.
func (l *Layout) check() error {
	if names := l.Names(); !slices.IsSorted(names) {
		return fmt.Errorf("the sites %q are not sorted by name; make the layout with NewLayout: %w", names, ErrLayout)
	}
	if _, err := draws.New(l.Sites, nil, 1); err != nil {
		return fmt.Errorf("%w: %w", err, ErrLayout)
	}
	return nil
}

// Dim is the length of the flat vector.
func (l *Layout) Dim() int {
	if l == nil || len(l.Sites) == 0 {
		return 0
	}
	last := l.Sites[len(l.Sites)-1]
	return last.Offset + last.Size
}

// Site finds a site by name.
func (l *Layout) Site(name string) (Site, bool) {
	if l == nil {
		return Site{}, false
	}
	i, ok := slices.BinarySearchFunc(l.Sites, name, func(s Site, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		return Site{}, false
	}
	return l.Sites[i], true
}

// Names are the sites' names in order.
func (l *Layout) Names() []string {
	if l == nil {
		return nil
	}
	names := make([]string, len(l.Sites))
	for i, s := range l.Sites {
		names[i] = s.Name
	}
	return names
}

// Equal says whether two layouts have the same names and shapes.
func (l *Layout) Equal(other *Layout) bool {
	if l == nil || other == nil || l == other {
		return l == other
	}
	return slices.EqualFunc(l.Sites, other.Sites, func(a, b Site) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Shape, b.Shape)
	})
}

// String lists the sites with their shapes.
func (l *Layout) String() string {
	parts := make([]string, len(l.Sites))
	for i, s := range l.Sites {
		parts[i] = fmt.Sprintf("%s%v", visible.Text(s.Name), s.Shape)
	}
	return strings.Join(parts, " ")
}

// At names the element of the flat vector with index i, for messages: "w[3]".
func (l *Layout) At(i int) string {
	for _, s := range l.Sites {
		if i >= s.Offset && i < s.Offset+s.Size {
			if len(s.Shape) == 0 {
				return visible.Text(s.Name)
			}
			index := make([]string, len(s.Shape))
			rest := i - s.Offset
			for d := len(s.Shape) - 1; d >= 0; d-- {
				index[d] = fmt.Sprint(rest % s.Shape[d])
				rest /= s.Shape[d]
			}
			return visible.Text(s.Name) + "[" + strings.Join(index, ",") + "]"
		}
	}
	return fmt.Sprintf("element %d", i)
}
