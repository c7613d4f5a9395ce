package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

// modeCells are, for each seed, the modes with and without the prior, and what needs nothing else: the ensemble of the
// modes, and Laplace approximations at the first.
func (s *study) modeCells() (cells []grid.Cell[[]entry]) {
	for seed := range s.Settings.Seeds {
		cells = append(cells, grid.Cell[[]entry]{Name: s.name("modes", 0, seed), Updates: 2 * s.Settings.ModeUpdates,
			Run: func(ctx context.Context, dir, identity string, observer infer.Observer) ([]entry, error) {
				return s.modes(ctx, seed, dir, identity, observer)
			}})
	}
	return cells
}

func (s *study) modes(ctx context.Context, seed int, dir, identity string, observer infer.Observer) ([]entry, error) {
	modes, err := s.climb(ctx, seed, s.Settings.Members, s.task.LogPosterior, filepath.Join(dir, "map"), identity,
		observer)
	if err != nil {
		return nil, err
	}
	if err := s.keep(seed, modes); err != nil {
		return nil, err
	}
	likelihood := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return s.perCase(p, b).Mean(), nil
	}
	free, err := s.climb(ctx, seed, 1, likelihood, filepath.Join(dir, "mle"), identity, observer)
	if err != nil {
		return nil, err
	}
	var all []entry
	add := func(method string, logp ...[][]float64) error {
		e, err := s.entry(method, 0, logp)
		all = append(all, e)
		return err
	}
	var members [][][]float64
	for _, mode := range modes {
		logp, err := s.network(mode)
		if err != nil {
			return nil, err
		}
		members = append(members, logp)
	}
	if logp, err := s.network(free[0]); err != nil {
		return nil, err
	} else if err := add(mle, logp); err != nil {
		return nil, err
	}
	if err := add(mapMode, members[0]); err != nil {
		return nil, err
	}
	if err := add(ensemble, members...); err != nil {
		return nil, err
	}
	approximations, err := s.laplace(modes[0], seed)
	return append(all, approximations...), err
}

// climb finds a mode for each of k starts.
func (s *study) climb(ctx context.Context, seed, k int, f infer.LogPosterior, dir, identity string,
	observer infer.Observer) (modes [][]float64, err error) {
	starts, err := s.task.Starts(s.law, s.Settings.Seed+1000+uint64(seed), k)
	if err != nil {
		return nil, err
	}
	batches, err := s.batches(seed)
	if err != nil {
		return nil, err
	}
	r, err := infer.Run(ctx, infer.Handwritten(infer.Mean(f, s.task.N), starts, s.task.Train),
		s.Settings.optimiser(s.Settings.ModeUpdates, s.Settings.own().WeightDecay),
		infer.Options{Chains: k, Warmup: s.Settings.ModeUpdates, Draws: infer.None, Batches: batches,
			Seed: s.Settings.Seed, Observer: observer,
			Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true, Every: s.every, Model: identity}})
	if err != nil {
		return nil, err
	}
	flat, err := r.Last.Values()
	for d := s.task.Net.Layout().Dim(); len(flat) > 0; flat = flat[d:] {
		modes = append(modes, flat[:d])
	}
	return modes, err
}

// optimiser is Adam whose step falls, or AdamW whose step does not. A variational fit takes no decay, which would act
// on its standard deviations too.
func (s studySettings) optimiser(updates int, decay float64) infer.Method {
	if s.Published != nil {
		return optim.AdamW{LR: infer.Constant(s.ModeLR), Eps: s.ModeEps, WeightDecay: &decay}
	}
	return optim.Adam{LR: falling(s.ModeLR, updates), Eps: s.ModeEps}
}

// falling is a step that is constant for half of the updates, and then falls to 0 in a straight line.
func falling(lr float64, updates int) infer.Schedule {
	return func(step int) float64 { return lr * min(1, 2*float64(updates-step)/float64(updates)) }
}

func (s *study) modesPath(seed int) string {
	return filepath.Join(s.dir, fmt.Sprintf("modes-%d.bin", seed))
}

// keep writes the modes, for the cells that start there.
func (s *study) keep(seed int, modes [][]float64) error {
	return atomicfile.Replace(s.modesPath(seed), func(w io.Writer) error {
		for _, mode := range modes {
			if err := binary.Write(w, binary.LittleEndian, mode); err != nil {
				return err
			}
		}
		return nil
	})
}

// kept are the first k modes, as a point to start from.
func (s *study) kept(seed, k int) (p infer.Params, err error) {
	f, err := os.Open(s.modesPath(seed))
	if err != nil {
		return p, err
	}
	defer func() { _ = f.Close() }()
	d := s.task.Net.Layout().Dim()
	flat := make([]float64, k*d)
	if err := binary.Read(f, binary.LittleEndian, flat); err != nil {
		return p, fmt.Errorf("%s: %w: remove the folder to begin anew", s.modesPath(seed), err)
	}
	if p, err = infer.NewParams(s.task.Net.Layout(), flat); err != nil {
		return p, err
	}
	return p.To(torch.CPU, dtype)
}

