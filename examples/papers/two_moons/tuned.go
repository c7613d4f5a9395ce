package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"

	"github.com/kelvin-ppl/kelvin/diag/score"
	cells "github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
)

// tuned are the settings that -tune chooses. Steps η and frictions c are on the scale of the sum over data: SGLD is
// θ' = θ + (η/2)G + √η z, SGHMC v' = (1 − ηc)v + ηG + √(2ηc) z and θ' = θ + ηv', with G the gradient of the log
// posterior of all data.
type tuned struct {
	ShortSGLD     float64 `json:"sgld_short"` // η of the short run
	LongSGLD      float64 `json:"sgld_long"`
	ShortSGHMC    float64 `json:"sghmc_short"`
	ShortFriction float64 `json:"friction_short"`
	LongSGHMC     float64 `json:"sghmc_long"`
	LongFriction  float64 `json:"friction_long"`

	ParallelSGHMC    float64 `json:"sghmc_parallel"`
	ParallelFriction float64 `json:"friction_parallel"`

	Keep    float64 `json:"keep"` // share of the units that dropout keeps
	VIRate  float64 `json:"vi_rate"`
	VIScale float64 `json:"vi_scale"` // standard deviations at the start
}

// chosen is what -tune chose, and chosenSmall what it chose with -reference, where the short runs have no place. There
// the NLL prefers chains that hardly leave the MAP, so that nearest also has the settings whose probabilities were
// nearest to those of NUTS, on the same points.
var (
	chosen = tuned{ShortSGLD: 1e-3, LongSGLD: 3e-5, ShortSGHMC: 1e-2, ShortFriction: 10, LongSGHMC: 3e-5, LongFriction: 1,
		ParallelSGHMC: 1e-4, ParallelFriction: 10, Keep: 0.5, VIRate: 3e-4, VIScale: 0.2}
	chosenSmall = tuned{LongSGLD: 1e-4, LongSGHMC: 1e-3, LongFriction: 10, ParallelSGHMC: 3e-3, ParallelFriction: 1,
		Keep: 0.95, VIRate: 3e-4, VIScale: 0.02}
	nearest = tuned{LongSGLD: 3e-3, LongSGHMC: 3e-3, LongFriction: 1}
)

// tuneSeed is the seed on which settings are chosen. Its points are never scored.
const tuneSeed = 1001

// candidate is one setting of one method.
type candidate struct {
	method string
	text   string
	set    func(*tuned)
}

// candidates are those that -tune compares.
func candidates(reference bool) (out []candidate) {
	add := func(method, text string, set func(*tuned)) { out = append(out, candidate{method, text, set}) }
	short, langevin := []float64{3e-4, 1e-3, 3e-3, 1e-2}, []float64{1e-5, 3e-5, 1e-4, 3e-4}
	hamiltonian, parallel := []float64{3e-5, 1e-4, 3e-4, 1e-3}, []float64{1e-4, 3e-4, 1e-3}
	if reference {
		short, langevin = nil, []float64{1e-4, 3e-4, 1e-3, 3e-3}
		hamiltonian, parallel = []float64{1e-3, 3e-3, 1e-2}, []float64{1e-3, 3e-3, 1e-2}
	}
	for _, eta := range short {
		add(nameSGLD, fmt.Sprintf("step %g", eta), func(s *tuned) { s.ShortSGLD = eta })
	}
	for _, eta := range short {
		for _, c := range []float64{0.1, 1, 10} {
			add(nameSGHMC, fmt.Sprintf("step %g, friction %g", eta, c),
				func(s *tuned) { s.ShortSGHMC, s.ShortFriction = eta, c })
		}
	}
	for _, eta := range langevin {
		add(nameSGLDLong, fmt.Sprintf("step %g", eta), func(s *tuned) { s.LongSGLD = eta })
	}
	for _, eta := range hamiltonian {
		for _, c := range []float64{1, 10} {
			add(nameSGHMCLong, fmt.Sprintf("step %g, friction %g", eta, c),
				func(s *tuned) { s.LongSGHMC, s.LongFriction = eta, c })
		}
	}
	for _, eta := range parallel {
		for _, c := range []float64{1, 10} {
			add(nameParallel, fmt.Sprintf("step %g, friction %g", eta, c),
				func(s *tuned) { s.ParallelSGHMC, s.ParallelFriction = eta, c })
		}
	}
	for _, keep := range []float64{0.3, 0.5, 0.8, 0.9, 0.95} {
		add(nameDropout, fmt.Sprintf("%g of the units kept", keep), func(s *tuned) { s.Keep = keep })
	}
	for _, rate := range []float64{3e-4, 1e-3, 3e-3, 1e-2} {
		for _, sd := range []float64{0.02, 0.05, 0.2} {
			add(nameVI, fmt.Sprintf("rate %g, first sd %g", rate, sd), func(s *tuned) { s.VIRate, s.VIScale = rate, sd })
		}
	}
	return out
}

