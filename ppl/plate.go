package ppl

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Plate is a plate as a site sees it: independent repetitions along one dimension of the batch shape.
type Plate struct {
	Name string // of the plate
	Dim  int    // counted from the end of the batch shape: -1 is the last
	Size int    // of the whole population
	Used int    // number of data at hand; 0 before a site has fixed it
}

// plate is a plate that is open.
type plate struct {
	Plate
	known bool // a site has fixed Used
	local bool // that site is latent

	minibatch bool // declared with Minibatch
}

// PlateOption is an option of [Ctx.Plate].
type PlateOption func(*plate)

// Dim puts a plate on a dimension of the batch shape, counted from the end: -1 is the last. By default the outermost
// plate has the last dimension, the next one the dimension before, and so on.
func Dim(d int) PlateOption { return func(p *plate) { p.Dim = d } }

// Plate repeats what f declares size times, independently, along one dimension of the batch shape. Plates nest. Size 0
// takes the size of the data that the model is compiled on (or run on, if it is not compiled).
//
// The batches of a run may be parts of the data. If n of size are at hand, the log densities inside count size/n times,
// so that their mean over minibatches is the sum over all data. [Compile] needs all of the data, unless the option
// [Minibatch] says that its batch is a part of them.
func (c *Ctx) Plate(name string, size int, f func(c *Ctx), options ...PlateOption) {
	p := &plate{Plate: Plate{Name: name, Size: size}}
	for _, o := range options {
		o(p)
	}
	fail := func(message string) { panic(&SiteError{Plates: []string{name}, Message: message}) }
	if name == "" {
		fail("a plate needs a name")
	}
	if f == nil {
		fail("its function is nil")
	}
	if *c.inside != "" {
		fail(fmt.Sprintf("it is declared on the context outside plate %q while that plate is open: use the context "+
			"that the plate's function is given", *c.inside))
	}
	switch {
	case size < 0:
		fail(fmt.Sprintf("its size is %d; it must be at least 1, or 0 to take the size of the data", size))
	case size == 0 && p.minibatch:
		fail("its size is 0, and a minibatch does not tell how large the population is: give the plate its size")
	case size == 0:
		p.Size = c.run.sizes.of(name)
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
	inner.inside = new(string)
	outer := *c.inside
	*c.inside = name
	f(&inner)
	*c.inside = outer
}

// open broadcasts a site to the plates around it, and sets its scale where they are subsampled.
func (s *Site) open() {
	c := s.ctx
	batch, value := s.shapes()
	s.checkColumn(batch, value)
	want := slices.Clone(batch)
	for i, p := range c.plates {
		for len(want) < -p.Dim {
			want = append([]int{1}, want...)
		}
		at := len(want) + p.Dim
		n := want[at]
		if v := len(value) + p.Dim; n == 1 && v >= 0 {
			n = value[v]
		}
		if p.Size > 0 && n > p.Size && c.run.predict && !p.known {
			p.Size = n
		}
		told := s.tells(p.Dim, batch, value)
		if p.Size == 0 {
			p.Size = s.size(p, n, told)
		}
		if p.Size == 0 && n != 0 { // a run that looks for sizes
			want[at] = n
			continue
		}
		one := n
		if v := len(value) + p.Dim; told && v >= 0 {
			one = value[v] // a single datum must not be repeated for each of many parameters
		}
		switch {
		case n == 0 && p.Size > 0 && !c.run.predict:
			s.fail("plate %q has %d of its %d in this run, and the site has batch shape %v and a value of shape "+
				"%v: size 0 at dimension %d; give it its data, or leave the plate out", p.Name, p.Used, p.Size, batch, value,
				p.Dim)
		case told && one == 1 && n != 1 && !p.known:
			s.fail("along plate %q, at dimension %d, the value of shape %v has size 1, and the distribution of batch shape %v "+
				"has size %d: a single datum is not repeated; give %d values, or parameters of one", p.Name, p.Dim, value,
				batch, n, n)
		case told && one == 1 && (n != 1 || p.known && p.Used != 1):
			s.fail("plate %q has %d of its %d in this run, and the site has batch shape %v and a value of shape "+
				"%v: size 1 at dimension %d%s",
				p.Name, p.Used, p.Size, batch, value, p.Dim, p.whole())
		case n == 1 && told:
		case n == 1 && p.known:
			n = p.Used
		case n == 1 && p.minibatch && s.ctx.run.parts != nil && isDiscrete(s):
			n = max(1, s.ctx.run.parts[p.key()])
		case n == 1 && s.ctx.sum != nil && isDiscrete(s): // it has all values at once, whatever the number of data is
		case n == 1 && s.Kind == KindSample && (!s.Observed || s.Value == (torch.Tensor{})):
			n = p.Size
		case n == 1: // a term that is the same for all: it counts Size times and does not fix Used
		case p.known && n != p.Used:
			s.fail("plate %q has %d of its %d in this run, and the site has batch shape %v and a value of shape "+
				"%v: size %d at dimension %d%s",
				p.Name, p.Used, p.Size, batch, value, n, p.Dim, s.tooSmall(p, n))
		case n > p.Size:
			s.fail("plate %q has size %d, and the site has batch shape %v and a value of shape %v: size %d at dimension %d%s",
				p.Name, p.Size, batch, value, n, p.Dim, s.tooSmall(p, n))
		}
		if n != 1 || p.Size == 1 || told {
			p.local = p.local || (!p.known && s.Kind == KindSample && !s.Observed)
			p.known, p.Used = true, n
		}
		s.Plates[i].Used, s.Plates[i].Size = n, p.Size
		want[at] = n
		s.weight *= c.weigh(p.Size, n)
	}
	s.Scale *= s.weight
	s.checkPlates(want, value)
	switch {
	case s.Kind == KindFactor:
		s.shared = s.Value
		if !slices.Equal(want, batch) && !s.ctx.sum.has(s.valueShape()) {
			s.Value = s.Value.Expand(want...)
		}
		return
	case s.ctx.sum.has(s.Dist.BatchShape()):
		s.Dist = partial{s.Dist, want}
	case !slices.Equal(want, batch):
		s.expand(want)
	}
	if s.Value != (torch.Tensor{}) {
		s.checkBroadcast()
	}
}

// weigh is how often each of n data at hand counts, of size in all.
func (c *Ctx) weigh(size, n int) float64 {
	per := c.run.batch.PerEpoch()
	switch {
	case n == size:
		return 1
	case per > 0:
		return float64(per)
	}
	return float64(size) / float64(n)
}

// checkColumn refuses data in one plate that come as a column, of shape [n, 1].
func (s *Site) checkColumn(batch, value []int) {
	if c := s.ctx; s.Kind != KindSample || !s.Observed || len(c.plates) != 1 || c.plates[0].Dim != -1 {
		return
	}
	for what, shape := range map[string][]int{"value": value, "distribution": batch} {
		if len(shape) == 2 && shape[1] == 1 && shape[0] > 1 {
			s.fail("its %s has shape %v, a column, with size %d at dimension -2; plate %q is the last dimension: "+
				"take the column out with Squeeze(-1), or make the dimension part of the event with dist.Independent", what, shape,
				shape[0], s.ctx.plates[0].Name)
		}
	}
}

// tells says whether a site with a single value along a plate fixes the number of data at hand as 1. It does if its
// data have the dimension; a missing dimension is a value that all repetitions share.
func (s *Site) tells(dim int, batch, value []int) bool {
	switch {
	case s.Kind == KindFactor:
		return len(batch) >= -dim
	case !s.Observed:
		return false
	case s.Value == (torch.Tensor{}): // to be drawn: its parameters fix the number
		return len(batch) >= -dim
	}
	return len(value) >= -dim
}

// checkPlates makes sure that every dimension of data in plates belongs to a plate or to the event. Any other dimension
// would be counted wrongly.
func (s *Site) checkPlates(want, value []int) {
	if len(s.ctx.plates) == 0 || s.Kind == KindSample && !s.Observed {
		return
	}
	owned := map[int]bool{}
	for _, p := range s.ctx.plates {
		owned[p.Dim] = true
	}
	for dim := -1; dim >= -max(len(want), len(value)); dim-- {
		n := 1
		if at := len(want) + dim; at >= 0 {
			n = want[at]
		}
		if at := len(value) + dim; at >= 0 && n == 1 {
			n = value[at]
		}
		if n != 1 && !owned[dim] {
			batch, _ := s.shapes()
			s.fail("it has batch shape %v and a value of shape %v, with size %d at dimension %d, which is no "+
				"plate's: drop the dimension, make it part of "+
				"the event with dist.Independent, or declare a plate for it", batch, value, n, dim)
		}
	}
}

// shapes are the batch shape of a site and the shape of its value without the event; nil where there is none.
func (s *Site) shapes() (batch, value []int) {
	if s.Kind == KindFactor {
		return s.ctx.sum.strip(s.valueShape()), nil
	}
	if s.Value != (torch.Tensor{}) {
		value = s.valueShape()
		value = s.ctx.sum.strip(value[:max(len(value)-len(s.Dist.EventShape()), 0)])
	}
	return s.ctx.sum.strip(s.Dist.BatchShape()), value
}

// observe gives a site a known value, from the handler of the given name. The value may have another size than the
// plates were opened with, so they are opened again.
func (s *Site) observe(by string, value torch.Tensor) {
	opened := s.Value != (torch.Tensor{})
	if !s.declared && !s.Observed {
		s.by = by
	}
	s.Value, s.Observed, s.declared = value, true, false
	if opened {
		s.checkBroadcast()
		return
	}
	for i, p := range s.ctx.plates {
		*p = s.before[i]
		s.Plates[i] = p.Plate
	}
	s.Dist = s.given
	s.Scale /= s.weight
	s.weight = 1
	s.open()
}

// whole is the hint in errors about a plate that cannot be subsampled.
func (p *plate) whole() string {
	if p.local {
		return "; a plate with latent variables inside takes all of its data in every batch"
	}
	return ""
}

// tooSmall is the hint in errors about n data in a plate.
func (s *Site) tooSmall(p *plate, n int) string {
	sizes := s.ctx.run.sizes
	_, fixed := sizes.fixed[p.Name]
	_, told := sizes.told[p.Name]
	switch {
	case told && sizes.shapes != nil && p.local && n != p.Size:
		return fmt.Sprintf("; the draws have the variables in plate %q for %d: %s", p.Name, p.Size, leaveOut)
	case !s.Observed || n <= p.Size || p.Size == 0:
		return p.whole()
	case fixed:
		return fmt.Sprintf("; the size is that of the data of ppl.Compile: compile the model on all %d", n)
	}
	return fmt.Sprintf("; give the plate size %d, or 0, which takes the size of the data", n)
}

// column is the hint in errors about data that come as a column, of shape [n, 1], beside n of shape [n].
func column(value, batch []int) string {
	is := func(x, beside []int) bool {
		return len(x) == len(beside)+1 && x[len(beside)] == 1 && slices.Equal(x[:len(beside)], beside)
	}
	switch {
	case is(value, batch):
		return "; the value is a column: take it out with Squeeze(-1)"
	case is(batch, value):
		return "; the distribution is of a column: take it out of what it is given with Squeeze(-1)"
	}
	return ""
}

// expand expands the distribution, and says which site and shapes when it cannot be.
func (s *Site) expand(want []int) {
	batch := s.Dist.BatchShape()
	for i := range batch {
		if w := want[len(want)-len(batch)+i]; batch[i] != 1 && batch[i] != w {
			s.fail("its batch shape %v does not broadcast to %v, the shape of the plates around it", batch, want)
		}
	}
	s.Dist = s.Dist.Expand(want...)
}

// checkBroadcast makes sure that a value fits the distribution. The event must be the distribution's. Either the value
// or the batch may broadcast to the other; if both did, terms would silently count several times.
func (s *Site) checkBroadcast() {
	value := s.valueShape()
	batch, event := s.Dist.BatchShape(), s.Dist.EventShape()
	at := len(value) - len(event)
	if len(event) > 0 && (at < 0 || !slices.Equal(value[at:], event)) {
		s.fail("a value of shape %v does not end in the event shape %v (batch shape %v)", value, event, batch)
	}
	outer := s.ctx.sum.strip(value[:at])
	switch {
	case broadcastsTo(outer, batch):
	case !broadcastsTo(batch, outer):
		hint := column(outer, batch)
		for _, p := range s.ctx.plates {
			if at := len(outer) + p.Dim; p.local && at >= 0 {
				hint = cmp.Or(s.tooSmall(p, outer[at]), hint)
			}
		}
		s.fail("a value of shape %v does not broadcast with batch shape %v and event shape %v%s", value, batch, event,
			hint)
	case s.by != "":
		remedy := ""
		if len(s.Plates) == 0 {
			remedy = "; a variable for each datum is in a plate: c.Plate(name, 0, ...) takes the size of the data"
		}
		s.fail("%s gives it a value of shape %v, which has more dimensions or elements than batch shape %v and event "+
			"shape %v%s", s.by, value, batch, event, remedy)
	case len(outer) > len(batch) && len(s.Plates) > 0, !s.Observed:
		s.fail("a value of shape %v has more dimensions or elements than batch shape %v and event shape %v", value,
			batch, event)
	}
}

func sorted(names []string) []string {
	sort.Strings(names)
	return names
}