// forward are the logits of the cases of a batch, and perCase their log likelihood.
func (s *study) forward(p infer.Params, b infer.Batch) torch.Tensor {
	return s.task.Net.Forward(p, b.Get("x"))
}

func outer(z torch.Tensor, b infer.Batch) torch.Tensor {
	return dist.CategoricalLogits(z).LogProb(b.Get("y"))
}

func (s *study) perCase(p infer.Params, b infer.Batch) torch.Tensor { return outer(s.forward(p, b), b) }

// laplace are diagonal Laplace approximations at a mode, at all temperatures: N(mode, T P⁻¹), whose P is made once.
func (s *study) laplace(mode []float64, seed int) (all []entry, err error) {
	precision := map[string]float64{} // of the prior, by site
	for name, law := range s.task.Prior.Laws() {
		precision[name] = cmp.Or(s.Settings.own().LaplaceEpsilon, 1/(law.SD()*law.SD()))
	}
	prior := laplace.PerSite(precision)
	for _, c := range []struct {
		name   string
		method infer.Method
	}{
		{laplaceEF, laplace.DiagFisher{LogLikelihood: s.perCase, PriorPrecision: prior, Tables: s.tables}},
		{laplaceGGN, laplace.DiagGGN{Forward: s.forward, Outer: outer, PriorPrecision: prior, Tables: s.tables}},
	} {
		transform, err := c.method.Build(infer.Target{})
		if err != nil {
			return nil, err
		}
		p, err := infer.NewParams(s.task.Net.Layout(), mode)
		if err != nil {
			return nil, err
		}
		if p, err = p.To(torch.CPU, dtype); err != nil {
			return nil, err
		}
		state, err := transform.Init(p)
		if err != nil {
			return nil, err
		}
		if state, _, err = transform.Update(state, s.task.Train); err != nil {
			return nil, err
		}
		own := state.(laplace.DiagState)
		mean, cov, err := own.Linearized(s.forward, infer.Batch{"x": s.task.Test}, curvature.LinearizedOptions{})
		if err != nil {
			return nil, err
		}
		for i, temperature := range s.Settings.Temperatures {
			own.Temperature = temperature
			streams := torch.NewStreams(s.Settings.Seed+uint64(2000+100*seed+i), 1)
			points, err := transform.(infer.Sampler).Sample(own, s.Settings.own().ParameterSamples, &streams)
			if err != nil {
				return nil, err
			}
			flat, err := points.Values()
			if err != nil {
				return nil, err
			}
			e, err := s.points(c.name, temperature, flat)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
			if e, err = s.linearised(c.name, temperature, mean, cov, temperature, seed); err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// linearised scores normal logits, [case][class], whose covariances are multiplied by a factor.
func (s *study) linearised(method string, temperature float64, mean, cov torch.Tensor, factor float64,
	seed int) (e entry,
	err error) {
	streams := torch.NewStreams(s.Settings.Seed+uint64(3000+seed), 1)
	var flat []float64
	err = torch.Do(func(*torch.Scope) error {
		p, err := laplace.Softmax(mean, cov.Mul(factor), s.Settings.own().LogitSamples, &streams)
		if err != nil {
			return err
		}
		flat = p.Clamp(1e-300, 1).Log().Values()
		return nil
	})
	if err != nil {
		return e, err
	}
	return s.entry(method+linear, temperature, [][][]float64{split(flat, len(s.task.Labels))})
}

// split cuts a slice into n rows.
func split(flat []float64, n int) (rows [][]float64) {
	for width := len(flat) / n; len(flat) > 0; flat = flat[width:] {
		rows = append(rows, flat[:width])
	}
	return rows
}

// network are the log probabilities of one network, [case][class].
func (s *study) network(flat []float64) ([][]float64, error) {
	return s.task.LogProbabilities(flat, s.task.Test)
}

// points scores the average over networks, whose weights follow one another.
func (s *study) points(method string, temperature float64, flat []float64) (entry, error) {
	var all [][][]float64
	for d := s.task.Net.Layout().Dim(); len(flat) > 0; flat = flat[d:] {
		logp, err := s.network(flat[:d])
		if err != nil {
			return entry{}, err
		}
		all = append(all, logp)
	}
	return s.entry(method, temperature, all)
}

func (s *study) entry(method string, temperature float64, logp [][][]float64) (e entry, err error) {
	e = entry{Method: method, Temperature: temperature, Networks: len(logp)}
	e.Scores, err = classify.Score(logp, s.task.Labels)
	return e, err
}
