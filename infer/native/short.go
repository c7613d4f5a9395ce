package native

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A long loop over time takes long to record, and its eager evaluation takes longer. Where its steps differ by their
// data alone (thread.Steps), it is recorded for three small numbers of steps: the plan of all steps follows from their
// plans. One of them is compared with eager evaluation of as many steps, the plan of all steps with eager evaluation at
// one point, and what is compiled with the plan in Go.

// shortSteps are the numbers of steps that are recorded: those behind the first three where two of the plans have
// another form, as where a number of steps happens to be one of another size of the model.
var shortSteps = [5]int{23, 26, 28, 31, 37}

// short is the plan of a density as it follows from short loops, and the source that compares with it. Without such
// loops the plan is that of the density itself; a nil plan means that it does not follow.
func (s Source) short(points [][]float64, o Options) (*ir.Plan, Source, error) {
	var plans []*ir.Plan
	full := 0
	for i, steps := range shortSteps {
		done := thread.Shorten(steps)
		plan, err := planOf(s, points[0], points[1], o)
		n := done()
		switch {
		case n == 0:
			return plan, s, err
		case err != nil || n < 0 || i > 0 && n != full:
			return nil, s, nil
		}
		plans, full = append(plans, plan), n
		for k := range plans[:max(0, i-1)] {
			for j := k + 1; j < i; j++ {
				at := [3]int{shortSteps[k], shortSteps[j], steps}
				plan, err := ir.Grow([3]*ir.Plan{plans[k], plans[j], plan}, at, full)
				if err == nil {
					return s.grown(plan, plans[k], shortSteps[k], points, o)
				}
			}
		}
	}
	return nil, s, nil
}

// grown is a plan that follows from others, where one of them, of few steps, has the numbers of eager evaluation.
func (s Source) grown(plan, few *ir.Plan, steps int, points [][]float64, o Options) (*ir.Plan, Source, error) {
	tensors := make([]torch.Tensor, len(plan.Inputs))
	for i, slot := range plan.Inputs {
		tensors[i] = s.Batch[slot.Name]
	}
	inputs, err := asNumbers(plan.Inputs, tensors)
	if err != nil {
		return nil, s, err
	}
	if !s.agrees(few, inputs, points, steps, o) {
		return nil, s, nil
	}
	evaluate, err := evaluator(plan, inputs)
	if err != nil || !s.same(evaluate, points[:1], o) { // all steps, at one point
		return nil, s, nil
	}
	s.exact = evaluate
	plan.Notes = append(plan.Notes, fmt.Sprintf("all steps of a series follow from %d", steps))
	return plan, s, nil
}

// evaluator evaluates a plan in Go.
func evaluator(plan *ir.Plan, inputs [][]float64) (func(x []float64) (numbers, error), error) {
	machine, err := ir.NewMachine(plan, inputs)
	if err != nil {
		return nil, err
	}
	var aux [][]float64
	for _, o := range plan.Outputs {
		aux = append(aux, make([]float64, o.Len()))
	}
	return func(x []float64) (n numbers, err error) {
		n.grad = make([]float64, plan.Dim)
		n.value = machine.Eval(x, weight, n.grad, aux)
		return n, nil
	}, nil
}

// agrees says whether a plan of few steps has the numbers of eager evaluation, at points of which one has a value.
func (s Source) agrees(plan *ir.Plan, inputs [][]float64, points [][]float64, steps int, o Options) bool {
	evaluate, err := evaluator(plan, inputs)
	if err != nil {
		return false
	}
	defer thread.Shorten(steps)()
	return s.same(evaluate, points, o)
}

// same says whether a function has the numbers of eager evaluation, at points of which one has a value.
func (s Source) same(evaluate func(x []float64) (numbers, error), points [][]float64, o Options) bool {
	finite := false
	for _, x := range points {
		want, err := s.numbers(x)
		if err != nil {
			return false
		}
		have, err := evaluate(x)
		if err != nil {
			return false
		}
		if _, err := want.compare(s, x, have, o); err != nil {
			return false
		}
		finite = finite || !math.IsNaN(want.value) && !math.IsInf(want.value, 0)
	}
	return finite
}
