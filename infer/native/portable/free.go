package portable

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// grow says how the whole number at a place among those that are read grows with the rows: by First with each, which
// itself grows by Second.
type grow struct{ At, First, Second int }

// free is what a codec knows of the whole numbers of a plan of a free size.
type free struct {
	at     int
	growth []grow
	more   int   // rows than those of the base
	all    []int // that were written
}

func (f *free) written(v int) {
	if f != nil {
		f.all = append(f.all, v)
	}
}

func (f *free) read(v int) int {
	if f == nil {
		return v
	}
	if len(f.growth) > 0 && f.growth[0].At == f.at {
		g := f.growth[0]
		f.growth = f.growth[1:]
		v += g.First*f.more + g.Second*(f.more*(f.more-1)/2)
	}
	f.at++
	return v
}

const (
	maxRows   = 1 << 20 // of a prediction
	maxGrowth = 1 << 20 // so that no product overflows
	maxRun    = 1 << 22 // numbers that runs make
)

// runs are numbers as runs of equal ones.
func (c *codec) runs(p *[]float64, n int) {
	type run struct {
		n int
		v [1]float64
	}
	var all []run
	for _, v := range *p {
		if k := len(all) - 1; k >= 0 && same(all[k].v[0], v) {
			all[k].n++
			continue
		}
		all = append(all, run{1, [1]float64{v}})
	}
	many(c, &all, 1, func(r *run) {
		c.ints(&r.n)
		v := r.v[:]
		if c.numbers(&v, 1); len(v) == 1 {
			r.v[0] = v[0]
		}
	})
	if !c.reading {
		return
	}
	*p = nil
	for _, r := range all {
		if r.n < 0 || r.n > n-len(*p) || r.n > maxRun {
			c.fail()
			return
		}
		*p = append(*p, slices.Repeat(r.v[:], r.n)...)
	}
	if len(*p) != n {
		c.fail()
	}
}

// same says whether two numbers have the same bits.
func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// sites are names with shapes, one after the other.
func (c *codec) sites(p *[]draws.Site) {
	offset := 0
	many(c, p, 1, func(s *draws.Site) {
		slot := ir.Slot{Name: s.Name, Shape: s.Shape}
		c.slot(&slot)
		*s = draws.Site{Name: slot.Name, Shape: slot.Shape, Offset: offset, Size: slot.Len()}
		offset += s.Size
	})
}

// body is what depends on the number of rows.
func (c *codec) body(takes *[]take, plan *ir.Plan) {
	many(c, takes, 1, func(t *take) {
		c.text(&t.kind)
		c.ints(&t.size)
	})
	c.plan(plan)
}

// prediction is a prediction without the numbers of its inputs.
func (c *codec) prediction(p *Prediction) {
	c.sites(&p.Given)
	many(c, &p.Sites, 1, c.text)
	many(c, &p.Data, 1, c.text)
	many(c, &p.Names, 1, c.text)
	c.flags(&p.Free)
	c.text(&p.Why)
	c.ints(&p.Least, &p.Rows, &p.base)
	many(c, &p.growth, 1, func(g *grow) { c.ints(&g.At, &g.First, &g.Second) })
	if c.reading {
		p.body, c.b = c.b, nil
	} else {
		c.b = append(c.b, p.body...)
	}
}

// sized are the plan and the draws for so many rows.
func (p *Prediction) sized(rows int) (*ir.Plan, []take, error) {
	switch {
	case !p.Free && rows != p.Rows:
		return nil, nil, fmt.Errorf("portable: a prediction for %d rows: this model predicts its %d alone: %s", rows, p.Rows,
			p.Why)
	case rows < max(p.Least, 1) || rows > maxRows:
		return nil, nil, fmt.Errorf("portable: a prediction for %d rows: there are %d to %d", rows, max(p.Least, 1), maxRows)
	}
	for _, g := range p.growth {
		if max(g.First, -g.First, g.Second, -g.Second) > maxGrowth {
			return nil, nil, errBounds
		}
	}
	plan, takes := &ir.Plan{}, []take(nil)
	c := &codec{b: p.body, reading: true, free: &free{growth: p.growth, more: rows - p.base}}
	c.body(&takes, plan)
	if err := c.end(); err != nil {
		return nil, nil, err
	}
	return plan, takes, errors.Join(bounded(plan), plan.Check())
}

