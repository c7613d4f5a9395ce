package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
)

// fit is one way to fit the model. Everything but the method value is the driver's.
type fit struct {
	name   string // in the JSON output
	title  string
	method infer.Method
	batch  int64 // data in a batch; 0 is all
	run    oldrun.Config
	// samples are the draws from the last state, for methods whose states are distributions; 0 takes the draws of the run.
	samples int
	data    int64  // N where the target is to count them: T = 1 is then the Bayes posterior
	from    string // the method whose last draw it starts at; "" starts at 0
}

// fits are the methods that are compared. The temperature 1/768 makes the mean log posterior's target the Bayes
// posterior; scale shortens or lengthens the runs.
//
// The curvature of the mean log posterior at its mode runs from 0.06 to 0.33. A friction of 0.5 is critical for the
// smallest, so that SGHMC forgets in about 100 updates, and a step of 0.08 inflates the standard deviations by about 1 %
// (half of (ε/α)/(N·variance), N = 768). Batches of 32 add gradient noise in proportion to the step, hence the smaller one.
func fits(seed uint64, scale float64) []fit {
	bayes := infer.Constant(1.0 / patients)
	long := func(updates int64) int64 { return max(10, int64(float64(updates)*scale)) }
	return []fit{
		{name: "map", title: "MAP (SGD with momentum)",
			method: optim.SGD{LR: infer.Constant(1), Momentum: 0.9},
			run:    oldrun.Config{Steps: 500, BurnIn: 499}},
		{name: "sgld", title: "SGLD",
			method: sgmcmc.SGLD{LR: infer.Constant(0.4), Temperature: bayes},
			run:    oldrun.Config{Steps: long(50_000), BurnIn: long(1_000), Thin: 5}},
		{name: "sghmc", title: "SGHMC",
			method: sgmcmc.SGHMC{LR: infer.Constant(0.08), Alpha: infer.Constant(0.5), Temperature: bayes},
			run:    oldrun.Config{Steps: long(350_000), BurnIn: long(2_000), Thin: 25}},
		{name: "sghmc_parallel", title: "SGHMC, 64 chains",
			method: sgmcmc.SGHMC{LR: infer.Constant(0.08), Alpha: infer.Constant(0.5), Temperature: bayes},
			run:    oldrun.Config{Steps: long(8_000), BurnIn: long(2_000), Thin: 50, Chains: 64}},
		{name: "sghmc_minibatch", title: "SGHMC, batches of 32",
			method: sgmcmc.SGHMC{LR: infer.Constant(0.02), Alpha: infer.Constant(0.5), Temperature: bayes},
			batch:  32,
			run:    oldrun.Config{Steps: long(150_000), BurnIn: long(5_000), Thin: 20}},
		{name: "nuts", title: "NUTS, 4 chains",
			method: hmc.NUTS{Warmup: int(long(1_000)), Temperature: bayes},
			run:    oldrun.Config{Steps: long(6_000), BurnIn: long(1_000), Thin: 1, Chains: 4}},
		// The step size falls to zero, so that the noise of the gradients does not stay in the fit.
		{name: "vi", title: "VI, diagonal",
			method:  vi.Diag{Optimizer: optim.Adam{LR: infer.Linear(0.02, 0, 0, long(3_000))}, Samples: 8, InitScale: 0.13},
			data:    patients,
			run:     oldrun.Config{Steps: long(3_000), NoDraws: true},
			samples: 20_000},
		{name: "vi_dense", title: "VI, dense",
			method:  vi.Dense{Optimizer: optim.Adam{LR: infer.Linear(0.02, 0, 0, long(3_000))}, Samples: 8, InitScale: 0.1},
			data:    patients,
			run:     oldrun.Config{Steps: long(3_000), NoDraws: true},
			samples: 20_000},
		// At the mode one pass over the data is all. The Hessian of the log posterior has the prior in it; the GGN is that of the
		// likelihood.
		{name: "laplace", title: "Laplace, Hessian", from: "map", method: laplace.DenseHessian{}, data: patients,
			run:     oldrun.Config{Steps: 1, NoDraws: true},
			samples: 20_000},
		{name: "laplace_ggn", title: "Laplace, GGN", from: "map",
			method:  laplace.DenseGGN{Forward: logOdds, Outer: logLikelihoods, PriorPrecision: laplace.Isotropic(1)},
			batch:   32,
			run:     oldrun.Config{Steps: patients / 32, NoDraws: true},
			samples: 20_000},
	}
}

// with completes a run's configuration.
func (f fit) with(seed uint64, observer infer.Observer, checkpoint *infer.Checkpoint) oldrun.Config {
	c := f.run
	c.Seed, c.Observer, c.Checkpoint = seed, observer, checkpoint
	return c
}
