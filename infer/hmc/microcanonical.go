package hmc

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
)

// MAMS is the Metropolis-adjusted microcanonical sampler (Robnik, Cohn-Gordon and Seljak 2025): without bias. An update
// is one trajectory of each chain, of a random number of steps, each of two gradients. The warm-up adapts the step size
// to the acceptance, the metric as NUTS does, and the length of the trajectories to the autocorrelation of the draws.
// [kernel.Microcanonical] has the equations; the Detail of a result is a [Detail]. The target must have two
// dimensions or more. The zero value of a field is its default.
type MAMS struct {
	Length       float64 // mean length of a trajectory, where the metric is the identity; 0 adapts it, from √d
	MaxSteps     int     // of a trajectory; default 1000
	MaxDeltaH    float64 // energy error above which a trajectory counts as divergent; default 1000
	TargetAccept float64 // mean acceptance to which the step size adapts; default 0.9

	StepSize    infer.Schedule // ε at each update; nil adapts it in the warm-up
	Temperature infer.Schedule // T at each update; default 1. It must be positive

	Metric        kernel.MetricKind // Unit, Diagonal, Dense or LowRank; as for NUTS
	InitialMetric *kernel.Metric    // what the metric starts from
	KeepMetric    bool              // do not adapt the metric
	Pooled        bool              // one metric and one step size of all chains
	Warmup        int               // updates that adapt, in loops of one's own; default 1000; infer.None is none
}

// MCLMC is microcanonical Langevin Monte Carlo (Robnik, De Luca, Silverstein and Seljak 2023): nothing is refused, so
// that its draws have a bias that falls with Variance. An update is a walk of time Length, with a partial refreshment
// of the velocity after each step of two gradients. The statistic "accept" is not an acceptance: 1/2 where the energy
// error has the variance that is aimed at, nearer to 1 where it is smaller. The other fields are those of [MAMS].
type MCLMC struct {
	// Variance is that of the energy error of a step for each dimension, to which the step size adapts; default 5e-4.
	Variance  float64
	Length    float64 // over which the velocity is forgotten, where the metric is the identity; 0 adapts it, from √d
	MaxSteps  int     // of an update; default 1000
	MaxDeltaH float64 // energy error above which an update counts as divergent; default 1000

	// StepSize and what follows are as for MAMS.
	StepSize    infer.Schedule
	Temperature infer.Schedule

	// Metric and what follows are as for MAMS.
	Metric        kernel.MetricKind
	InitialMetric *kernel.Metric
	KeepMetric    bool
	Pooled        bool
	Warmup        int
}

// Build checks the configuration and binds it to a target.
func (c MAMS) Build(target infer.Target) (infer.Transform, error) {
	return config{"hmc.MAMS", kernel.Options{
		Kernel: kernel.Microcanonical{Length: c.Length, MaxSteps: c.MaxSteps, MaxDeltaH: c.MaxDeltaH},
		Metric: c.Metric, InitialMetric: c.InitialMetric, KeepMetric: c.KeepMetric, Pooled: c.Pooled,
		TargetAccept: c.TargetAccept,
	}, c.StepSize, c.Temperature, c.Warmup, nil}.build(target)
}

// Build checks the configuration and binds it to a target.
func (c MCLMC) Build(target infer.Target) (infer.Transform, error) {
	return config{"hmc.MCLMC", kernel.Options{
		Kernel: kernel.Microcanonical{Unadjusted: true, Variance: c.Variance, Length: c.Length, MaxSteps: c.MaxSteps,
			MaxDeltaH: c.MaxDeltaH},
		Metric: c.Metric, InitialMetric: c.InitialMetric, KeepMetric: c.KeepMetric, Pooled: c.Pooled,
	}, c.StepSize, c.Temperature, c.Warmup, nil}.build(target)
}

// Defaults are 4 chains of 1000 draws after 1000 updates.
func (MAMS) Defaults() infer.Options { return defaults }

// Defaults are 4 chains of 1000 draws after 1000 updates.
func (MCLMC) Defaults() infer.Options { return defaults }
