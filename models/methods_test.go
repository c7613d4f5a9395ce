package models_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// lengths are those of the runs of a table. Fits and optimisers have their defaults.
type lengths struct {
	chains        int // of NUTS and the samplers
	warmup, draws int // of NUTS
	updates, thin int // of the samplers with a step size, and of HMC a fifth
	fit           int // updates of the fits, where they are not compared; 0 are their defaults
	compare       bool
	guided        bool // whether fits by guides, which take longest, are compared too
}

// row is a method of the table.
type row struct {
	name string
	make func(r *reference) infer.Method
	kind kind
	// single says that the method takes the data one by one, which not every model can give.
	single bool
	// arrives says that an optimiser is at the mode in the end, and need not say that it is not.
	arrives bool
	// updates of an optimiser with a schedule, which climbs the density on unconstrained space; 0 is the default.
	updates int
}

type kind int

const (
	exact    kind = iota // transitions that are accepted or refused
	stepped              // updates with a step size
	near                 // draws by another law, which are near the posterior or have a note
	fitted               // a distribution by variational inference
	atMode               // a distribution at the mode
	filtered             // a distribution by one pass over the data
	climbed              // a point
)

// apart are the models whose data can be taken one by one: their plates have data, and no latent variables.
var apart = map[string]bool{"beetles": true, "anscombe": true, "radon": true, "mixture": true, "lynx": true}

// rows are the methods that a compiled model is enough for. λ is the stiffness of the posterior. Steps are a twentieth
// to a fifth of the fastest time scale, 1/λ or 1/√λ. For SGD, which climbs from afar, λ is that of its starts as well,
// where the standard deviations of a model may be a fraction of the residuals: with a step that is unstable there it
// overshoots until the density is not finite.
func rows() []row {
	at := func(f func(stiff float64) infer.Method) func(*reference) infer.Method {
		return func(r *reference) infer.Method { return f(r.stiff) }
	}
	of := func(m infer.Method) func(*reference) infer.Method { return func(*reference) infer.Method { return m } }
	c := infer.Constant
	return []row{
		{name: "HMC", make: of(hmc.HMC{}), kind: exact},
		{name: "MAMS", make: of(hmc.MAMS{}), kind: exact},
		{name: "hmc.Exchange", make: of(hmc.Exchange{Ladder: hmc.GeometricLadder(1, 4, 3)}), kind: exact},
		{name: "MCLMC", make: of(hmc.MCLMC{}), kind: near},
		{name: "evidence.SMC", make: of(evidence.SMC{}), kind: near},
		{name: "Pathfinder", make: of(pathfinder.Pathfinder{}), kind: near},
		{name: "svi.SVI", make: of(svi.SVI{}), kind: near},
		{name: "SGLD", make: at(func(s float64) infer.Method { return sgmcmc.SGLD{LR: c(0.1 / s)} }), kind: stepped},
		{name: "SGHMC", make: at(func(s float64) infer.Method {
			return sgmcmc.SGHMC{LR: c(0.05 / math.Sqrt(s)), Alpha: c(math.Sqrt(s))}
		}), kind: stepped},
		{name: "SymplecticSGHMC", make: at(func(s float64) infer.Method {
			return sgmcmc.SymplecticSGHMC{LR: c(0.1 / math.Sqrt(s)), Gamma: c(math.Sqrt(s))}
		}), kind: stepped},
		{name: "BAOA", make: at(func(s float64) infer.Method {
			return sgmcmc.BAOA{LR: c(0.2 / math.Sqrt(s)), Alpha: c(math.Sqrt(s))}
		}), kind: stepped},
		{name: "SGNHT", make: at(func(s float64) infer.Method {
			return sgmcmc.SGNHT{LR: c(0.05 / math.Sqrt(s)), Alpha: c(math.Sqrt(s))}
		}), kind: stepped},
		{name: "ATMC", make: at(func(s float64) infer.Method {
			return sgmcmc.ATMC{LR: c(0.1 / math.Sqrt(s)), Friction: c(math.Sqrt(s))}
		}), kind: stepped},
		{name: "SGLRW", make: at(func(s float64) infer.Method { return sgmcmc.SGLRW{LR: c(0.05 / s)} }), kind: stepped},
		// A step is that of SGLD where the squared gradient is its mean, λ/N.
		{name: preconditioned, make: func(r *reference) infer.Method {
			return sgmcmc.PSGLD{LR: c(r.preconditionedStep())}
		}, kind: stepped},
		{name: "vi.Diag", make: of(vi.Diag{}), kind: fitted},
		{name: "vi.Dense", make: of(vi.Dense{}), kind: fitted},
		{name: "vi.LowRank", make: of(vi.LowRank{}), kind: fitted},
		{name: "laplace.DenseHessian", make: of(laplace.DenseHessian{}), kind: atMode},
		{name: "laplace.DenseFisher", make: of(laplace.DenseFisher{}), kind: atMode, single: true},
		{name: "laplace.DiagFisher", make: of(laplace.DiagFisher{}), kind: atMode, single: true},
		{name: "ekf.Dense", make: of(ekf.Dense{}), kind: filtered, single: true},
		{name: "ekf.Diag", make: of(ekf.Diag{}), kind: filtered, single: true},
		{name: "optim.LBFGS", make: of(optim.LBFGS{}), kind: climbed, arrives: true},
		{name: "optim.Adam with a schedule", make: of(optim.Adam{LR: infer.Linear(0.1, 0, 0, 1000), Beta2: 0.99}),
			kind: climbed, arrives: true, updates: 1000},
		{name: "optim.Adam", make: of(optim.Adam{}), kind: climbed},
		{name: "optim.AdamW", make: of(optim.AdamW{}), kind: climbed},
		{name: "optim.SGD", make: func(r *reference) infer.Method {
			return optim.SGD{LR: c(0.2 / r.steep), Momentum: 0.9}
		}, kind: climbed},
	}
}

