package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/diag/score"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// sampling is a trial: chains of symplectic SGHMC (Wenzel et al. 2020, algorithm 1) on the digits. Warm-up, the time at
// the temperature without draws, and draws are in cycles.
type sampling struct {
	Train       int     `json:"training_images"`
	Hidden      []int   `json:"hidden"`
	Prior       priorOf `json:"prior"`
	Temperature float64 `json:"temperature"`
	Batch       int     `json:"batch"`
	LR          float64 `json:"learning_rate"`
	Momentum    float64 `json:"momentum"`
	Cycle       int     `json:"cycle"` // updates
	Warmup      int     `json:"warmup"`
	Settle      int     `json:"settle"`
	Draws       int     `json:"draws"`
	Cyclical    bool    `json:"cyclical"`
	Masses      bool    `json:"masses"`
	Chains      int     `json:"chains"`
	Tune        bool    `json:"tune,omitempty"`  // scored on the images to tune on
	Limit       bool    `json:"limit,omitempty"` // with the limit of infinitely many networks
	Seed        uint64  `json:"seed"`
}

// base are the settings that the tests start from. The learning rate is the largest of -tune at which parameters are
// not too hot at T = 1.
func base(o options, seed uint64) sampling {
	s := sampling{Train: mostImages, Hidden: []int{32, 32}, Prior: priorOf{Kind: "normal", Variance: 1},
		Temperature: 1, Batch: 100, LR: 0.03, Momentum: 0.98, Cycle: 150, Warmup: 4, Settle: scaled(4, o),
		Draws: scaled(12, o), Cyclical: true, Masses: true, Chains: 4, Seed: seed}
	if o.quick {
		s.Train, s.Hidden, s.Batch, s.Cycle = quickImages, []int{6}, 30, 8
		s.Warmup, s.Settle, s.Draws, s.Chains = 1, 1, 3, 2
	}
	return s
}

// scaled is a number of cycles or draws at the size asked for, at least 1.
func scaled(n int, o options) int { return max(1, int(float64(n)*o.size+0.5)) }

func (s sampling) kind() string { return "sghmc" }

func (s sampling) run(ctx context.Context) (values, error) {
	t, err := digitsTask(s.Train, s.Hidden, s.Prior, s.Tune)
	if err != nil {
		return nil, err
	}
	cycles := infer.Cycles{Length: s.Cycle, From: s.Warmup * s.Cycle}
	method := sgmcmc.SymplecticSGHMC{LR: infer.Constant(s.LR), Momentum: infer.Constant(s.Momentum),
		Temperature: infer.Ramp(s.Temperature, cycles.From, s.Cycle)}
	if s.Cyclical {
		method.Cycle = cycles.Cosine(1)
	}
	if s.Masses {
		method.EstimateMass = &sgmcmc.Estimate{Every: s.Cycle}
	}
	burn := (s.Warmup + s.Settle) * s.Cycle
	thermometer, err := t.Thermometer(func(updates int) bool { return updates > burn && cycles.Ends(updates) })
	if err != nil {
		return nil, err
	}
	thermometer.Then = infer.Silent
	starts, err := t.Starts(nn.KaimingNormal(nn.GainReLU), s.Seed+1000, s.Chains)
	if err != nil {
		return nil, err
	}
	batches, err := infer.Minibatches(t.Train, infer.MinibatchOptions{Size: min(s.Batch, t.N), Seed: s.Seed})
	if err != nil {
		return nil, err
	}
	r, err := infer.Run(ctx, t.Program(starts), method, infer.Options{Chains: s.Chains, Warmup: burn,
		Draws: s.Draws, Thin: 1, Cycles: &cycles, Batches: batches, Seed: s.Seed, Observer: &thermometer})
	if err == nil {
		err = thermometer.Err
	}
	if err != nil {
		return nil, err
	}
	var logp [][][]float64
	for k := range s.Chains {
		one, err := t.Predictions(r.Draws, k)
		if err != nil {
			return nil, err
		}
		logp = append(logp, one...)
	}
	v, err := scores(logp, t.Labels)
	if err != nil {
		return nil, err
	}
	if s.Temperature > 0 {
		m, err := classify.Judge(t.Net.Layout(), s.Temperature, [][]infer.Reading{thermometer.Readings})
		if err != nil {
			return nil, err
		}
		v["inside"], v["configurational"] = m.Inside, m.Configurational
	}
	v["held"] = float64(r.Held)
	if s.Limit {
		if err := limit(v, logp, t.Labels, s.Seed); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// scores are those of the average over networks.
func scores(logp [][][]float64, labels []int) (values, error) {
	m, err := classify.Score(logp, labels)
	return values{"nll": m.NLL, "accuracy": m.Accuracy, "brier": m.Brier, "ece": m.ECE, "gibbs": m.Gibbs}, err
}

// fewestForLimit is how many networks limit needs: its seven sizes then are 2 to 8.
const fewestForLimit = 10

// limit extrapolates the loss of S networks to infinitely many (Wenzel et al. 2020, appendix F): C(S) is the mean over
// random choices of S of the networks, from a fifth of them to all but a fifth.
func limit(v values, logp [][][]float64, labels []int, seed uint64) error {
	const sizes, choices = 7, 8
	n := len(logp)
	least, most := max(2, min(20, n/4)), n*4/5
	if n < fewestForLimit {
		return fmt.Errorf("%d networks are too few for a limit: expected at least %d", n, fewestForLimit)
	}
	random := rand.New(rand.NewPCG(seed, 2))
	var of []int
	var at []float64
	for i := range sizes {
		size := least + i*(most-least)/(sizes-1)
		mean := 0.0
		for range choices {
			var some [][][]float64
			for _, j := range random.Perm(n)[:size] {
				some = append(some, logp[j])
			}
			m, err := scores(some, labels)
			if err != nil {
				return err
			}
			mean += m["nll"] / choices
		}
		of, at = append(of, size), append(at, mean)
	}
	fit, err := score.FitEnsembleLimit(of, at)
	v["limit"], v["networks"] = fit.Limit, float64(n)
	return err
}
