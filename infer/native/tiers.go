package native

import (
	"errors"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/cc"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// lower records a density at two points and makes a plan of it.
func lower(s Source, x, y []float64, o Options) (*ir.Plan, error) {
	return nil, &refusal{"not yet"}
}

// compiled is a plan as C.
func compiled(p *ir.Plan, o Options, r *Report) (code, error) {
	program, info, err := cc.Compile(p, cc.Options{CacheDir: o.CacheDir})
	if err != nil {
		return code{}, err
	}
	r.Compiler, r.Cached = info.Compiler.Version, info.Cached
	return code{prologue: program.Prologue, main: program.Main, close: func() { _ = program.Close() }}, nil
}

// interpreted is a plan on the virtual machine.
func interpreted(p *ir.Plan, o Options, r *Report) (code, error) {
	return code{}, errors.New("not yet")
}
