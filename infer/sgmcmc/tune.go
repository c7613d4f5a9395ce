package sgmcmc

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/pathfind"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// A step size that is left open is found at the points to which chains climb. It is a share of the limit of stability
// at the largest curvature λ of the mean log posterior there. It is smaller where the noise of minibatches, of variance
// V, would exceed a share of what is injected. The chains of the run start where they have climbed to.
const (
	firstOrder  = 0.1  // of the limit of stability: the standard deviation of a Gaussian comes out 6 % too large
	secondOrder = 0.25 // where the error is of second order in the step
	heating     = 0.1  // the noise of minibatches, of what is injected: another 5 %
	corrected   = 0.5  // the same where β corrects for it
	tuneChains  = 4    // that tell the curvature
	tuneUpdates = 500  // of Adam, with minibatches
	tuneBatches = 32   // whose gradients tell V
)

// scales are what a step size depends on.
type scales struct {
	curvature float64 // λ
	noise     float64 // V, of the noisiest element; 0 without minibatches
	tau       float64 // T/N
}

// limits are the largest stable step, times its share, and the step at which minibatches bring as much noise as is
// injected; 0 for none.
type limits struct{ stable, noise float64 }

// open is a step size that is to be found.
type open struct {
	name        string
	lr          *infer.Schedule
	temperature infer.Schedule
	corrects    bool // β corrects for the noise of minibatches
	limits      func(scales) limits
}

// step is the step size for some scales, and what bounds it.
func (f open) step(s scales) (lr float64, bound string) {
	l := f.limits(s)
	lr, bound = l.stable, fmt.Sprintf("the largest curvature of the mean log posterior, %.3g", s.curvature)
	share := heating
	if f.corrects {
		share = corrected
	}
	if s.noise > 0 && l.noise > 0 && share*l.noise < lr {
		lr = share * l.noise
		bound = fmt.Sprintf("the noise of a minibatch's gradient, of variance %.3g in an element: a larger batch allows more",
			s.noise)
	}
	return lr, bound
}

// find sets the step size where there is none, says what it is, and where the chains start.
func (f open) find(ctx context.Context, program infer.Program, o infer.Options) (infer.Params, string, error) {
	if *f.lr != nil {
		return o.Start, "", nil
	}
	if ctx == nil || program == nil {
		return o.Start, "", fmt.Errorf("%s: the context or the program is nil: %w", f.name, infer.ErrConfig)
	}
	l := look{ctx: ctx, program: program, o: o, batches: o.Batches, parts: o.Batches != nil}
	if !l.parts {
		l.batches = infer.Full(program.Batch())
	}
	position := l.batches.Position()
	defer func() { _ = l.batches.Seek(position) }()
	s, start, err := l.scales(f.last(o))
	if err != nil {
		return start, "", fmt.Errorf("%s: LR is missing, and none was found: %w", f.name, err)
	}
	lr, bound := f.step(s)
	if !(lr > 0) || math.IsInf(lr, 0) {
		return start, "", &infer.FieldError{Type: f.name, Field: "LR", Value: "missing",
			Allowed: fmt.Sprintf("none was found: where chains climb to, the largest curvature of the mean log posterior is "+
				"%.3g, which bounds no step; give a schedule", s.curvature)}
	}
	*f.lr = infer.Constant(lr)
	return start, fmt.Sprintf("LR %.3g, bounded by %s", lr, bound), nil
}

// look is a look at the target of a run.
type look struct {
	ctx     context.Context
	program infer.Program
	o       infer.Options
	batches infer.Batches
	parts   bool // of the data in each batch
}

// scales are those where chains climb to. They are of a few chains of the program, whatever the chains of the run are,
// and start is where those climb to.
func (l look) scales(temperature float64) (s scales, start infer.Params, err error) {
	target := l.program.Target()
	s.tau = temperature / target.N()
	gradient, err := infer.NewGradient(target)
	if err != nil {
		return s, start, err
	}
	few, err := l.program.Start(l.program.Batch(), tuneChains, l.o.Seed)
	if err == nil {
		few, err = l.climb(few)
	}
	if err != nil {
		return s, start, err
	}
	lambdas, err := method.Curvatures(gradient, few, s.tau, l.parts, l.batches.Next)
	if err != nil {
		return s, start, err
	}
	slices.Sort(lambdas)
	s.curvature = lambdas[len(lambdas)/2]
	if l.parts && s.tau > 0 {
		if s.noise, err = noisiest(gradient, few, l.batches.Next); err != nil {
			return s, start, err
		}
	}
	start = l.o.Start
	switch chains := cmp.Or(l.o.Chains, tuneChains); {
	case start.Flat == (torch.Tensor{}) && chains == tuneChains:
		return s, few, nil
	case start.Flat == (torch.Tensor{}):
		start, err = l.program.Start(l.program.Batch(), chains, l.o.Seed)
	}
	if err == nil {
		start, err = l.climb(start)
	}
	return s, start, err
}

// climb is where chains come to from a start: each as high as draws are or, with minibatches, by Adam.
func (l look) climb(start infer.Params) (infer.Params, error) {
	var code *native.Func
	if !l.parts {
		var err error
		if code, _, err = infer.Compile(l.program.Target().Summed(), start, l.program.Batch(),
			native.Options{Tier: l.o.Native}); err != nil {
			return start, err
		}
	}
	if code != nil {
		return approach(code, start)
	}
	r, err := infer.Run(l.ctx, l.program, optim.Adam{}, infer.Options{Chains: start.Chains(), Warmup: tuneUpdates,
		Draws: infer.None, Seed: l.o.Seed, Start: start, Batches: l.o.Batches, Group: l.o.Group, Native: l.o.Native,
		Observer: infer.Silent, DependentRows: l.o.DependentRows})
	if err != nil {
		return start, err
	}
	return r.Last, nil
}

