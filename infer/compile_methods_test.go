package infer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/models"
)

// Every method that asks for the log density or its gradient has it compiled, and its draws say so. Filters
// differentiate single data, which no tier does, and say that.
func TestMethodsUseCompiledGradients(t *testing.T) {
	lr := infer.Constant(1e-3)
	methods := []infer.Method{
		hmc.NUTS{}, hmc.HMC{Steps: 3}, hmc.Exchange{Ladder: []float64{1, 3}},
		sgmcmc.SGLD{LR: lr}, sgmcmc.SGHMC{LR: lr}, sgmcmc.PSGLD{LR: lr}, sgmcmc.BAOA{LR: lr},
		sgmcmc.SymplecticSGHMC{LR: lr, Momentum: infer.Constant(0.9)},
		sgmcmc.SGNHT{LR: lr}, sgmcmc.ATMC{LR: lr}, sgmcmc.SGLRW{LR: lr},
		optim.SGD{LR: lr}, optim.Adam{LR: lr}, optim.AdamW{LR: lr}, optim.LBFGS{},
		vi.Diag{}, vi.Dense{}, vi.LowRank{}, vi.Diag{KLWeight: infer.Constant(0.5)},
		laplace.DenseHessian{}, laplace.DenseFisher{}, laplace.DiagFisher{},
	}
	m, err := models.Beetles()
	require.NoError(t, err)
	program, err := m.Compile()
	require.NoError(t, err)
	run := func(method infer.Method, tier native.Tier) (*infer.Result, error) {
		return infer.Run(context.Background(), program, method, infer.Options{Native: tier, Chains: 2, Warmup: 10, Draws: 4,
			Seed: 1, Observer: infer.Silent})
	}
	for _, method := range methods {
		r, err := run(method, native.VM)
		require.NoError(t, err, "%T", method)
		assert.Contains(t, r.Draws.Attrs()["gradient"], "vm (", "%T", method)
	}
	for _, method := range []infer.Method{ekf.Dense{}, ekf.Diag{}} {
		r, err := run(method, native.VM)
		require.NoError(t, err, "%T", method)
		assert.Equal(t, "eager: the method differentiates by itself", r.Draws.Attrs()["gradient"], "%T", method)
	}
}
