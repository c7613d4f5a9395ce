package main

import (
	"context"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// comparison is a trial: HMC and SGHMC at one temperature, on one set of data that are drawn from the prior.
type comparison struct {
	Depth       int     `json:"depth"`
	Temperature float64 `json:"temperature"`
	Chains      int     `json:"chains"`
	Cases       int     `json:"test_cases"`
	Steps       int     `json:"leapfrog_steps"`
	Warmup      int     `json:"hmc_warmup"`
	HMCThin     int     `json:"hmc_thin,omitempty"` // transitions for a draw; 0 is 1
	Draws       int     `json:"draws"`              // of each chain of both
	LR          float64 `json:"learning_rate"`
	Momentum    float64 `json:"momentum"`
	Burn        int     `json:"sghmc_warmup"`
	Thin        int     `json:"sghmc_thin"`
	Seed        uint64  `json:"seed"`
}

func compared(o options, depth int, temperature float64, seed uint64) comparison {
	c := comparison{Depth: depth, Temperature: temperature, Chains: 5, Cases: 1000, Steps: 50, Warmup: scaled(150, o),
		Draws: scaled(100, o), LR: 0.01, Momentum: 0.95, Burn: scaled(2000, o), Thin: 100, Seed: seed}
	if o.quick {
		c.Chains, c.Cases, c.Steps, c.Warmup, c.Draws, c.Burn, c.Thin = 2, 50, 5, 20, 10, 50, 5
	}
	if p, ok := presets[o.preset]; ok {
		c.Chains, c.Cases, c.Steps, c.Warmup = p.Chains, p.TestCases, p.LeapfrogSteps, p.BurnIn
		c.HMCThin, c.Draws = p.Thin, p.Draws/p.Thin
		c.Burn *= c.Draws / 100
	}
	return c
}

func (c comparison) kind() string { return "hmc" }

func (c comparison) run(ctx context.Context) (values, error) {
	t, err := priorTask(c.Depth, c.Cases, c.Seed)
	if err != nil {
		return nil, err
	}
	starts, err := t.Starts(nn.HePrior(biasSD), c.Seed+1000, c.Chains)
	if err != nil {
		return nil, err
	}
	program := t.Program(starts)
	exact, err := infer.Run(ctx, program, hmc.HMC{Steps: c.Steps, Jitter: 0.2,
		Temperature: infer.Constant(c.Temperature)}, infer.Options{Chains: c.Chains, Warmup: c.Warmup,
		Draws: c.Draws, Thin: max(1, c.HMCThin), Seed: c.Seed, Observer: infer.Silent})
	if err != nil {
		return nil, err
	}
	approximate, err := infer.Run(ctx, program, sgmcmc.SymplecticSGHMC{LR: infer.Constant(c.LR),
		Momentum: infer.Constant(c.Momentum), Temperature: infer.Constant(c.Temperature)}, infer.Options{Chains: c.Chains,
		Warmup: c.Burn, Draws: c.Draws, Thin: c.Thin, Seed: c.Seed + 1, Observer: infer.Silent})
	if err != nil {
		return nil, err
	}
	a, err := predicted(t, exact.Draws)
	if err != nil {
		return nil, err
	}
	b, err := predicted(t, approximate.Draws)
	if err != nil {
		return nil, err
	}
	v := values{}
	if v["kl"], err = score.SymmetricKL(a.mean, b.mean); err != nil {
		return nil, err
	}
	if v["kl_hmc"], err = score.SymmetricKL(a.halves[0], a.halves[1]); err != nil {
		return nil, err
	}
	for name, p := range map[string]*prediction{"hmc": a, "sghmc": b} {
		s, err := score.Score(p.mean, t.Labels)
		if err != nil {
			return nil, err
		}
		v["nll_"+name] = s.LogLoss
		v["rhat_"+name], v["ess_"+name] = diag.RHat(p.entropy), diag.ESSMean(p.entropy)
		v["entropy_"+name] = mean(p.entropy)
	}
	v["rhat_weights"] = 0
	for j := range t.Net.NumParams() {
		var chains [][]float64
		for k := range c.Chains {
			chains = append(chains, exact.Draws.Element(k, j))
		}
		v["rhat_weights"] += diag.RHat(chains) / float64(t.Net.NumParams())
	}
	return v, nil
}

// prediction is what the draws of a run predict for the test data.
type prediction struct {
	mean    [][]float64    // log of the mean probabilities, [case][class]
	halves  [2][][]float64 // of the even and of the odd chains
	entropy [][]float64    // mean entropy over the cases of each network, [chain][draw]
}

func predicted(t *classify.Task, d *draws.Draws) (*prediction, error) {
	var all [3]*score.Predictive
	for i := range all {
		var err error
		if all[i], err = score.NewPredictive(len(t.Labels), priorClasses); err != nil {
			return nil, err
		}
	}
	p := &prediction{}
	for k := range d.Chains() {
		logp, err := t.Predictions(d, k)
		if err != nil {
			return nil, err
		}
		entropies := make([]float64, len(logp))
		for i, network := range logp {
			for _, to := range []*score.Predictive{all[k%2], all[2]} {
				if err := to.Add(network); err != nil {
					return nil, err
				}
			}
			for _, row := range network {
				for _, l := range row {
					entropies[i] -= math.Exp(l) * l / float64(len(network))
				}
			}
		}
		p.entropy = append(p.entropy, entropies)
	}
	p.mean, p.halves = all[2].LogMean(), [2][][]float64{all[0].LogMean(), all[1].LogMean()}
	return p, nil
}

// mean is that over all chains.
func mean(x [][]float64) float64 {
	var all []float64
	for _, chain := range x {
		all = append(all, chain...)
	}
	return stat.Mean(all, nil)
}