// approach climbs with a compiled density, each chain by itself.
func approach(code *native.Func, start infer.Params) (infer.Params, error) {
	flat, err := start.Values()
	if err != nil {
		return start, err
	}
	d := start.Layout.Dim()
	density := func(x, logp, grad []float64) (err error) {
		for k := range logp {
			if logp[k], err = code.Eval(x[k*d:(k+1)*d], 1, grad[k*d:(k+1)*d]); err != nil {
				return err
			}
		}
		return nil
	}
	for x := range slices.Chunk(flat, d) {
		high, err := pathfind.Approach(density, x)
		if err != nil {
			return start, err
		}
		copy(x, high)
	}
	start.Flat, err = torch.FromSliceOn(torch.CPU, gotch.Double, flat, start.Flat.Shape()...)
	torch.Detach(start.Flat)
	return start, err
}

// noisiest is the largest variance of an element of the gradient of a minibatch.
func noisiest(g infer.Gradient, p infer.Params, next func() (infer.Batch, error)) (most float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		v := (&Estimate{Batches: tuneBatches}).Variance(g, p, torch.Tensor{}, next)
		defer torch.Free(v)
		all, err := torch.ToSlice[float64](v)
		if err == nil {
			most = slices.Max(all)
		}
		return err
	})
	return most, err
}

// last is the temperature of the last update.
func (f open) last(o infer.Options) float64 {
	if f.temperature == nil {
		return 1
	}
	warmup, kept := cmp.Or(o.Warmup, defaults.Warmup), cmp.Or(o.Draws, 1000)
	updates := max(warmup, 0) + max(kept, 0)*cmp.Or(o.Thin, defaults.Thin)
	return f.temperature(max(updates-1, 0))
}

// Tune finds LR where it is nil: see [infer.Tuner].
func (c SGLD) Tune(ctx context.Context, program infer.Program, o infer.Options) (infer.Method,
	infer.Params, string, error) {
	start, words, err := open{"sgmcmc.SGLD", &c.LR, c.Temperature, c.EstimateBeta != nil || c.Beta > 0,
		func(s scales) limits { return limits{firstOrder * 2 / s.curvature, 2 * s.tau / s.noise} },
	}.find(ctx, program, o)
	return c, start, words, err
}

// Tune finds LR where it is nil: see [infer.Tuner].
func (c SGHMC) Tune(ctx context.Context, program infer.Program, o infer.Options) (infer.Method,
	infer.Params, string, error) {
	alpha, square := valueOr(c.Alpha, 1), squared(c.Sigma)
	start, words, err := open{"sgmcmc.SGHMC", &c.LR, c.Temperature, c.EstimateBeta != nil || c.Beta > 0,
		func(s scales) limits {
			return limits{firstOrder * min(alpha/s.curvature, 2*square/alpha), 2 * alpha * s.tau / s.noise}
		},
	}.find(ctx, program, o)
	return c, start, words, err
}

// Tune finds LR where it is nil: see [infer.Tuner]. Its thermostat absorbs the noise of minibatches.
func (c SGNHT) Tune(ctx context.Context, program infer.Program, o infer.Options) (infer.Method,
	infer.Params, string, error) {
	alpha, square := valueOr(c.Alpha, 1), squared(c.Sigma)
	start, words, err := open{"sgmcmc.SGNHT", &c.LR, c.Temperature, false,
		func(s scales) limits { return limits{stable: firstOrder * min(alpha/s.curvature, square/(2*alpha))} },
	}.find(ctx, program, o)
	return c, start, words, err
}

// Tune finds LR where it is nil: see [infer.Tuner].
func (c BAOA) Tune(ctx context.Context, program infer.Program, o infer.Options) (infer.Method,
	infer.Params, string, error) {
	alpha, square := valueOr(c.Alpha, 1), squared(c.Sigma)
	start, words, err := open{"sgmcmc.BAOA", &c.LR, c.Temperature, false,
		func(s scales) limits {
			return limits{secondOrder * 2 * math.Sqrt(square/s.curvature), 2 * alpha * s.tau / s.noise}
		},
	}.find(ctx, program, o)
	return c, start, words, err
}

// Tune finds LR where it is nil: see [infer.Tuner]. With Momentum it is the learning rate.
func (c SymplecticSGHMC) Tune(ctx context.Context, program infer.Program, o infer.Options) (infer.Method,
	infer.Params, string, error) {
	start, words, err := open{"sgmcmc.SymplecticSGHMC", &c.LR, c.Temperature, c.EstimateBeta != nil || c.Beta > 0,
		func(s scales) limits {
			if c.Momentum != nil {
				damp := 1 - c.Momentum(0)
				return limits{secondOrder * secondOrder * (4 - 2*damp) / s.curvature, 2 * damp * s.tau / s.noise}
			}
			gamma := valueOr(c.Gamma, 1)
			h := (math.Sqrt(gamma*gamma+4*s.curvature) - gamma) / s.curvature // the root of h²λ + 2hγ = 4
			return limits{secondOrder * h, 2 * gamma * s.tau / s.noise}
		},
	}.find(ctx, program, o)
	return c, start, words, err
}

// squared is σ², of the default where it is 0.
func squared(sigma float64) float64 {
	if sigma == 0 {
		return 1
	}
	return sigma * sigma
}
