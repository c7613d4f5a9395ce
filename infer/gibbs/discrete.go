package gibbs

import (
	"fmt"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
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

// discreteState is the state of [Discrete].
type discreteState struct {
	method.State
	widths torch.Tensor // log(1 + w)
}

// Build checks the configuration and binds it to a target, whose sites must all be discrete.
func (c Discrete) Build(target infer.Target) (infer.Transform, error) {
	check := &method.Checks{Name: discreteName}
	check.Schedule("Temperature", &c.Temperature, 1, true)
	exact, warmup := c.Exact, c.Warmup
	if exact == 0 {
		exact = 64
	}
	if warmup == 0 {
		warmup = 1000
	}
	check.Require(exact >= 2, "Exact", c.Exact, "it must be at least 2")
	check.Require(warmup >= infer.None, "Warmup", c.Warmup, "it must be at least 0, or infer.None")
	program, ok := target.Program.(space)
	if v, is := program.(*view); !ok || is && v.space == nil {
		return nil, fmt.Errorf("%s: the target is of functions, and says nothing of discrete sites: it needs a model of "+
			"ppl.CompileDiscrete: %w", discreteName, infer.ErrConfig)
	}
	bare := target // which has values, though no gradients
	bare.Program = nil
	t := &discrete{target: bare, program: program, n: target.N(), warmup: warmup}
	t.rebuild = func(updates int) (infer.Transform, error) {
		if c.Warmup = updates; updates == 0 {
			c.Warmup = infer.None
		}
		return c.Build(target)
	}
	for _, s := range program.Layout().Sites {
		low, high, ok := program.Ends(s.Name)
		if !ok {
			return nil, fmt.Errorf("%s: the site %q is not discrete: give it to a block with a method that has gradients, such "+
				"as hmc.NUTS{}, in gibbs.Blocks: %w", discreteName, s.Name, infer.ErrConfig)
		}
		own := &site{Site: s, low: low, high: high, walks: !(high-low < float64(exact))}
		t.sites = append(t.sites, own)
		if dims := program.Dims(s.Name); len(s.Shape) == 1 && s.Size > 1 && len(dims) == 1 && dims[0] != "" {
			var err error
			if own.rows, err = infer.NewGradient(target.Replaced(own.rowTerms(program, dims[0]))); err != nil {
				return nil, err
			}
		}
	}
	built, err := method.Build(check, bare, method.Algorithm[discreteState]{LR: infer.Constant(1),
		Temperature: c.Temperature, Start: t.start, Step: t.step, Parts: func(s *discreteState) []method.Part {
			return []method.Part{{Name: "widths", Tensor: &s.widths}}
		}})
	if err != nil {
		return nil, err
	}
	t.updates = built.(updates)
	return t, nil
}

// updates is what [method.Build] makes.
type updates interface {
	infer.Transform
	infer.Seeded
	infer.Restorer
	infer.Named
}

// discrete is [Discrete] bound to a target.
type discrete struct {
	updates
	target  infer.Target
	program space
	n       float64 // N
	warmup  int
	sites   []*site
	rebuild func(warmup int) (infer.Transform, error)

	mu     sync.Mutex
	looked bool // at which sites have independent elements
}

// MovesWholeNumbers says that it does.
func (t *discrete) MovesWholeNumbers() {}

// WithWarmup is the transform whose first updates adapt, as many as are given.
func (t *discrete) WithWarmup(updates int) (infer.Transform, error) { return t.rebuild(updates) }
