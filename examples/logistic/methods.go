package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
)

// fit is one way to fit the model.
type fit struct {
	name   string // in the JSON output
	title  string
	method infer.Method
	run    infer.Options
	batch  int    // data in a batch; 0 is all
	from   string // the method that it starts where it ended; "" starts at 0
}

// fits are the methods that are compared; scale shortens or lengthens the runs.
//
// The curvature of the mean log posterior at its mode runs from 0.06 to 0.33. A friction of 0.5 is critical for the
// smallest, so that SGHMC forgets in about 100 updates, and a step of 0.08 inflates the standard deviations by about 1
// % (half of (ε/α)/(N·variance), N = 768). Batches of 32 add gradient noise in proportion to the step, hence the
// smaller one.
func fits(scale float64) []fit {
	long := func(updates int) int { return max(10, int(float64(updates)*scale)) }
	// The learning rate falls to zero, so that the noise of the gradients does not stay in the fit.
	falling := optim.Adam{LR: infer.Linear(0.02, 0, 0, long(3_000))}
	return []fit{
		{name: "map", title: "MAP (SGD with momentum)",
			method: optim.SGD{LR: infer.Constant(1), Momentum: 0.9},
			run:    infer.Options{Chains: 1, Warmup: 500}},
		{name: "sgld", title: "SGLD",
			method: sgmcmc.SGLD{LR: infer.Constant(0.4)},
			run:    infer.Options{Chains: 1, Warmup: long(1_000), Draws: long(9_800), Thin: 5}},
		{name: "sghmc", title: "SGHMC",
			method: sgmcmc.SGHMC{LR: infer.Constant(0.08), Alpha: infer.Constant(0.5)},
			run:    infer.Options{Chains: 1, Warmup: long(2_000), Draws: long(13_920), Thin: 25}},
		{name: "sghmc_parallel", title: "SGHMC, 64 chains",
			method: sgmcmc.SGHMC{LR: infer.Constant(0.08), Alpha: infer.Constant(0.5)},
			run:    infer.Options{Chains: 64, Warmup: long(2_000), Draws: long(120), Thin: 50}},
		{name: "sghmc_minibatch", title: "SGHMC, batches of 32", batch: 32,
			method: sgmcmc.SGHMC{LR: infer.Constant(0.02), Alpha: infer.Constant(0.5)},
			run:    infer.Options{Chains: 1, Warmup: long(5_000), Draws: long(7_250), Thin: 20}},
		{name: "nuts", title: "NUTS, 4 chains",
			method: hmc.NUTS{},
			run:    infer.Options{Warmup: long(1_000), Draws: long(5_000)}},
		{name: "vi", title: "VI, diagonal",
			method: vi.Diag{Optimizer: falling, InitScale: 0.13},
			run:    infer.Options{Chains: 1, Warmup: long(3_000), Draws: 20_000}},
		{name: "vi_dense", title: "VI, dense",
			method: vi.Dense{Optimizer: falling},
			run:    infer.Options{Chains: 1, Warmup: long(3_000), Draws: 20_000}},
		// They start at the mode, so that one pass over the data is all. The prior's curvature is in the Hessian of the log
		// posterior; a Gauss-Newton matrix is that of the likelihood.
		{name: "laplace", title: "Laplace, Hessian", from: "map",
			method: laplace.DenseHessian{},
			run:    infer.Options{Chains: 1, Warmup: infer.None, Draws: 20_000}},
		{name: "laplace_ggn", title: "Laplace, GGN", from: "map", batch: 32,
			method: laplace.DenseGGN{Forward: logOdds, Outer: logLikelihoods, PriorPrecision: laplace.Isotropic(1)},
			run:    infer.Options{Chains: 1, Warmup: infer.None, Draws: 20_000}},
	}
}
