package ppl

import (
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/dist"
)

// Plate is a plate as a site sees it: independent repetitions along one dimension of the batch shape.
type Plate struct {
	Name string
	Dim  int   // counted from the end of the batch shape: -1 is the last
	Size int64 // of the whole population
	Used int64 // of the data at hand; 0 while no site has told
}

// plate is a plate that is open.
type plate struct {
	Plate
	known bool // Used was told by a site
}

func (p *plate) frame() Plate { return p.Plate }

// PlateOption is an option of [Ctx.Plate].
type PlateOption func(*plate)

// Dim puts a plate on a dimension of the batch shape, counted from the end: -1 is the last. By default the outermost plate has
// the last dimension, the next one the dimension before, and so on.
func Dim(d int) PlateOption { return func(p *plate) { p.Dim = d } }

// Plate declares that what f declares is repeated size times, independently, along one dimension of the batch shape. Data may
// be a part of the population: with n of size at hand, the log densities inside count size/n times, so that their mean over
// minibatches is the whole. Plates nest.
func (c *Ctx) Plate(name string, size int64, f func(c *Ctx), options ...PlateOption) {
	p := &plate{Plate: Plate{Name: name, Size: size}}
	for _, o := range options {
		o(p)
	}
	fail := func(message string) { panic(&SiteError{Plates: []string{name}, Message: message}) }
	if size < 1 {
		fail("its size must be at least 1")
	}
	taken := map[int]bool{}
	for _, q := range c.plates {
		taken[q.Dim] = true
		if q.Name == name {
			fail("a plate of that name is open already")
		}
	}
	if p.Dim > 0 {
		fail("its dimension must be negative: it is counted from the end of the batch shape")
	}
	if taken[p.Dim] && p.Dim != 0 {
		fail("another open plate has its dimension")
	}
	for p.Dim == 0 || (taken[p.Dim]) {
		if p.Dim == 0 {
			p.Dim = -1
		} else {
			p.Dim--
		}
	}
	inner := *c
	inner.plates = append(slices.Clone(c.plates), p)
	f(&inner)
}

// open broadcasts a site's distribution to the plates around it, and sets its scale where they are subsampled.
func (c *Ctx) open(s *Site) {
	batch := s.Dist.BatchShape()
	want := slices.Clone(batch)
	for _, p := range c.plates {
		for len(want) < -p.Dim {
			want = append([]int64{1}, want...)
		}
	}
	event := len(s.Dist.EventShape())
	var value []int64
	if s.Value != nil {
		value = shapeOf(s.Value)
		value = value[:max(len(value)-event, 0)]
	}
	for _, p := range c.plates {
		s.Plates = append(s.Plates, p.frame())
	}
	for i, p := range c.plates {
		at := len(want) + p.Dim
		n := want[at]
		if v := len(value) + p.Dim; n == 1 && v >= 0 && value[v] != 1 {
			n = value[v]
		}
		switch {
		case n == 1 && p.known:
			n = p.Used
		case n == 1 && !s.Observed:
			n = p.Size
		case n == 1: // an observation that is the same for all: it says nothing of the size
		case p.known && n != p.Used:
			s.fail("plate %q has %d of its %d in this run, and the site has batch shape %v and a value of shape %v: size %d at dimension %d",
				p.Name, p.Used, p.Size, batch, value, n, p.Dim)
		case n > p.Size:
			s.fail("plate %q has size %d, and the site has batch shape %v and a value of shape %v: size %d at dimension %d",
				p.Name, p.Size, batch, value, n, p.Dim)
		}
		if n != 1 || p.Size == 1 {
			p.known, p.Used = true, n
		}
		s.Plates[i].Used = n
		want[at] = n
		if p.known && p.Used != p.Size {
			s.Scale *= float64(p.Size) / float64(p.Used)
		}
	}
	if !slices.Equal(want, batch) {
		s.Dist = expandDist(s, want)
	}
	if s.Value != nil {
		checkBroadcast(s)
	}
}

// expandDist expands a distribution, and says which site and shapes when it cannot be.
func expandDist(s *Site, want []int64) dist.Distribution {
	batch := s.Dist.BatchShape()
	for i := range batch {
		if w := want[len(want)-len(batch)+i]; batch[i] != 1 && batch[i] != w {
			s.fail("its batch shape %v does not broadcast to %v, the shape of the plates around it", batch, want)
		}
	}
	return s.Dist.Expand(want...)
}

// checkBroadcast makes sure that an observed value fits the distribution: a value that is larger would silently count
// several times.
func checkBroadcast(s *Site) {
	value := shapeOf(s.Value)
	want := append(s.Dist.BatchShape(), s.Dist.EventShape()...)
	for i := 1; i <= max(len(value), len(want)); i++ {
		v, w := int64(1), int64(1)
		if i <= len(value) {
			v = value[len(value)-i]
		}
		if i <= len(want) {
			w = want[len(want)-i]
		}
		if v != w && v != 1 && w != 1 {
			s.fail("a value of shape %v does not broadcast with batch shape %v and event shape %v", value, s.Dist.BatchShape(), s.Dist.EventShape())
		}
		if i > len(want) && v != 1 && len(s.Plates) > 0 {
			s.fail("a value of shape %v has more dimensions than batch shape %v and event shape %v", value, s.Dist.BatchShape(), s.Dist.EventShape())
		}
	}
}

func sorted(names []string) []string {
	sort.Strings(names)
	return names
}
