package hmc

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/infer/path"
)

// The forms of the inverse mass matrix, which the warm-up fits to the covariance of the posterior.
const (
	Unit     = kernel.Unit     // the identity
	Diagonal = kernel.Diagonal // a variance for each number
	Dense    = kernel.Dense    // a full matrix
	LowRank  = kernel.LowRank  // low rank plus diagonal, from draws and gradients (Seyboldt, Carlson and Carpenter 2026)
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014) with multinomial weights (Betancourt 2017). An update is one
// transition of each chain. A trajectory doubles until it turns back. Step size and metric adapt in the warm-up, which
// docs/hmc.md describes; [kernel.NUTS] has the equations of a transition. The zero value of a field is its default.
type NUTS struct {
	// TargetAccept is the mean acceptance to which the step size adapts. A larger one makes smaller steps and fewer
	// divergences. Default 0.8; it becomes 0.9 in a chain that meets trouble after the first 30 % of its warm-up, that is
	// a divergence or a transition that accepts less than 1e-5.
	TargetAccept float64
	MaxDepth     int     // doublings of a trajectory that are allowed; default 10, at most 30
	MaxDeltaH    float64 // energy error above which a trajectory diverges; default 1000
	// StepSize is ε at each update; nil adapts it in the warm-up.
	StepSize infer.Schedule
	// Temperature is T at each update: the target is exp(N·LogPosterior/T)·|Jacobian|. Default 1. It must be positive.
	Temperature infer.Schedule

	// Metric is the form of the mass matrix: Unit, Diagonal, Dense or LowRank. By default the warm-up chooses between
	// Diagonal and LowRank, by which its draws predict to cost less; see [kernel.Options].
	Metric        kernel.MetricKind
	InitialMetric *kernel.Metric // what the metric starts from; default 1/|gradient|
	KeepMetric    bool           // do not adapt the metric
	MaxRank       int            // vectors of a LowRank metric at most; default the dimension
	// Pooled learns one metric and one step size from all chains. Set it with 16 chains and more: trees then cost the
	// same on average, and batches are full to the end.
	Pooled bool
	// Of dual averaging; defaults 0.2, 10 and 0.75. For HMC Gamma is 0.05, as in Stan.
	Gamma, T0, Kappa float64
	// Warmup is the number of updates that adapt, in loops of one's own; default 1000, and none with a StepSize and no
	// Metric. infer.None is none. In [infer.Sample] the Warmup of the options counts.
	Warmup int
}

// HMC is Hamiltonian Monte Carlo with trajectories of a given length (Duane et al. 1987; Neal 2011). An update is one
// trajectory of each chain. One leapfrog step is MALA, the Metropolis-adjusted Langevin algorithm. [kernel.HMC] has the
// equations. The zero value of a field is its default.
type HMC struct {
	Steps    int     // leapfrog steps; default 16; 1 is MALA. Not used when Length is given
	Length   float64 // integration time: the steps are Length/ε rounded up, at most MaxSteps
	MaxSteps int     // default 1000; with Length only
	// Jitter j draws the number of steps uniformly over (1 ± j) times its value; from 0 to 1. It breaks the resonance of
	// fixed lengths with periodic orbits. Default 1 where neither Steps nor Length is set, else 0.
	Jitter float64
	// Persistence keeps a part of the momentum (Horowitz 1991); from 0 (the default, drawn afresh) to less than 1.
	Persistence float64
	// Lower and Upper bound the target to a box of unconstrained space; nil is no bound, else one number for each
	// dimension, infinite ones allowed.
	Lower, Upper []float64
	// Bounce lets trajectories bounce from the walls of the box (Neal 2011, section 5.5.1.5), where they are refused when
	// they end outside otherwise. It is needed where there are many walls; with a Unit or Diagonal metric only.
	Bounce    bool
	MaxDeltaH float64 // energy error above which a trajectory counts as divergent; default 1000

	// TargetAccept is the mean acceptance to which the step size adapts; default 0.8, and 0.574 with one step.
	TargetAccept float64
	StepSize     infer.Schedule // as for NUTS, like all that follows
	Temperature  infer.Schedule

	// Metric and what follows are as for NUTS.
	Metric             kernel.MetricKind
	InitialMetric      *kernel.Metric
	KeepMetric, Pooled bool
	MaxRank            int
	Gamma, T0, Kappa   float64
	Warmup             int
}

// Detail is what a run tells besides its draws: metrics, step sizes, gradients, batches and swaps. It is the Detail of
// an [infer.Result].
type Detail = kernel.Result

// Build checks the configuration and binds it to a target.
func (c NUTS) Build(target infer.Target) (infer.Transform, error) { return c.config().build(target) }

