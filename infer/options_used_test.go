package infer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// What a method cannot follow is an error that names the field: NUTS makes its run itself, fits draw from a
// distribution. They left the fields out without a word.
func TestOptionsThatAMethodCannotFollow(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"x": {}})
	require.NoError(t, err)
	start, err := infer.Zeros(layout)
	require.NoError(t, err)
	program := infer.Handwritten(infer.Sum(func(p infer.Params, _ infer.Batch) (torch.Tensor, infer.Aux) {
		return p.Get("x").Square().Mul(-0.5), nil
	}, 1), start, nil)
	run := func(m infer.Method, o infer.Options) error {
		o.Chains, o.Warmup, o.Observer = 1, 20, infer.Silent
		if o.Draws == 0 {
			o.Draws = 5
		}
		_, err := infer.Sample(context.Background(), program, m, o)
		return err
	}
	options := map[string]infer.Options{"Cycles": {Cycles: &infer.Cycles{Length: 3}}, "Average": {Average: true},
		"Discard": {Discard: true}}
	for name, m := range map[string]infer.Method{"hmc.NUTS makes its run itself": hmc.NUTS{},
		"vi.Dense draws from what it has fitted":             vi.Dense{},
		"laplace.DenseHessian draws from what it has fitted": laplace.DenseHessian{}} {
		for field, o := range options {
			require.ErrorContains(t, run(m, o), fmt.Sprintf("infer.Options: %s is given: %s: leave it ", field, name))
		}
	}
	for _, o := range options {
		require.NoError(t, run(sgmcmc.SGLD{LR: infer.Constant(0.1)}, o))
	}
	require.ErrorContains(t, run(hmc.NUTS{}, infer.Options{Draws: infer.None}), "infer.Options: Draws is infer.None: it "+
		"must be at least 1, or 0 for the default: hmc.NUTS makes its run itself")
}
