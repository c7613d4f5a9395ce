package portable

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Machine is a plan with its batch, ready to run. It is safe for concurrent use.
type Machine struct {
	plan  *ir.Plan
	calls sync.Pool
}

// Machine makes a machine of a plan: it runs what depends on the batch alone.
func (p *Plan) Machine() (*Machine, error) {
	first := ir.NewMachine(p.plan)
	if err := first.Prepare(p.inputs); err != nil {
		return nil, fmt.Errorf("portable: the batch: %w", err)
	}
	m := &Machine{plan: p.plan}
	m.calls.New = func() any { return first.Fork() }
	return m, nil
}

// Dim is the number of parameters.
func (m *Machine) Dim() int { return m.plan.Dim }

// Eval is the value at x with the gradient in grad, both of Dim numbers: log density + weight · log |Jacobian|. It
// fills aux, a slice for each of Sites. It is NaN where the density has none. Other lengths panic.
func (m *Machine) Eval(x []float64, weight float64, grad []float64, aux [][]float64) float64 {
	if len(x) != m.plan.Dim || len(grad) != m.plan.Dim || len(aux) != len(m.plan.Outputs) {
		panic(fmt.Sprintf("portable: %d numbers, room for %d of the gradient and %d outputs, expected %d, %d and %d",
			len(x), len(grad), len(aux), m.plan.Dim, m.plan.Dim, len(m.plan.Outputs)))
	}
	w := m.calls.Get().(*ir.Machine)
	defer m.calls.Put(w)
	value, err := w.Eval(x, weight, grad, aux)
	if err != nil {
		return math.NaN()
	}
	return value
}

// errCall is why a plan stays where it is.
var errCall = errors.New("portable: it calls a function in C, which cannot leave its process")
