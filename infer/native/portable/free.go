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

// Rows are the rows that a prediction is for. Plans for other numbers of rows differ in whole numbers alone, each of
// which is a polynomial of degree 2 in the number of rows.
type Rows struct {
	Free  bool     // their number is free
	Why   string   // it is not
	Names []string // the data that have rows
	Least int      // the fewest

	at, base int    // the rows of Plan, and of the body
	growth   []grow // from the base on
	body     []byte
}

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

func (c *codec) takes(p *[]Take) {
	many(c, p, 1, func(t *Take) {
		c.text(&t.Kind)
		c.ints(&t.Size)
	})
}

// body is what depends on the number of rows.
func (c *codec) body(takes *[]Take, plan *ir.Plan) {
	c.takes(takes)
	c.plan(plan)
}

// prediction is a prediction without the numbers of its inputs.
func (c *codec) prediction(p *Prediction) {
	c.sites(&p.Given)
	many(c, &p.Sites, 1, c.text)
	r := &p.Rows
	many(c, &r.Names, 1, c.text)
	c.flags(&r.Free)
	c.text(&r.Why)
	c.ints(&r.Least, &r.at, &r.base)
	many(c, &r.growth, 1, func(g *grow) { c.ints(&g.At, &g.First, &g.Second) })
	if c.reading {
		r.body, c.b = c.b, nil
	} else {
		c.b = append(c.b, r.body...)
	}
}

// sized are the plan and the draws for so many rows.
func (p *Prediction) sized(rows int) (*ir.Plan, []Take, error) {
	r := p.Rows
	switch {
	case !r.Free && rows != r.at:
		return nil, nil, fmt.Errorf("portable: a prediction for %d rows: this model predicts its %d alone: %s", rows, r.at, r.Why)
	case rows < max(r.Least, 1) || rows > maxRows:
		return nil, nil, fmt.Errorf("portable: a prediction for %d rows: there are %d to %d", rows, max(r.Least, 1), maxRows)
	}
	for _, g := range r.growth {
		if max(g.First, -g.First, g.Second, -g.Second) > maxGrowth {
			return nil, nil, errBounds
		}
	}
	plan, takes := &ir.Plan{}, []Take(nil)
	c := &codec{b: r.body, reading: true, free: &free{growth: r.growth, more: rows - r.base}}
	c.body(&takes, plan)
	if err := c.end(); err != nil {
		return nil, nil, err
	}
	return plan, takes, errors.Join(bounded(plan), plan.Check())
}

// Recorded is a prediction as it was recorded for a number of rows.
type Recorded struct {
	Rows  int
	Takes []Take
	Plan  *Plan
}

// Predicting makes a prediction: of what was recorded for the data of the model, of which some have rows, and for three
// numbers of rows one after the other; with none of these the number is not free. It is an error where their plans
// differ in more than that.
func Predicting(given []draws.Site, sites, names []string, own Recorded, three []Recorded) (*Prediction, error) {
	p := &Prediction{Given: given, Takes: own.Takes, Sites: sites, Plan: own.Plan}
	p.Rows = Rows{Free: len(three) > 0, Least: 1, at: own.Rows, base: own.Rows}
	for _, s := range own.Plan.plan.Inputs {
		if slices.Contains(names, s.Name) {
			p.Rows.Names = append(p.Rows.Names, s.Name)
		}
	}
	if !p.Rows.Free {
		p.Rows.body, _ = own.body()
		return p, nil
	}
	if len(three) != 3 {
		return nil, errors.New("portable: three numbers of rows are expected")
	}
	var all [3][]int
	var body [3][]byte
	for i, r := range three {
		body[i], all[i] = r.body()
	}
	if len(all[0]) != len(all[1]) || len(all[1]) != len(all[2]) {
		return nil, errors.New("portable: the model does other things for other numbers of rows")
	}
	for i, a := range all[0] {
		first, second := all[1][i]-a, all[2][i]-2*all[1][i]+a
		if first != 0 || second != 0 {
			p.Rows.growth = append(p.Rows.growth, grow{i, first, second})
		}
	}
	p.Rows.base, p.Rows.body = three[0].Rows, body[0]
	for _, want := range three {
		plan, takes, err := p.sized(want.Rows)
		if err != nil {
			return nil, fmt.Errorf("for %d rows: %w", want.Rows, err)
		}
		got, _ := Recorded{want.Rows, takes, &Plan{plan: plan}}.body()
		if b, _ := want.body(); !bytes.Equal(got, b) {
			return nil, fmt.Errorf("portable: the plan for %d rows is none of those for %d", want.Rows, three[0].Rows)
		}
	}
	// The plan of many rows may work in blocks, and this one does not.
	plan, takes, err := p.sized(own.Rows)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(plan.Inputs, own.Plan.plan.Inputs, ir.Slot.Equal) {
		return nil, errors.New("portable: the model reads other data where there are fewer rows")
	}
	p.Takes = takes
	p.Plan, err = NewPlan(plan, own.Plan.inputs)
	return p, err
}

// NewRecorded is what was recorded, without the inputs that its plan does not read.
func NewRecorded(rows int, takes []Take, p *Plan) Recorded {
	read := map[int]bool{}
	for _, s := range append(ir.Leaves(p.plan.Prologue), ir.Leaves(p.plan.Steps)...) {
		s.Accesses(func(buf, _ int, _ bool) { read[buf] = true })
	}
	plan, out := *p.plan, &Plan{}
	plan.Inputs, plan.Buffers = nil, slices.Clone(p.plan.Buffers)
	for i := range plan.Buffers {
		b := &plan.Buffers[i]
		if b.Kind != ir.Input {
			continue
		}
		if !read[i] {
			*b = ir.Buffer{Kind: ir.Work, Len: 1} // which nothing reads
			continue
		}
		slot := p.plan.Inputs[b.Slot]
		had := b.Slot
		b.Slot = slices.IndexFunc(plan.Inputs, slot.Equal)
		if b.Slot < 0 {
			b.Slot = len(plan.Inputs)
			plan.Inputs, out.inputs = append(plan.Inputs, slot), append(out.inputs, p.inputs[had])
		}
	}
	out.plan = &plan
	return Recorded{rows, takes, out}
}

// body are the bytes, with the whole numbers in them.
func (r Recorded) body() ([]byte, []int) {
	c := &codec{free: &free{}}
	takes := slices.Clone(r.Takes)
	c.body(&takes, r.Plan.plan)
	return c.b, c.free.all
}

// Size is the number of rows of the data of the model.
func (r Rows) Size() int { return r.at }
