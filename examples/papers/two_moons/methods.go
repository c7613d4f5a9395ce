package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// method is a row of the table.
type method struct {
	name, title string
	fromMode    bool // it starts at the MAP
	fit         fitter
}

// fitter fits a method and predicts with it.
type fitter func(t *task, ctx context.Context) (predictor, error)

// The names that the claims ask for.
const (
	nameMAP       = "map"
	nameLaplace   = "laplace_full"
	nameEvidence  = "laplace_evidence"
	nameDropout   = "dropout"
	nameEnsemble  = "ensemble"
	nameSGLD      = "sgld"
	nameSGLDLong  = "sgld_long"
	nameVI        = "vi"
	nameSGHMC     = "sghmc"
	nameSGHMCLong = "sghmc_long"
	nameNUTS      = "nuts"
	nameParallel  = "sghmc_parallel"
)

// methods are the rows of the table, in order: the MAP comes first, since others start there, and
// the ensemble before NUTS.
var methods = []method{
	{name: nameMAP, title: "MAP (Adam)", fit: (*task).fitMode},
	{name: "laplace_last", title: "Laplace, last layer", fromMode: true, fit: (*task).lastLayer},
	{name: "laplace_diag", title: "Laplace, diagonal", fromMode: true, fit: (*task).diagonal},
	{name: "laplace_kfac", title: "Laplace, KFAC", fromMode: true, fit: (*task).kronecker},
	{name: nameLaplace, title: "Laplace, full", fromMode: true, fit: (*task).dense},
	{name: nameEvidence, title: "Laplace, full, evidence", fromMode: true, fit: (*task).denseEvidence},
	{name: "laplace_draws", title: "Laplace, full, draws", fromMode: true, fit: (*task).denseDraws},
	{name: nameDropout, title: "MC dropout", fit: (*task).dropout},
	{name: nameEnsemble, title: "Deep ensemble", fit: (*task).ensemble},
	{name: nameSGLD, title: "SGLD, short", fromMode: true, fit: (*task).shortLangevin},
	{name: nameSGLDLong, title: "SGLD, long", fromMode: true, fit: (*task).longLangevin},
	{name: nameSGHMC, title: "SGHMC, short", fromMode: true, fit: (*task).shortHamiltonian},
	{name: nameSGHMCLong, title: "SGHMC, long", fromMode: true, fit: (*task).longHamiltonian},
	{name: nameParallel, title: "SGHMC, parallel", fit: (*task).parallelChains},
	{name: nameVI, title: "VI, diagonal", fromMode: true, fit: (*task).variationalFit},
	{name: nameNUTS, title: "NUTS, 4 chains", fit: (*task).nuts},
}

// fitMode is the mode that Adam finds.
func (t *task) fitMode(ctx context.Context) (predictor, error) {
	mode, err := t.optimise(ctx, 1)
	t.mode = mode
	return t.network(mode), err
}

// ensemble is K modes from K starts. The first start is the MAP's.
func (t *task) ensemble(ctx context.Context) (predictor, error) {
	members, err := t.optimise(ctx, t.settings.members)
	t.members = members
	return t.network(members), err
}

func (t *task) shortLangevin(ctx context.Context) (predictor, error) {
	return t.langevin(ctx, nameSGLD, t.tuned.ShortSGLD, t.short)
}

func (t *task) longLangevin(ctx context.Context) (predictor, error) {
	return t.langevin(ctx, nameSGLDLong, t.tuned.LongSGLD, t.long)
}

func (t *task) shortHamiltonian(ctx context.Context) (predictor, error) {
	return t.hamiltonian(ctx, nameSGHMC, t.tuned.ShortSGHMC, t.tuned.ShortFriction, t.mode, t.short)
}

func (t *task) longHamiltonian(ctx context.Context) (predictor, error) {
	return t.hamiltonian(ctx, nameSGHMCLong, t.tuned.LongSGHMC, t.tuned.LongFriction, t.mode, t.long)
}

// langevin is SGLD from the MAP with Welling and Teh's step θ' = θ + (η/2)G + √η z, where G is the gradient of the log
// posterior of all data.
func (t *task) langevin(ctx context.Context, name string, eta float64, length chain) (predictor, error) {
	return t.sample(ctx, name, sgmcmc.SGLD{LR: infer.Constant(eta / 2 * float64(t.settings.train))}, t.mode, length)
}

// hamiltonian is SGHMC with v' = (1 − ηc)v + ηG + √(2ηc) z and θ' = θ + ηv', where G is the gradient of the log
// posterior of all data and c the friction.
func (t *task) hamiltonian(ctx context.Context, name string, eta, friction float64, start infer.Params, length chain) (
	predictor, error) {
	same, err := sgmcmc.FromLangevin(eta, friction, t.settings.train)
	if err != nil {
		return nil, err
	}
	return t.sample(ctx, name, same.Symplectic(nil), start, length)
}

