package store

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// layoutKey is the name of the comment or attribute that holds a layout.
const layoutKey = "kelvin_layout"

// layout is what a format cannot say about draws by itself. It is written as one line of JSON.
type layout struct {
	Sites []layoutSite `json:"sites"`
	Stats []string     `json:"stats,omitempty"`
	// Lengths are the draws of each chain, where a file holds all chains.
	Lengths []int `json:"lengths,omitempty"`
}

type layoutSite struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
}

func newLayout(sites []draws.Site, stats []string) layout {
	l := layout{Sites: make([]layoutSite, len(sites)), Stats: stats}
	for i, s := range sites {
		l.Sites[i] = layoutSite{s.Name, append([]int64{}, s.Shape...)}
	}
	return l
}

func layoutOf(d *draws.Draws) layout {
	l := newLayout(d.Sites(), d.Stats())
	l.Lengths = make([]int, d.Chains())
	for c := range l.Lengths {
		l.Lengths[c] = d.Len(c)
	}
	return l
}

func (l layout) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		return "" // cannot be: the struct holds strings and integers
	}
	return string(text)
}

// parseLayout is nil where the text is no layout: a foreign or damaged one is as good as none.
func parseLayout(text string) *layout {
	l := &layout{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		return nil
	}
	if _, err := draws.New(l.sites(), l.Stats, 1); err != nil {
		return nil
	}
	return l
}

// sites places the sites one after the other.
func (l layout) sites() []draws.Site {
	sites := make([]draws.Site, len(l.Sites))
	at := 0
	for i, s := range l.Sites {
		size, ok := product(s.Shape)
		if !ok {
			size = -1 // refused by draws.New
		}
		sites[i] = draws.Site{Name: s.Name, Shape: s.Shape, Offset: at, Size: size}
		at += size
	}
	return sites
}

// product is the number of elements of a shape; ok is false where a size is negative or the number is absurd.
func product(shape []int64) (n int, ok bool) {
	if slices.Contains(shape, 0) {
		return 0, !slices.ContainsFunc(shape, func(s int64) bool { return s < 0 })
	}
	p := int64(1)
	for _, s := range shape {
		if s < 0 || s > (1<<46)/p {
			return 0, false
		}
		p *= s
	}
	return int(p), true
}

func sameSites(a, b []draws.Site) bool {
	return slices.EqualFunc(a, b, func(s, t draws.Site) bool { return s.Name == t.Name && slices.Equal(s.Shape, t.Shape) })
}

// nan is what missing draws are filled with.
var nan = math.NaN()