// trial is what a candidate gives on the validation points.
type trial struct {
	Method   string  `json:"method"`
	Setting  string  `json:"setting"`
	NLL      float64 `json:"nll"`
	Accuracy float64 `json:"accuracy"`
	Held     int     `json:"held"`     // updates that were not finite; such a setting is not chosen
	Distance float64 `json:"distance"` // with -reference, the mean distance of probabilities from those of NUTS
	Chosen   bool    `json:"chosen"`
}

// tune compares the candidates on the validation points of a seed of its own.
func tune(ctx context.Context, w io.Writer, o options) error {
	s, mlp, tau := o.problem()
	sizes := s
	sizes.tuned = tuned{} // each method has its own settings, so a trial does not depend on what was chosen before
	// NUTS runs once, if a trial is left to do.
	truth := sync.OnceValues(func() (prediction, error) {
		t, err := newTask(s, mlp, tuneSeed, tau)
		if err != nil {
			return prediction{}, err
		}
		predict, _, err := t.sampled(ctx)
		if err != nil {
			return prediction{}, err
		}
		return predict(t.validation.at)
	})
	var names []string
	for _, c := range candidates(o.reference) {
		names = append(names, c.method+": "+c.text)
	}
	g := &cells.Grid[trial]{Dir: filepath.Join(o.dir(), "tune"), Workers: o.workers,
		Settings: map[string]any{"version": 1, "seed": tuneSeed, "tau": tau, "sizes": mlp.Sizes, "candidates": names,
			"run": fmt.Sprintf("%+v", sizes)}}
	for i, c := range candidates(o.reference) {
		g.Cells = append(g.Cells, cells.Cell[trial]{Name: fmt.Sprintf("%02d", i),
			Run: func(ctx context.Context, _, _ string, _ infer.Observer) (trial, error) {
				own := s
				c.set(&own.tuned)
				out, p, err := try(ctx, own, mlp, tau, c)
				if err != nil || !o.reference {
					return out, err
				}
				exact, err := truth()
				if err != nil {
					return out, err
				}
				for i, v := range p.p {
					out.Distance += math.Abs(v-exact.p[i]) / float64(len(p.p))
				}
				return out, nil
			}})
	}
	trials, err := g.Run(ctx)
	if err != nil {
		return err
	}
	choose(trials)
	if o.json {
		return json.NewEncoder(w).Encode(trials)
	}
	fmt.Fprintf(w, "Validation points of seed %d, which is not scored; * is chosen: the least NLL of those without "+
		"updates that are not finite.\n|Δp| is the mean distance from NUTS.\n\n%-14s %-28s %8s %9s %7s\n", tuneSeed, "",
		"", "NLL", "accuracy", "|Δp|")
	for _, t := range trials {
		text, distance := "", "-"
		if o.reference {
			distance = fmt.Sprintf("%.4f", t.Distance)
		}
		if t.Chosen {
			text = " *"
		}
		if t.Held > 0 {
			text += fmt.Sprintf(" %d updates not finite", t.Held)
		}
		if _, err := fmt.Fprintf(w, "%-14s %-28s %8.4f %9.3f %7s%s\n", t.Method, t.Setting, t.NLL, t.Accuracy,
			distance, text); err != nil {
			return err
		}
	}
	return nil
}

// choose marks the best trial of each method.
func choose(trials []trial) {
	best := map[string]int{}
	for i, t := range trials {
		if b, ok := best[t.Method]; t.Held == 0 && (!ok || t.NLL < trials[b].NLL) {
			best[t.Method] = i
		}
	}
	for _, i := range best {
		trials[i].Chosen = true
	}
}

// try fits one candidate, from the MAP, and scores it on the validation points.
func try(ctx context.Context, s settings, mlp nn.MLP, tau float64, c candidate) (out trial, p prediction, err error) {
	out = trial{Method: c.method, Setting: c.text}
	t, err := newTask(s, mlp, tuneSeed, tau)
	if err != nil {
		return out, p, err
	}
	if _, err := t.fitMode(ctx); err != nil {
		return out, p, err
	}
	for _, m := range methods {
		if m.name != c.method {
			continue
		}
		predict, err := m.fit(t, ctx)
		if err != nil {
			return out, p, err
		}
		if p, err = predict(t.validation.at); err != nil {
			return out, p, err
		}
		logs := make([][]float64, len(p.z))
		for i, z := range p.z {
			l := score.BinaryLogProbabilities(z)
			logs[i] = l[:]
		}
		scores, err := score.Score(logs, t.validation.label)
		if err != nil {
			return out, p, err
		}
		out.NLL, out.Accuracy, out.Held = finite(scores.LogLoss), scores.Accuracy, t.held[m.name]
	}
	return out, p, nil
}
