package native

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// lower records a density at two points and makes a plan of it.
func lower(s Source, x, y []float64, o Options) (*ir.Plan, error) {
	return nil, &refusal{"not yet"}
}

// compiled is a plan as C.
func compiled(p *ir.Plan, o Options, r *Report) (code, error) {
	return code{}, errors.New("there is no C compiler")
}

// interpreted is a plan on the virtual machine.
func interpreted(p *ir.Plan, o Options, r *Report) (code, error) {
	return code{}, errors.New("not yet")
}
