package pathfinder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/internal/pathfind"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Pathfinder is the variational approximation of Zhang, Carpenter, Gelman and Vehtari (2022, JMLR 23). From each of
// several starts L-BFGS climbs the log density p on unconstrained space. Each point of a climb, with the optimiser's
// inverse Hessian Σ, gives a normal distribution q = N(x + Σ∇log p(x), Σ); that with the greatest evidence lower bound
// E_q(log p − log q), by Monte Carlo, stands for the path. Draws of all paths are pooled and drawn anew by their
// Pareto-smoothed ratios p/q (Vehtari et al. 2024): systematic resampling, with replacement, in random order.
//
// Each chain of the options is such an approximation by itself: 4 by default, of 1000 draws, from 4 paths each. The
// first path climbs from the chain's start, the others from points uniform on (-2, 2)^d. There is no warm-up, and Thin
// is not used. Draws have the statistics "lp" and "path". The Detail of the result is a [Detail]. The zero value of a
// field is its default.
type Pathfinder struct {
	Paths int // climbs of each chain; default 4. 1 is single-path Pathfinder
	// Plain draws from the paths alike, without the ratios.
	Plain      bool
	Candidates int     // draws of each path that are pooled; default the Draws of the options
	History    int     // steps that the optimiser remembers; default 6
	Iterations int     // steps of a climb at most; default 1000
	ELBODraws  int     // draws for each evidence lower bound; default 5
	Tolerance  float64 // relative rise of the log density at which a climb ends; default 1e-8
}

// Detail is what a run tells besides its draws.
type Detail struct {
	Paths [][]Path // of each chain
	// ParetoK is the Pareto shape of the ratios of each chain. Above diag/loo.KThreshold of their number, and where less
	// than half of a path's candidates are effective, the draws are not to be trusted. Of nearly equal ratios it is noise.
	ParetoK []float64
	ESS     []float64 // effective number of the candidates of each chain, by their ratios

	effective []float64 // part of the candidates of each chain
	n         int       // candidates of a chain
}

// Path is one climb.
type Path struct {
	ELBO        float64 // of its approximation; -Inf where it has none and gave no draws
	Iterations  int     // steps
	Best        int     // the step of the approximation, counted from 1
	Evaluations int     // of the log density, with its gradient
}

// Defaults are 4 chains of 1000 draws, without warm-up.
func (Pathfinder) Defaults() infer.Options {
	return infer.Options{Chains: 4, Warmup: infer.None, Draws: 1000, Thin: 1}
}

// Build checks the configuration and binds it to a target.
func (c Pathfinder) Build(target infer.Target) (infer.Transform, error) {
	if target.LogPosterior == nil {
		return nil, fmt.Errorf("%s: the log posterior is nil: %w", name, infer.ErrConfig)
	}
	for _, f := range []struct {
		field string
		v     *int
		def   int
	}{{"Paths", &c.Paths, 4}, {"Candidates", &c.Candidates, 0}, {"History", &c.History, 6},
		{"Iterations", &c.Iterations, 1000}, {"ELBODraws", &c.ELBODraws, 5}} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < 0 || *f.v > most {
			return nil, &infer.FieldError{Type: name, Field: f.field, Value: *f.v,
				Allowed: fmt.Sprintf("it must be from 1 to %d, or 0 for the default", most)}
		}
	}
	if c.Tolerance == 0 {
		c.Tolerance = 1e-8
	}
	if !(c.Tolerance > 0 && c.Tolerance < 1) {
		return nil, &infer.FieldError{Type: name, Field: "Tolerance", Value: c.Tolerance,
			Allowed: "it must be above 0 and below 1"}
	}
	return &transform{Pathfinder: c, target: target}, nil
}

const (
	name = "pathfinder.Pathfinder"
	// Limits, so that a mistake is no request for all memory.
	most        = 1 << 20 // of a field
	mostNumbers = 1 << 28 // in the candidates of a chain
)

var _ interface {
	infer.Transform
	infer.Driver
	infer.Noter
} = (*transform)(nil)

// transform is the method bound to a target.
type transform struct {
	Pathfinder
	target infer.Target
}

// Name is the method's.
func (t *transform) Name() string { return name }

// Stats are the names of the statistics of a draw.
func (t *transform) Stats() []string { return []string{draws.StatLP, "path"} }

