package portable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// codec writes values to bytes, or reads them from there: one function of each type does both. Whole numbers are signed
// varints, others their bits, little-endian. After an error what is read is zero.
type codec struct {
	b       []byte
	reading bool
	parts   int // of a plan that is read so far
	err     error

	free *free // nil for a plan of one size
}

// errCut says that bytes end too early, or count what is not there.
var errCut = errors.New("portable: the bytes of a plan end too early, or count more than there is")

func (c *codec) fail() { c.b, c.err = nil, errCut }

func (c *codec) ints(all ...*int) {
	for _, p := range all {
		if !c.reading {
			c.b = binary.AppendVarint(c.b, int64(*p))
			c.free.written(*p)
			continue
		}
		v, n := binary.Varint(c.b)
		if n <= 0 {
			c.fail()
			v, n = 0, 0
		}
		*p, c.b = c.free.read(int(v)), c.b[n:]
	}
}

// take is the next n bytes of what is read.
func (c *codec) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.fail()
		return make([]byte, 8) // which is enough for a number
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

// many is a list of things, each of at least one byte and so many times as large in memory as an instruction.
func many[T any](c *codec, list *[]T, size int, each func(*T)) {
	n := len(*list)
	if c.ints(&n); c.reading {
		if c.parts += n * size; n < 0 || n > len(c.b) || c.parts > maxParts {
			c.fail()
			n = 0
		}
		*list = make([]T, n)
	}
	for i := range *list {
		if c.err == nil {
			each(&(*list)[i])
		}
	}
}

func enum[T ~uint8](c *codec, p *T, most T) {
	v := int(*p)
	c.ints(&v)
	if *p = T(v); v < 0 || v > int(most) {
		c.fail()
		*p = 0
	}
}

func (c *codec) flags(all ...*bool) {
	for _, p := range all {
		v := map[bool]int{true: 1}[*p]
		c.ints(&v)
		*p = v != 0
	}
}

// list is a list of dimensions.
func (c *codec) list(p *[]int) {
	many(c, p, 0, func(i *int) { c.ints(i) })
	if len(*p) > maxDims {
		c.fail()
		*p = nil
	}
}

func (c *codec) text(p *string) {
	n := len(*p)
	if c.ints(&n); c.reading {
		*p = string(c.take(n))
	} else {
		c.b = append(c.b, *p...)
	}
}

// numbers are n numbers of a buffer or a tensor.
func (c *codec) numbers(p *[]float64, n int) {
	if c.reading {
		if n < 0 || n > len(c.b)/8 {
			c.fail()
			n = 0
		}
		*p = make([]float64, n)
	}
	for i, v := range *p {
		if c.reading {
			(*p)[i] = math.Float64frombits(binary.LittleEndian.Uint64(c.take(8)))
		} else {
			c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(v))
		}
	}
}

func (c *codec) slot(s *ir.Slot) {
	c.text(&s.Name)
	enum(c, &s.Elem, ir.I32)
	n := 1
	many(c, &s.Shape, 0, func(k *int) {
		c.ints(k)
		if *k < 0 || *k > maxNumbers || n**k > maxNumbers {
			c.fail()
			*k = 0
		}
		n *= *k
	})
}

// address is an address, or the index of one.
func (c *codec) address(a *ir.Address, index bool) {
	c.ints(&a.Buf, &a.Off, &a.Turn, &a.Scale)
	c.list(&a.Strides)
	has := a.Index != nil
	if c.flags(&has); has && index {
		c.fail()
	} else if has {
		if c.reading {
			a.Index = &ir.Address{}
		}
		c.address(a.Index, true)
	}
}

func (c *codec) instr(in *ir.Instr) {
	enum(c, &in.Op, ir.StoreIndex)
	c.ints([]*int{&in.A, &in.B, &in.C}[:len(in.Operands())]...)
	switch {
	case in.Op == ir.Num:
		v := []float64{in.Num}
		if c.numbers(&v, 1); c.err == nil {
			in.Num = v[0]
		}
	case in.Op == ir.Coord:
		c.ints(&in.Dim)
	case in.Op == ir.Load || in.Op.Writes():
		c.address(&in.At, false)
		c.ints(&in.Limit)
	}
}

