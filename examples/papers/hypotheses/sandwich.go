package main

import (
	"context"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// sandwich is a trial: networks by SGD, then SGHMC at T = 1 from there, then SGD again (Wenzel et al. 2020, figures 13
// and 20), each for a number of cycles. The temperature is 0, 1 and 0, and the steps fall in cosines at 0 alone.
type sandwich struct {
	sampling
	Phase int `json:"phase"` // cycles
}

func (s sandwich) kind() string { return "sandwich" }

func (s sandwich) run(ctx context.Context) (values, error) {
	t, err := digitsTask(s.Train, s.Hidden, s.Prior, s.Tune)
	if err != nil {
		return nil, err
	}
	n := s.Phase * s.Cycle
	sgd, hot := infer.Constant(0), infer.Constant(s.Temperature)
	fall, flat := infer.Cosine(1, n), infer.Constant(1)
	method := sgmcmc.SymplecticSGHMC{LR: infer.Constant(s.LR), Momentum: infer.Constant(s.Momentum),
		Temperature: sgd.Then(n, hot.Then(n, sgd)), Cycle: fall.Then(n, flat.Then(n, fall))}
	starts, err := t.Starts(nn.KaimingNormal(nn.GainReLU), s.Seed+1000, s.Chains)
	if err != nil {
		return nil, err
	}
	batches, err := infer.Minibatches(t.Train, infer.MinibatchOptions{Size: min(s.Batch, t.N), Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	r, err := infer.Run(ctx, t.Program(starts), method, infer.Options{Chains: s.Chains, Warmup: infer.None, Draws: 3,
		Thin: n, Batches: batches, Seed: s.Seed, Observer: infer.Silent})
	if err != nil {
		return nil, err
	}
	// Scores of single networks, the mean over chains.
	v := values{}
	for k := range s.Chains {
		logp, err := t.Predictions(r.Draws, k)
		if err != nil {
			return nil, err
		}
		for i, phase := range []string{"sgd", "sghmc", "again"} {
			m, err := score.Score(logp[i], t.Labels)
			if err != nil {
				return nil, err
			}
			v["nll_"+phase] += m.LogLoss / float64(s.Chains)
			v["accuracy_"+phase] += m.Accuracy / float64(s.Chains)
		}
	}
	return v, nil
}
