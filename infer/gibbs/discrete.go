package gibbs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Discrete moves discrete sites. An update visits every element z of every site, in the order of the layout, and draws
// it anew with all else as it is: with log p the log density,
//
//	z has the value v with probability proportional to exp(log p(v, rest) / T)
//
// over all values v of its support, where those are at most Exact. The elements of a site in a plate that do not meet
// in any term of the density are drawn all at once. Counts with more values, or without an end, move by a walk over
// whole numbers (Metropolis et al. 1953), with a width w of each element:
//
//	z' = z ± (1 + ⌊w·E⌋), E ~ Exponential(1), accepted with probability min(1, exp((log p(z') − log p(z)) / T))
//	log(1 + w) ← log(1 + w) + (accept − 0.44) / t^0.6    at update t of the warm-up
//
// The statistic "flips" is the share of elements that changed, and "walk_accept" the mean acceptance of walks.
type Discrete struct {
	Temperature infer.Schedule // T at each update; default 1. It must be positive
	Exact       int            // values up to which draws are exact; default 64, at least 2
	// Warmup is the number of updates that adapt the widths of walks, in loops of one's own; default 1000, infer.None is
	// none. In [infer.Sample] the Warmup of the options counts.
	Warmup int
}

// Defaults are 4 chains of 1000 draws after 1000 updates.
func (Discrete) Defaults() infer.Options { return defaults }

const discreteName = "gibbs.Discrete"

// Build checks the configuration and binds it to a target, whose sites must all be discrete.
func (c Discrete) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: discreteName}
	check.Schedule("Temperature", &c.Temperature, 1, true)
	if c.Exact == 0 {
		c.Exact = 64
	}
	check.Require(c.Exact >= 2, "Exact", c.Exact, "it must be at least 2")
	if c.Warmup == 0 {
		c.Warmup = 1000
	}
	check.Require(c.Warmup >= infer.None, "Warmup", c.Warmup, "it must be at least 0, or infer.None")
	if err := check.Err(); err != nil {
		return nil, err
	}
	program, ok := target.Program.(space)
	if !ok || program.Layout() == nil {
		return nil, fmt.Errorf("%s: the target is of functions, and says nothing of discrete sites: it needs a model of "+
			"ppl.CompileDiscrete: %w", discreteName, infer.ErrConfig)
	}
	t := &discrete{Discrete: c, n: target.N(), program: program, structure: &structure{}}
	for _, s := range program.Layout().Sites {
		low, high, ok := program.Ends(s.Name)
		if !ok {
			return nil, fmt.Errorf("%s: the site %q is not discrete: give it to a block with a method that has gradients, such "+
				"as hmc.NUTS{}, in gibbs.Blocks: %w", discreteName, s.Name, infer.ErrConfig)
		}
		own := &site{Site: s, low: low, high: high, walks: !(high-low < float64(c.Exact))}
		if own.plate = onePlate(s, program.Dims(s.Name)); own.plate != "" {
			var err error
			if own.rows, err = infer.NewGradient(target.Replaced(own.rowTerms(program))); err != nil {
				return nil, err
			}
		}
		t.sites = append(t.sites, own)
	}
	var err error
	t.gradient, err = infer.NewGradient(target)
	return t, err
}

// discrete is [Discrete] bound to a target.
type discrete struct {
	Discrete
	n        float64 // N
	program  space
	gradient infer.Gradient
	*structure
}

// structure is what is known of the sites, which transforms of one target share.
type structure struct {
	sites  []*site
	mu     sync.Mutex
	looked bool // at which sites have independent elements
}

// site is a discrete site.
type site struct {
	infer.Site
	low, high float64
	walks     bool           // by a random walk
	plate     string         // of its elements; "" where they are not those of one plate
	rows      infer.Gradient // whose aux has the log density of each row of the plate
	apart     bool           // its elements are independent given the rest
	met       map[string]bool
}

// discreteState is the state of [Discrete].
type discreteState struct {
	Params  infer.Params
	Step    int64
	Streams torch.Streams
	widths  *ts.Tensor // log(1 + w), like Params
}

// Position is the point.
func (s discreteState) Position() infer.Params { return s.Params }

// Steps is the number of updates so far.
func (s discreteState) Steps() int64 { return s.Step }

// Tensors are the point and the widths.
func (s discreteState) Tensors() (owned, shared infer.Tensors) {
	return infer.Tensors{"params": s.Params.Flat, "widths": s.widths}, nil
}

// Save is all of the state: the random numbers of an update depend on seed, chain and the number of the update alone.
func (s discreteState) Save() infer.Saved {
	owned, _ := s.Tensors()
	return infer.Saved{Steps: s.Step, Streams: s.Streams, Tensors: owned}
}

// Name is that of the method.
func (t *discrete) Name() string { return discreteName }

// MovesWholeNumbers says that it does.
func (t *discrete) MovesWholeNumbers() {}

// WithWarmup is the transform whose first updates adapt, as many as are given.
func (t *discrete) WithWarmup(updates int) (infer.Transform, error) {
	own := &discrete{Discrete: t.Discrete, n: t.n, program: t.program, gradient: t.gradient, structure: t.structure}
	own.Warmup = updates
	return own, nil
}

// Init starts with seed 0.
func (t *discrete) Init(p infer.Params) (infer.State, error) {
	return t.InitStreams(p, torch.NewStreams(0, p.Chains()))
}

// InitStreams starts at a point, whose numbers must be whole.
func (t *discrete) InitStreams(p infer.Params, streams torch.Streams) (infer.State, error) {
	if err := method.CheckStreams(discreteName, p, streams); err != nil {
		return nil, err
	}
	x, err := p.Values()
	if err != nil {
		return nil, err
	}
	d := p.Layout.Dim()
	for i, v := range x {
		s := t.sites[slices.IndexFunc(t.sites, func(s *site) bool { return i%d < s.Offset+s.Size })]
		if v != math.Trunc(v) || v < s.low || v > s.high {
			return nil, fmt.Errorf("%s: %s of chain %d starts at %v, which is no whole number from %v to %v: %w", discreteName,
				p.Layout.At(i%d), i/d, v, s.low, s.high, infer.ErrConfig)
		}
	}
	s := discreteState{Params: infer.Params{Layout: p.Layout}, Streams: streams}
	if s.Params.Flat, err = torch.Copy(p.Flat); err == nil {
		s.widths, err = p.Flat.ZerosLike(false)
	}
	return s, err
}

// Restore makes a state of what was saved.
func (t *discrete) Restore(layout *infer.Layout, saved infer.Saved) (infer.State, error) {
	s := discreteState{Params: infer.Params{Layout: layout}, Step: saved.Steps, Streams: saved.Streams}
	var err error
	if s.Params.Flat, err = saved.Tensor("params"); err == nil {
		s.widths, err = saved.Tensor("widths")
	}
	return s, err
}

// random are the random numbers of an update of a chain.
func random(s torch.Streams, chain int, step int64) *rand.Rand {
	a := mix(s.Seed + 0x9e3779b97f4a7c15*mix(s.Chains[chain]+1))
	return rand.New(rand.NewPCG(mix(a^uint64(step)), mix(a+mix(uint64(step)+1))))
}

// mix scrambles the bits of a number (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