func (t *transform) Init(infer.Params) (infer.State, error) {
	return nil, fmt.Errorf("%s makes whole runs: use infer.Run or infer.Sample: %w", name, infer.ErrConfig)
}

func (t *transform) Update(infer.State, infer.Batch) (infer.State, infer.Info, error) {
	_, err := t.Init(infer.Params{})
	return nil, infer.Info{}, err
}

// Drive makes the run, one chain after the other. A run that is resumed begins anew: it takes less time than its files.
func (t *transform) Drive(ctx context.Context, job infer.Job) (any, error) {
	e, err := path.Path{Full: true}.OnJob(t.target, job)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	starts, err := job.Start.Values()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	detail := &Detail{}
	for k := range job.Chains {
		d := e.Dim()
		c := &chain{transform: t, ctx: ctx, e: e, d: d, streams: torch.NewStreams(job.Seed, 1)}
		c.streams.Chains[0] = job.FirstChain + uint64(k)
		at := k * d % len(starts)
		if err := c.run(starts[at:at+d], job.Draws); err != nil {
			return nil, fmt.Errorf("%s: chain %d: %w", name, k, err)
		}
		detail.Paths = append(detail.Paths, c.paths)
		detail.ParetoK, detail.ESS = append(detail.ParetoK, c.k), append(detail.ESS, c.ess)
		detail.effective, detail.n = append(detail.effective, c.effective), c.each*len(c.paths)
		for _, i := range c.chosen {
			stats := [2]float64{c.logp[i], float64(i / c.each)}
			err := job.Record(infer.Transition{Chain: k, X: c.x[i*d : (i+1)*d], Stats: stats[:], Gradients: c.count})
			if err != nil {
				return nil, err
			}
			c.count = 0
		}
	}
	return detail, nil
}

// chain is one approximation.
type chain struct {
	*transform
	ctx     context.Context
	e       *path.Evaluator
	points  path.Points
	d       int
	streams torch.Streams
	count   int // evaluations
	paths   []Path
	each    int       // candidates of a path
	x       []float64 // [paths · each, d]
	logp    []float64
	k, ess  float64
	chosen  []int // candidates that are draws
	// effective is the part of the candidates that is effective: of a path's, where the ratios choose among paths too.
	effective float64
}

// numbers fills z with numbers of the chain's stream, standard normal or uniform.
func (c *chain) numbers(z []float64, uniform bool) error {
	draw := c.streams.Normal
	if uniform {
		draw = c.streams.Uniform
	}
	return torch.Do(func(*torch.Scope) error {
		v, err := draw([]int{len(z)}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		return torch.CopyTo(z, v)
	})
}

func (c *chain) normal(z []float64) error { return c.numbers(z, false) }

// density is that of the target, for a climb.
func (c *chain) density(x, logp, grad []float64) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.count += len(logp)
	if err := c.e.Eval(x, []float64{1}, &c.points); err != nil {
		return err
	}
	copy(logp, c.points.LogP)
	copy(grad, c.points.Grad)
	return nil
}

// startTries is how many starts of a path are tried until the density is finite at one, as in Stan.
const startTries = 100

// climb is the approximation of path i.
func (c *chain) climb(i int, start []float64) (fit *pathfind.Fit, err error) {
	o := pathfind.Options{History: c.History, Iterations: c.Iterations, Draws: c.ELBODraws, Tolerance: c.Tolerance}
	if i == 0 {
		return pathfind.Find(c.density, start, o, c.normal)
	}
	x := make([]float64, c.d)
	for range startTries {
		if err := c.numbers(x, true); err != nil {
			return nil, err
		}
		for j := range x {
			x[j] = 4*x[j] - 2
		}
		if fit, err = pathfind.Find(c.density, x, o, c.normal); !errors.Is(err, pathfind.ErrStart) {
			return fit, err
		}
	}
	return fit, err
}