func (c *codec) step(s *ir.Step, inner bool) {
	enum(c, &s.Kind, ir.Repeat)
	c.list(&s.Sizes)
	switch {
	case s.Kind == ir.Loop:
		many(c, &s.Body, 1, c.instr)
	case s.Kind == ir.Repeat && inner:
		c.fail()
	case s.Kind == ir.Repeat:
		c.ints(&s.Times)
		many(c, &s.Inner, 4, func(s *ir.Step) { c.step(s, true) })
	default:
		c.ints(&s.M, &s.N, &s.K)
		c.flags(&s.Upper, &s.Unit, &s.Right, &s.Lower, &s.Product)
		for _, m := range []*ir.Matrix{&s.Out, &s.A, &s.B} {
			c.ints(&m.Buf, &m.Off, &m.Row, &m.Col, &m.Turn)
			c.list(&m.Strides)
		}
	}
}

// plan is a plan without the numbers of its inputs.
func (c *codec) plan(p *ir.Plan) {
	c.ints(&p.Dim)
	many(c, &p.Buffers, 1, func(b *ir.Buffer) {
		enum(c, &b.Kind, ir.Aux)
		enum(c, &b.Elem, ir.I32)
		c.ints(&b.Len, &b.Slot)
		switch {
		case b.Kind == ir.Const && c.free != nil:
			c.runs(&b.Data, b.Len)
		case b.Kind == ir.Const:
			c.numbers(&b.Data, b.Len)
		}
	})
	many(c, &p.Inputs, 1, c.slot)
	many(c, &p.Outputs, 1, c.slot)
	for _, part := range []*[]ir.Step{&p.Prologue, &p.Steps} {
		many(c, part, 4, func(s *ir.Step) { c.step(s, false) })
	}
}

// input is a tensor of the batch with its numbers.
type input struct {
	slot    ir.Slot
	numbers []float64
}

func (c *codec) input(in *input) {
	c.slot(&in.slot)
	c.numbers(&in.numbers, in.slot.Len())
}

// end makes sure that nothing follows.
func (c *codec) end() error {
	if c.err == nil && len(c.b) > 0 {
		c.fail()
	}
	return c.err
}

// encoded are the bytes of the inputs of plans, each once, and those of the plans and of a prediction; nil is empty.
func encoded(p *Prediction, plans ...*Plan) []string {
	var all []input
	parts := []string{""}
	add := func(p *Plan) {
		for i, s := range p.plan.Inputs {
			if !slices.ContainsFunc(all, func(in input) bool { return in.slot.Name == s.Name }) {
				all = append(all, input{s, p.inputs[i]})
			}
		}
	}
	for _, p := range plans {
		c := &codec{}
		if p != nil {
			c.plan(p.plan)
			add(p)
		}
		parts = append(parts, string(c.b))
	}
	if p != nil {
		c := &codec{}
		c.prediction(p)
		add(p.Plan)
		parts = append(parts, string(c.b))
	}
	c := &codec{}
	many(c, &all, 1, c.input)
	parts[0] = string(c.b)
	return parts
}

// decoded are so many plans that were encoded, those of no bytes nil, and the prediction where there is one more part.
func decoded(parts []string, n int) (plans []*Plan, p *Prediction, err error) {
	var data []input
	c := &codec{b: []byte(parts[0]), reading: true}
	many(c, &data, 1, c.input)
	err = c.end()
	for i, b := range parts[1:] {
		var plan *Plan
		switch {
		case err != nil || b == "":
		case i < n:
			plan, err = decode([]byte(b), data)
		default:
			p = &Prediction{}
			err = p.decode([]byte(b), data)
		}
		plans = append(plans, plan)
	}
	return plans, p, err
}

// decode reads a plan and checks it.
func decode(b []byte, data []input) (*Plan, error) {
	p, c := &ir.Plan{}, &codec{b: b, reading: true}
	c.plan(p)
	if err := c.end(); err != nil {
		return nil, err
	}
	return planWith(p, data)
}

// decode reads a prediction and checks it for the rows of the model.
func (p *Prediction) decode(b []byte, data []input) error {
	c := &codec{b: b, reading: true}
	c.prediction(p)
	if err := c.end(); err != nil {
		return err
	}
	plan, takes, err := p.sized(p.Rows)
	if err != nil {
		return err
	}
	p.takes = takes
	p.Plan, err = planWith(plan, data)
	return err
}

// planWith is a plan with its inputs.
func planWith(p *ir.Plan, data []input) (*Plan, error) {
	var inputs [][]float64
	for _, s := range p.Inputs {
		i := slices.IndexFunc(data, func(in input) bool { return in.slot.Name == s.Name })
		if i < 0 || data[i].slot.Elem != s.Elem || !slices.Equal(data[i].slot.Shape, s.Shape) {
			return nil, fmt.Errorf("portable: the data have no %q of shape %v", s.Name, s.Shape)
		}
		inputs = append(inputs, data[i].numbers)
	}
	return NewPlan(p, inputs)
}