// Build checks the configuration and binds it to a target.
func (c HMC) Build(target infer.Target) (infer.Transform, error) { return c.config().build(target) }

// Defaults are 4 chains of 1000 draws after 1000 transitions.
func (NUTS) Defaults() infer.Options { return defaults }

// Defaults are 4 chains of 1000 draws after 1000 transitions.
func (HMC) Defaults() infer.Options { return defaults }

var defaults = infer.Options{Chains: 4, Warmup: 1000, Draws: 1000, Thin: 1}

// config is what the methods have in common.
type config struct {
	name                  string
	options               kernel.Options
	stepSize, temperature infer.Schedule
	warmup                int
	path                  *path.Path // of replica exchange; nil for temperatures
}

func (c NUTS) config() config {
	return config{"hmc.NUTS", kernel.Options{
		Kernel: kernel.NUTS{MaxDepth: c.MaxDepth, MaxDeltaH: c.MaxDeltaH}, TargetAccept: c.TargetAccept, Metric: c.Metric,
		InitialMetric: c.InitialMetric, KeepMetric: c.KeepMetric, MaxRank: c.MaxRank, Pooled: c.Pooled,
		Gamma: c.Gamma, T0: c.T0, Kappa: c.Kappa,
	}, c.StepSize, c.Temperature, c.Warmup, nil}
}

func (c HMC) config() config {
	return config{"hmc.HMC", kernel.Options{
		Kernel: kernel.HMC{
			Steps: c.Steps, Length: c.Length, MaxSteps: c.MaxSteps, Jitter: c.Jitter, Persistence: c.Persistence,
			Lower: c.Lower, Upper: c.Upper, Bounce: c.Bounce, MaxDeltaH: c.MaxDeltaH,
		},
		TargetAccept: c.TargetAccept, Metric: c.Metric, InitialMetric: c.InitialMetric, KeepMetric: c.KeepMetric,
		MaxRank: c.MaxRank, Pooled: c.Pooled, Gamma: c.Gamma, T0: c.T0, Kappa: c.Kappa,
	}, c.StepSize, c.Temperature, c.Warmup, nil}
}

func (c config) build(target infer.Target) (infer.Transform, error) {
	gradients, err := newGradients(target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if c.stepSize != nil {
		c.options.KeepStep = true
		if c.warmup == 0 && c.options.Metric == "" {
			c.warmup = infer.None
		}
		if c.stepSize, err = method.CheckSchedule(c.name, "StepSize", c.stepSize, nil, 0, true); err != nil {
			return nil, err
		}
	}
	if c.temperature != nil {
		if c.temperature, err = method.CheckSchedule(c.name, "Temperature", c.temperature, nil, 0, true); err != nil {
			return nil, err
		}
	}
	o := c.options
	o.Warmup = c.warmup
	if err := o.Check(0); err != nil {
		return nil, c.error(err)
	}
	return &transform{config: c, gradients: gradients, base: target}, nil
}

// error is an error of the kernel in the words of the method: what the kernel calls wrong is an error
// of package infer too.
func (c config) error(err error) error {
	if err == nil {
		return nil
	}
	var field *kernel.FieldError
	var panicked *kernel.PanicError
	var as error
	switch {
	case errors.As(err, &field) && field.Field == "Resume":
		return fmt.Errorf("%s: the snapshot does not fit: %s: %w", c.name, field.Allowed, infer.ErrCheckpoint)
	case field != nil:
		own := &infer.FieldError{Type: c.name, Field: field.Field, Value: field.Value, Allowed: field.Allowed}
		switch field.Field {
		case "Chains", "Draws", "Thin":
			own.Type = "infer.Options"
		case "SwapEvery":
			own.Field = "Every"
		default:
			first, _, _ := strings.Cut(own.Field, "[")
			if _, its := reflect.TypeFor[Exchange]().FieldByName(first); c.options.Ladder != nil && !its {
				own.Field = "Kernel." + own.Field
			}
		}
		return own
	case errors.As(err, &panicked):
		as = &infer.PanicError{In: panicked.In, Value: panicked.Value, Stack: panicked.Stack}
	case errors.Is(err, kernel.ErrNonFinite):
		as = infer.ErrNonFinite
	}
	if inner := errors.Unwrap(err); inner != nil && as == nil {
		return fmt.Errorf("%s: %w", c.name, inner)
	} else if inner != nil {
		return fmt.Errorf("%s: %w", c.name, also{inner, as})
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

// also is an error that is another one as well.
type also struct {
	error
	as error
}

func (a also) Unwrap() []error { return []error{a.error, a.as} }
