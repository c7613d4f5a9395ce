package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
)

// row is a side's figures for a posterior. The tags are a format that other programs read.
type row struct {
	Model   string  `json:"model"`
	Side    string  `json:"side"`
	Compile float64 `json:"compile_s"`
	Wall    float64 `json:"s_per_1000_draws"` // warm-up included
	ESS     float64 `json:"min_ess"`          // of as many draws as there were
	Rate    float64 `json:"ess_per_s"`
	Whole   float64 `json:"ess_per_s_with_compiling"`
	US      float64 `json:"us_per_gradient"` // 0 where the side does not tell
	Draws   int     `json:"draws"`
	Note    string  `json:"note,omitempty"`
	Error   string  `json:"error,omitempty"`

	// Apart is how far the side's means are from Kelvin's, at most, in standard errors of the difference.
	Apart float64 `json:"means_apart,omitempty"`

	rates, wholes, walls, sizes []float64
	means                       []map[string]moment // of each round
}

// add is one run more.
func (r *row) add(s sampled) {
	r.Compile = max(r.Compile, s.compiling)
	r.Draws = s.draws
	r.rates = append(r.rates, s.ess/s.seconds)
	r.wholes = append(r.wholes, s.ess/(s.seconds+r.Compile))
	r.walls = append(r.walls, 1000*s.seconds/float64(s.draws))
	r.sizes = append(r.sizes, s.ess)
	if s.means != nil {
		r.means = append(r.means, s.means)
	}
}

// finish takes medians over the rounds.
func (r *row) finish() {
	if len(r.rates) == 0 {
		return
	}
	r.Rate, r.Whole = bench.Quantile(r.rates, 0.5), bench.Quantile(r.wholes, 0.5)
	r.Wall, r.ESS = bench.Quantile(r.walls, 0.5), bench.Quantile(r.sizes, 0.5)
}

// side is one that samples: Kelvin, or a peer.
type side struct {
	row
	sample   func(seed uint64) (sampled, error)
	gradient func() (float64, error) // nil where another row of the group has it
}

// peerSide is how a peer is asked for draws.
type peerSide struct{ name, sampler, group string }

var samplers = []peerSide{
	{"Stan", "stan", "stan"}, {"PyStan", "pystan", "stan"}, {"nutpie", "nutpie", "stan"},
	{"nutpie, low rank", "nutpie_low_rank", "stan"},
	{"NumPyro", "numpyro", "jax"}, {"BlackJAX", "blackjax", "jax"}, {"Pyro", "pyro", "torch"},
}

// samplers are those of a group that take part. nutpie has a low-rank metric too where Kelvin has one.
func (b *benchmark) samplers(g peer.Group, p posterior) []peerSide {
	var out []peerSide
	for _, s := range samplers {
		peer, lowRank := strings.CutSuffix(s.name, ", low rank")
		if s.group == g.Name && b.wanted(peer) && (!lowRank || p.method.Metric == hmc.LowRank) {
			out = append(out, s)
		}
	}
	return out
}

// nuts measures one posterior on all sides, which take turns.
func (b *benchmark) nuts(ctx context.Context, p posterior) ([]row, error) {
	sides := []*side{b.kelvinSide(ctx, p)}
	for _, g := range peer.Groups {
		if b.missing[g.Name] != nil || g.Name != "stan" && p.short == "" {
			continue
		}
		more, done := b.groupSides(ctx, g, p, p.data, p.stan, "")
		defer done()
		sides = append(sides, more...)
		if g.Name == "stan" && p.orthogonal != nil {
			text, err := peer.Programs.ReadFile("stan/regression_qr.stan")
			if err != nil {
				return nil, err
			}
			more, done := b.groupSides(ctx, g, p, p.orthogonal, string(text), ", orthogonal")
			defer done()
			sides = append(sides, more...)
		}
	}
	for round := range b.rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)]
			if s.Error != "" {
				continue
			}
			got, err := s.sample(uint64(round + 1))
			if err != nil {
				s.Error = err.Error()
				continue
			}
			s.add(got)
		}
	}
	var rows []row
	for _, s := range sides {
		if s.gradient != nil && s.Error == "" {
			var err error
			if s.US, err = s.gradient(); err != nil {
				s.Note = err.Error()
			}
		}
		s.finish()
		if s.Error == "" {
			s.Apart = apart(sides[0].row, s.row)
		}
		rows = append(rows, s.row)
	}
	return rows, ctx.Err()
}

func (b *benchmark) kelvinSide(ctx context.Context, p posterior) *side {
	k := &kelvin{posterior: p}
	s := &side{row: row{Model: p.name, Side: "Kelvin"}}
	var err error
	if s.Compile, err = k.compile(); err != nil {
		s.Error = err.Error()
		return s
	}
	s.Note = k.tier
	s.sample = func(seed uint64) (sampled, error) { return k.sample(ctx, b.lengths, seed) }
	s.gradient = func() (float64, error) { return k.gradient(b.seconds) }
	return s
}

// groupSides starts a group's program on a posterior. The function ends it.
func (b *benchmark) groupSides(ctx context.Context, g peer.Group, p posterior, data any, stan, suffix string) (
	sides []*side, done func()) {
	chosen := b.samplers(g, p)
	for _, s := range chosen {
		sides = append(sides, &side{row: row{Model: p.name, Side: s.name + suffix}})
	}
	if len(sides) == 0 {
		return nil, func() {}
	}
	fail := func(err error) {
		for _, s := range sides {
			s.Error = err.Error()
		}
	}
	process, err := b.environments.Start(ctx, g)
	if err != nil {
		fail(err)
		return sides, func() {}
	}
	compile := peer.Request{"data": data, "model": p.short}
	if g.Name == "stan" {
		compile = peer.Request{"data": data, "code": stan}
	}
	made, err := process.Ask("compile", compile, 15*time.Minute)
	if err != nil {
		fail(err)
	}
	for i, s := range chosen {
		this := sides[i]
		this.Compile = made.Seconds
		this.sample = func(seed uint64) (sampled, error) { return b.ask(process, p, s, seed) }
		if i == 0 {
			this.gradient = func() (float64, error) {
				a, err := process.Ask("gradient", peer.Request{"seconds": b.seconds}, 5*time.Minute)
				return a.US, err
			}
		}
	}
	return sides, process.Close
}

// ask has a peer sample and reads its draws.
func (b *benchmark) ask(process *peer.Process, p posterior, s peerSide, seed uint64) (sampled, error) {
	l := b.lengths
	if s.name == "Pyro" { // which would take minutes
		l = lengths{1, max(l.warmup/5, 1), max(l.draws/5, 4)}
	}
	file := filepath.Join(b.scratch, "draws")
	a, err := process.Ask("sample", peer.Request{"sampler": s.sampler, "chains": l.chains, "warmup": l.warmup,
		"draws": l.draws, "seed": seed, "accept": p.accept(), "file": file}, 10*time.Minute)
	if err != nil {
		return sampled{}, err
	}
	draws, err := peer.ReadDraws(file, a)
	if err != nil {
		return sampled{}, err
	}
	ess, err := leastESS(draws, p.names)
	return sampled{seconds: a.Seconds, compiling: a.Compiling, ess: ess, draws: a.Chains * a.Draws,
		means: moments(draws, p.names)}, err
}