// parallelChains are chains of SGHMC from the starts of the ensemble, several draws of each.
func (t *task) parallelChains(ctx context.Context) (predictor, error) {
	start, err := t.starts(t.settings.members)
	if err != nil {
		return nil, err
	}
	return t.hamiltonian(ctx, nameParallel, t.tuned.ParallelSGHMC, t.tuned.ParallelFriction, start, t.parallel)
}

// sample runs a sampler on minibatches. A run that diverges has no draws: it predicts ½, and held says so.
func (t *task) sample(ctx context.Context, name string, m infer.Method, start infer.Params, c chain) (predictor,
	error) {
	batches, err := t.batches()
	if err != nil {
		return nil, err
	}
	r, err := infer.Run(ctx, t.program(t.model.logPosterior, start), m, infer.Options{Chains: start.Chains(),
		Warmup: c.warmup, Draws: c.draws, Thin: c.thin, Batches: batches, Seed: t.seed + 3})
	if errors.Is(err, infer.ErrNonFinite) {
		t.held[name] = c.steps() * start.Chains()
		t.notes = append(t.notes, name+" diverged")
		return undecided(c.draws * start.Chains()), nil
	}
	if err != nil {
		return nil, err
	}
	infer.Free(r.State)
	t.held[name] = r.Held
	if r.Held > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%s: %d of %d updates were not finite and left out", name, r.Held,
			r.Updates*r.Draws.Chains()))
	}
	t.traces[name] = r.Draws
	p, err := t.params(r.Draws)
	return t.network(p), err
}

// variationalFit is a normal distribution with independent elements, from the MAP.
func (t *task) variationalFit(ctx context.Context) (predictor, error) {
	method := vi.Diag{Optimizer: optim.Adam{LR: infer.Cosine(t.tuned.VIRate, t.variational)}, Samples: 1,
		InitScale: t.tuned.VIScale}
	batches, err := t.batches()
	if err != nil {
		return nil, err
	}
	d, err := infer.Sample(ctx, t.program(t.model.logPosterior, t.mode), method,
		infer.Options{Chains: 1, Warmup: t.variational, Draws: t.samples, Batches: batches, Seed: t.seed + 4})
	if err != nil {
		return nil, err
	}
	p, err := t.params(d)
	return t.network(p), err
}

// nuts is NUTS on all data, four chains from four members of the ensemble. What R-hat says of its predictions is noted.
func (t *task) nuts(ctx context.Context) (predictor, error) {
	const chains = 4
	start, err := t.members.Flat.T().IndexSelect(0, torch.New(firstOf(chains, t.settings.members)).T(), false)
	if err != nil {
		return nil, err
	}
	target := infer.Mean(t.model.logPosterior, int(t.model.n))
	program := infer.Handwritten(target, infer.Params{Layout: t.model.net.Layout(), Flat: torch.Of(start)}, t.data)
	r, err := infer.Run(ctx, program, hmc.NUTS{MaxDepth: t.nutsDepth}, infer.Options{
		Chains: chains, Warmup: t.nutsWarmup, Draws: t.nutsDraws, Seed: t.seed + 6, Observer: infer.Silent})
	if err != nil {
		return nil, err
	}
	t.traces[nameNUTS] = r.Unconstrained
	p, err := t.params(r.Unconstrained)
	if err != nil {
		return nil, err
	}
	predict := t.network(p)
	at, err := predict(t.test.at)
	if err != nil {
		return nil, err
	}
	var rhat []float64
	for i := range at.p {
		if h := diag.RHat(chunks(at.probabilities(i), chains)); h == h {
			rhat = append(rhat, h)
		}
	}
	cut := 0.0
	for c := range chains {
		depths, err := r.Unconstrained.Stat(draws.StatMaxDepth, c)
		if err != nil {
			return nil, err
		}
		cut += mean(depths) / chains
	}
	if len(rhat) > 0 {
		slices.Sort(rhat)
		t.notes = append(t.notes, fmt.Sprintf("NUTS: R-hat of the probabilities of test data has the median %.2f and the "+
			"maximum %.2f (1.01 is the limit); %.0f %% of the trajectories were cut off at 2^%d leapfrog steps; "+
			"step size %.1e; %d gradients", rhat[len(rhat)/2], rhat[len(rhat)-1], 100*cut, t.nutsDepth,
			r.Detail.(*hmc.Detail).StepSizes[0], r.Gradients))
	}
	return predict, nil
}

// firstOf are the indices 0 to k − 1, around again where there are fewer than k.
func firstOf(k, n int) []int {
	out := make([]int, k)
	for i := range out {
		out[i] = i % n
	}
	return out
}

// chunks cuts x into k parts of one length.
func chunks(x []float64, k int) [][]float64 {
	out := make([][]float64, k)
	for i := range out {
		out[i] = x[i*len(x)/k : (i+1)*len(x)/k]
	}
	return out
}
