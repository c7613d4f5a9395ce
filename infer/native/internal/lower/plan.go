package lower

import (
	"cmp"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// PlanOptions are those of [Plan].
type PlanOptions struct {
	Options
	Dim      int
	Inputs   []ir.Slot // the batch
	Outputs  []ir.Slot // what the aux outputs are
	Jacobian bool      // the recording has the value and gradient of the log Jacobian too
}

// Plan lowers a recording. Its outputs are the values (one, or two with a Jacobian), as many gradients, and the aux.
// The error is a [Refusal] where the evaluation is nothing that a plan can have; the plan was checked.
func Plan(rec *Recording, o PlanOptions) (p *ir.Plan, err error) {
	l := &lowering{calc: calc{newGraph()}, rec: rec, inputs: o.Inputs, dim: o.Dim,
		images: make([]*image, len(rec.Storages)), origin: make([]origin, len(rec.Storages))}
	defer func() {
		if r, ok := err.(*Refusal); ok {
			r.Op, r.Site = cmp.Or(r.Op, l.op), cmp.Or(r.Site, l.site)
		}
	}()
	defer recovered(&err)
	values := 1
	if o.Jacobian {
		values = 2
	}
	if len(rec.Known) != 1+len(o.Inputs) || len(rec.Outputs) != 2*values+len(o.Outputs) {
		return nil, fmt.Errorf("lower: %d tensors go in and %d come out", len(rec.Known), len(rec.Outputs))
	}
	if t := rec.Known[0]; t.Type != Float64 || ir.Iterations(t.Sizes) != o.Dim {
		return nil, fmt.Errorf("lower: the point has %v elements of type %v", t.Sizes, t.Type)
	}
	for _, c := range rec.Calls {
		l.walk(c)
	}
	l.op = ""
	var outs []output
	if !o.GradientOnly {
		outs = append(outs, output{ir.Value, 0, l.weighted(values, 0, nil)})
	}
	if !o.ValueOnly {
		outs = append(outs, output{ir.Grad, 0, l.weighted(values, values, []int{o.Dim})})
	}
	plan := &ir.Plan{Dim: o.Dim, Inputs: o.Inputs, Outputs: o.Outputs}
	for i := range o.Outputs {
		if a := l.output(2*values + i); a.n() > 0 {
			outs = append(outs, output{ir.Aux, i, a})
		}
	}
	emit(plan, l.g, outs)
	inBlocks(plan)
	inParts(plan)
	if err := plan.Check(); err != nil {
		return nil, fmt.Errorf("lower: the plan is not sound: %w", err)
	}
	return plan, nil
}

// output is an array that leaves the plan.
type output struct {
	kind ir.Kind
	slot int
	a    array
}

// output is an output of the recording.
func (l *lowering) output(i int) array {
	t := l.rec.Outputs[i]
	if !t.Type.exact() {
		refuse("output %d has elements of type %v: an evaluation in float64 is understood", i, t.Type)
	}
	return l.read(&t).complete()
}

// weighted is output i, plus the weight times the one behind it where there are two. A weight of 0 leaves it out, even
// where it is not finite.
func (l *lowering) weighted(values, i int, sizes []int) array {
	a := l.output(i)
	if a.n() != ir.Iterations(sizes) {
		refuse("output %d has shape %v", i, a.sizes)
	}
	if values < 2 {
		return a
	}
	w := single(nil, ref{v: l.g.add(value{kind: weight, stage: perPoint, n: 1})})
	b := l.output(i + 1)
	zeros := true
	for _, c := range b.cells {
		x, ok := c.ref.number()
		zeros = zeros && ok && x == 0
	}
	if zeros {
		return a
	}
	return l.of(ir.Add, a, l.of(ir.Select, w, l.of(ir.Mul, w, b), l.num(0)))
}
