package main

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/torch"
)

// method is one way to learn: its names, and how a learner of it is made for a seed. Everything else is the driver's.
type method struct {
	name, title string
	learner     func(seed uint64) (learner, error)
}

// The choices of settings.
const (
	tuned     = "tuned"
	plain     = "plain"
	published = "published"
)

// schedule is the length of a training run, with a learning rate that falls to zero where decay says so.
type schedule struct {
	lr     float64
	epochs int
	batch  int
	decay  bool
}

func (s schedule) training(seed uint64, n int) training {
	rate := infer.Constant(s.lr)
	if s.decay {
		rate = infer.Linear(s.lr, 0, 0, s.steps(n))
	}
	return training{optimizer: optim.Adam{LR: rate}, epochs: s.epochs, batch: s.batch, seed: seed}
}

func (s schedule) steps(n int) int {
	size := min(s.batch, n)
	return s.epochs * ((n + size - 1) / size)
}

// methods are those that are compared.
//
// Diagonal approximations see each of 40,801 parameters for itself, and do not see that many small changes in one
// direction change the function a lot: with the plain settings, where each datum counts once, they forget a good part.
// The remedy of Duffield et al. (2025) is to multiply the precision by λ = 100 under a first prior that is all but
// flat. Here the first prior has standard deviation 0.3 for all methods, and the diagonal ones count each datum 100
// times against it, Laplace by Scale and variational inference by KLWeight, whose bands are too narrow for it.
// Kronecker factors see such directions within a layer, and need no such factor.
//
// In the published settings of variational inference standard deviations begin at exp(−6), and 1,400 updates of at most
// about 0.002 in their logarithms bring them to 0.04 at most. The random walk of 0.1 between episodes then leaves a
// prior with standard deviations from 0.1 to 0.11: nearly the same for all parameters, so that it remembers where they
// were, but not which of them mattered.
func methods(settings string, quick bool) ([]method, error) {
	hidden := 200
	if quick {
		hidden = 20
	}
	point := schedule{lr: 2e-3, epochs: 500, batch: points * episodes, decay: true}
	flat, count := 0.3, 100.0 // standard deviation of the first prior, and how often the diagonal methods count a datum
	if settings == plain {
		count = 1
	}
	if settings == published {
		point, flat = schedule{lr: 1e-3, epochs: 100, batch: 3}, 1
	}
	if quick {
		point.epochs = 60
	}
	m, err := perceptron(flat, hidden, hidden)
	if err != nil {
		return nil, err
	}
	precision := laplace.Isotropic(1 / (flat * flat))
	diagonal := func(t training, start infer.Params) learner {
		return &carried{model: m, training: t, at: start, weight: 1,
			curvature: laplace.DiagGGN{Forward: m.forward, Outer: outer, PriorPrecision: precision, Scale: count}}
	}
	variation := schedule{lr: 5e-3, epochs: 600, batch: points, decay: true}
	q := func(t training, start infer.Params) learner {
		return &variational{model: m, training: t, at: start, draws: 100,
			method: func(o infer.Method, temperature infer.Schedule) infer.Method {
				return vi.Diag{Optimizer: o, Samples: 1, Temperature: temperature, InitScale: 0.007,
					KLWeight: infer.Constant(1 / count)}
			}}
	}
	switch settings {
	case tuned, plain:
	case published:
		wide, err := perceptron(1e4, hidden, hidden)
		if err != nil {
			return nil, err
		}
		diagonal = func(t training, start infer.Params) learner {
			return &carried{model: wide, training: t, at: start, weight: 100, curvature: laplace.DiagFisher{
				LogLikelihood: curvature.Likelihood(wide.forward, outer), PriorPrecision: laplace.Isotropic(1e-8)}}
		}
		variation = schedule{lr: 2e-3, epochs: 200, batch: 3}
		q = func(t training, start infer.Params) learner {
			return &variational{model: m, training: t, at: start, walk: 0.1, draws: 100,
				method: func(o infer.Method, temperature infer.Schedule) infer.Method {
					stick := false
					return vi.Diag{Optimizer: o, Samples: 1, Temperature: temperature, InitScale: 0.0025, StickTheLanding: &stick}
				}}
		}
	default:
		return nil, fmt.Errorf("there are no settings %q; there are: %s, %s, %s", settings, tuned, plain, published)
	}
	if quick {
		variation.epochs = 60
	}
	// All methods start a seed at the same point.
	from := func(s schedule, make func(t training, start infer.Params) learner) func(seed uint64) (learner, error) {
		return func(seed uint64) (learner, error) {
			start, err := m.begin(seed)
			if err != nil {
				return nil, err
			}
			return make(s.training(seed, points), start), nil
		}
	}
	all := []method{
		{"map", "sequential MAP", from(point, func(t training, start infer.Params) learner {
			return &sequential{model: m, training: t, at: start}
		})},
		{"laplace_diag", "Laplace, diagonal", from(point, diagonal)},
		{"laplace_kfac", "Laplace, Kronecker", from(point, func(t training, start infer.Params) learner {
			return &carried{model: m, training: t, at: start, weight: 1,
				curvature: laplace.KFAC{Network: m.network, Layers: m.layers, Outer: outer, PriorPrecision: precision}}
		})},
		{"vi", "variational", from(variation, q)},
		{"offline", "offline", from(point, func(t training, start infer.Params) learner {
			return &offline{model: m, training: t, start: start}
		})},
	}
	if settings == published { // there are none for Kronecker factors
		all = append(all[:2], all[3:]...)
	}
	return all, nil
}

// begin is a seed's first point.
func (m model) begin(seed uint64) (infer.Params, error) {
	streams := torch.NewStreams(seed, 1)
	streams.Offset = starts
	return m.start(&streams)
}