// run makes the approximation, and chooses n draws.
func (c *chain) run(start []float64, n int) error {
	if c.each = c.Candidates; c.each == 0 {
		c.each = n
	}
	if largest := mostNumbers / c.Paths / c.d; c.each < 1 || c.each > largest {
		return &infer.FieldError{Type: name, Field: "Candidates", Value: c.each,
			Allowed: fmt.Sprintf("with %d paths in %d dimensions it must be from 1 to %d", c.Paths, c.d, largest)}
	}
	var ratios []float64
	z, grad := make([]float64, c.each*c.d), make([]float64, c.each*c.d)
	var last error
	found := false
	for i := range c.Paths {
		fit, err := c.climb(i, start)
		x, logp, ratio := make([]float64, c.each*c.d), make([]float64, c.each), make([]float64, c.each)
		switch {
		case errors.Is(err, pathfind.ErrNone) || errors.Is(err, pathfind.ErrStart):
			last = err
			for j := range ratio {
				ratio[j], logp[j] = math.Inf(-1), math.Inf(-1)
			}
			if fit == nil {
				fit = &pathfind.Fit{ELBO: math.Inf(-1)}
			}
		case err != nil:
			return err
		default:
			found = true
			if err := c.normal(z); err != nil {
				return err
			}
			for j := range c.each {
				ratio[j] = -fit.Draw(x[j*c.d:(j+1)*c.d], z[j*c.d:(j+1)*c.d])
			}
			if err := c.density(x, logp, grad); err != nil {
				return err
			}
			for j, v := range logp {
				if ratio[j] += v; math.IsNaN(ratio[j]) || math.IsInf(ratio[j], 1) {
					ratio[j] = math.Inf(-1)
				}
			}
		}
		c.paths = append(c.paths, Path{fit.ELBO, fit.Iterations, fit.Best, fit.Evaluations})
		c.x, c.logp, ratios = append(c.x, x...), append(c.logp, logp...), append(ratios, ratio...)
	}
	if !found {
		return fmt.Errorf("none of %d paths has an approximation: %w", c.Paths, last)
	}
	return c.choose(ratios, n)
}

// choose chooses n of the candidates by their ratios.
func (c *chain) choose(ratios []float64, n int) error {
	w, err := loo.PSIS(ratios, 1)
	if err != nil {
		return fmt.Errorf("the densities at all draws are not finite: %w: %w", err, infer.ErrNonFinite)
	}
	c.k, c.ess = w.K, w.ESS
	weights := make([]float64, len(ratios))
	for i, l := range w.LogWeights {
		weights[i] = math.Exp(l)
	}
	if c.effective = within(weights, c.each); c.Plain {
		c.effective = w.ESS / float64(len(ratios))
		for i := range weights {
			weights[i] = 1
			if math.IsInf(ratios[i], -1) {
				weights[i] = 0
			}
		}
	}
	u := make([]float64, n+1)
	if err := c.numbers(u, true); err != nil {
		return err
	}
	order := make([]int, n) // random, by the uniform numbers
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		if u[i] < u[j] {
			return -1
		}
		return 1
	})
	found := sample.Systematic(weights, n, u[n])
	for _, i := range order {
		c.chosen = append(c.chosen, found[i])
	}
	return nil
}

// within is the part of the candidates of a path that is effective, its mean over the paths by their weights. Paths of
// little weight, which draws leave out, do not lower it.
func within(weights []float64, each int) (effective float64) {
	for path := range slices.Chunk(weights, each) {
		sum, squares := 0.0, 0.0
		for _, w := range path {
			sum, squares = sum+w, squares+w*w
		}
		if squares > 0 {
			effective += sum * sum * sum / squares / float64(each)
		}
	}
	return effective
}

// Notes say where the draws are not to be trusted.
func (t *transform) Notes(_ infer.State, run infer.RunSummary) []draws.Note {
	bad, whose, worst, limit, least := approx.Uneven, "a path's draws", math.Inf(-1), 0.0, math.Inf(1)
	if t.Plain { // no weights mend its draws
		bad, whose = approx.Far, "the draws of all paths"
	}
	for _, d := range run.Details {
		detail, ok := d.(*Detail)
		if !ok || detail == nil {
			continue
		}
		threshold := loo.KThreshold(max(2, detail.n))
		for i, k := range detail.ParetoK {
			if e := detail.effective[i]; bad(k, threshold, e) && e < least {
				worst, limit, least = k, threshold, e
			}
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	return []draws.Note{{Kind: approx.FarFromPosterior, Serious: true,
		Text: fmt.Sprintf("By the ratios of the posterior to the approximation %.2g %% of %s are effective, and the tail "+
			"of the ratios has a Pareto k of %.2f, where %.2f is the limit: means and intervals are those of the "+
			"approximation, not of the posterior.", 100*least, whose, worst, limit),
		Advice: "use the draws as a first look, raise pathfinder.Pathfinder.Paths, or sample with hmc.NUTS{}"}}
}