// Complete makes a prediction that can be written, of one that was recorded. Three others, for numbers of rows one
// after the other, make the number free, of the data with the names; without them it is not. It is an error where their
// plans differ in more than whole numbers, each a polynomial of degree 2 in the number of rows.
func (p *Prediction) Complete(names []string, three []*Prediction) error {
	for _, r := range append([]*Prediction{p}, three...) {
		if r == nil || r.Plan == nil || r.Plan.plan == nil {
			return errors.New("portable: a prediction has no plan")
		}
	}
	p.prune()
	p.Free, p.Least, p.base = len(three) > 0, 1, p.Rows
	for _, s := range p.Plan.plan.Inputs {
		if slices.Contains(names, s.Name) {
			p.Names = append(p.Names, s.Name)
		}
	}
	if !p.Free {
		p.body, _ = encodedBody(p.takes, p.Plan.plan)
		return nil
	}
	if len(three) != 3 {
		return errors.New("portable: three numbers of rows are expected")
	}
	var all [3][]int
	var body [3][]byte
	for i, r := range three {
		r.prune()
		body[i], all[i] = encodedBody(r.takes, r.Plan.plan)
	}
	if len(all[0]) != len(all[1]) || len(all[1]) != len(all[2]) {
		return errors.New("portable: the model does other things for other numbers of rows")
	}
	for i, v := range all[0] {
		first, second := all[1][i]-v, all[2][i]-2*all[1][i]+v
		if first != 0 || second != 0 {
			p.growth = append(p.growth, grow{i, first, second})
		}
	}
	p.base, p.body = three[0].Rows, body[0]
	for i, want := range three {
		plan, takes, err := p.sized(want.Rows)
		if err != nil {
			return fmt.Errorf("for %d rows: %w", want.Rows, err)
		}
		if got, _ := encodedBody(takes, plan); !bytes.Equal(got, body[i]) {
			return fmt.Errorf("portable: the plan for %d rows is none of those for %d", want.Rows, p.base)
		}
	}
	// The plan of many rows may work in blocks, and this one does not.
	plan, takes, err := p.sized(p.Rows)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(plan.Inputs, p.Plan.plan.Inputs, ir.Slot.Equal) {
		return errors.New("portable: the model reads other data where there are fewer rows")
	}
	p.takes = takes
	p.Plan, err = NewPlan(plan, p.Plan.inputs)
	return err
}

// prune leaves out the inputs that the plan does not read.
func (p *Prediction) prune() {
	read := map[int]bool{}
	for _, s := range append(ir.Leaves(p.Plan.plan.Prologue), ir.Leaves(p.Plan.plan.Steps)...) {
		s.Accesses(func(buf, _ int, _ bool) { read[buf] = true })
	}
	plan, inputs := *p.Plan.plan, p.Plan.inputs
	had := plan.Inputs
	p.Plan = &Plan{plan: &plan}
	plan.Inputs, plan.Buffers = nil, slices.Clone(plan.Buffers)
	for i := range plan.Buffers {
		b := &plan.Buffers[i]
		switch {
		case b.Kind != ir.Input:
			continue
		case !read[i]:
			*b = ir.Buffer{Kind: ir.Work, Len: 1}
			continue
		}
		slot, from := had[b.Slot], b.Slot
		if b.Slot = slices.IndexFunc(plan.Inputs, slot.Equal); b.Slot < 0 {
			b.Slot = len(plan.Inputs)
			plan.Inputs, p.Plan.inputs = append(plan.Inputs, slot), append(p.Plan.inputs, inputs[from])
		}
	}
}

// encodedBody are the bytes of what depends on the number of rows, and the whole numbers in them.
func encodedBody(takes []take, plan *ir.Plan) ([]byte, []int) {
	c := &codec{free: &free{}}
	takes = slices.Clone(takes)
	c.body(&takes, plan)
	return c.b, c.free.all
}