// preconditioned is a method whose bias has another reason than its step.
const preconditioned = "PSGLD"

func (r *reference) preconditionedStep() float64 { return 0.1 / math.Sqrt(r.n*r.stiff) }

// Every method runs on every model through the one door. Against NUTS, on most models or with longer runs on all:
//
//   - the means of samplers that accept or refuse are right up to errors, and those of others up to the bias of their
//     step;
//   - MCLMC, particles, Pathfinder and fits by guides have the means of the posterior within a limit, or a note says
//     that they have not;
//   - a variational fit solves the equation of its method, and its mean and standard deviations are those of the
//     posterior within limits, or a note says that they are not;
//   - an optimiser is at the mode, or a note says that it is not.
func TestEveryMethodOnEveryModel(t *testing.T) {
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			l := lengthsOf(m)
			r := newReference(t, m, l)
			for _, w := range rows() {
				t.Run(w.name, func(t *testing.T) { w.check(t, r, l) })
			}
		})
	}
}

// check runs a method. Samplers start at draws of NUTS: whether they find the posterior from afar is for the tests of
// their families.
func (w row) check(t *testing.T, r *reference, l lengths) {
	o := infer.Options{Seed: 2, Observer: infer.Silent, Chains: 2}
	switch w.kind {
	case exact:
		o.Chains, o.Start, o.Warmup, o.Draws = l.chains, r.last, l.updates/2, l.updates/5
	case stepped:
		o.Chains, o.Start, o.Warmup, o.Draws, o.Thin = l.chains, r.last, l.updates/2, l.updates/l.thin, l.thin
	case near:
		o.Chains = 8
		switch w.name {
		case "MCLMC":
			o.Start, o.Chains, o.Warmup, o.Draws = r.last, l.chains, 3*l.updates, l.updates
		case "evidence.SMC":
			o.Draws = 2 * l.updates
		case "svi.SVI":
			if o.Chains = 2; !l.guided {
				o.Warmup = 20
			}
		}
	case fitted:
		o.Warmup = l.fit
	case atMode:
		if r.model.Modeless || w.single && !apart[r.model.Name] { // what fails need not climb for long
			o.Warmup = 20
		}
	case climbed:
		if o.Warmup = w.updates; l.fit > 0 && !w.arrives {
			o.Warmup = l.fit
		}
	}
	program := infer.Program(r.program)
	if w.updates > 0 {
		start := must(r.program.Init(r.program.Batch(), ppl.FromUniform.Within(1), 1, 3))
		program = infer.Handwritten(infer.AtTemperature(r.program.Target(), 1), start, r.program.Batch())
		o.Chains = 1
	}
	result, err := infer.Run(context.Background(), program, w.make(r), o)
	if result != nil {
		defer infer.Free(result.State)
	}
	if w.single && !apart[r.model.Name] {
		require.Error(t, err) // the tests of the family look at what it says
		return
	}
	if w.kind == atMode && r.model.Modeless {
		require.ErrorContains(t, err, "not positive definite")
		return
	}
	if r.model.Modeless && errors.Is(err, infer.ErrNonFinite) {
		return // there is no end to its climb, and it says so
	}
	require.NoError(t, err)
	require.NotNil(t, result.Draws)
	mean, se := moments(t, result) // they are finite
	if !r.model.Modeless {
		require.Zero(t, result.Held)
	}
	switch w.kind {
	case climbed:
		w.climbs(t, r, result)
	case atMode:
		w.stationary(t, r, result)
	}
	if !l.compare || w.name == "svi.SVI" && !l.guided {
		return
	}
	switch w.kind {
	case exact, stepped:
		w.samples(t, r, result, o, mean, se)
	case near:
		w.approaches(t, r, result, mean, se)
	case fitted:
		w.solves(t, r, result)
		fallthrough
	case atMode, filtered:
		w.fits(t, r, result)
	}
}
