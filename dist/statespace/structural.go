package statespace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// The parts of a structural time series (Harvey 1989, Forecasting, Structural Time Series Models and the Kalman
// Filter, chapter 2; Durbin and Koopman 2012, chapter 3). All fields that are not whole numbers are numbers or
// tensors of shape [], so that they may be latent variables.

// LocalLevel is a random walk: its state is the level.
//
//	level_1 ~ N(Mean, Spread²),  level_{t+1} = level_t + Scale e_t
type LocalLevel struct {
	Scale  any // standard deviation of a step
	Mean   any // of the first level; nil is 0
	Spread any // standard deviation of the first level; nil is 1
	// Diffuse gives the first level a flat prior: Mean and Spread then change rounding alone; see System.
	Diffuse bool
}

// System is the level as a system of one state.
func (c LocalLevel) System() System {
	one := torch.Of(1).Expand(1, 1)
	return System{
		Design: torch.Of(1).Expand(1), Transition: one,
		Noise: scale("LocalLevel.Scale", c.Scale, 0).Expand(1, 1), Mean: scalar("LocalLevel.Mean", c.Mean, 0).Expand(1),
		Spread: scale("LocalLevel.Spread", c.Spread, 1).Expand(1, 1), Diffuse: flat(c.Diffuse, 1),
	}
}

// LocalTrend is a level with a slope that wanders too: its states are level and slope. With LevelScale 0 it is smooth,
// and with SlopeScale 0 a random walk with a drift.
//
//	level_1 ~ N(Mean, Spread²),  level_{t+1} = level_t + slope_t + LevelScale e_t
//	slope_1 ~ N(SlopeMean, SlopeSpread²),  slope_{t+1} = slope_t + SlopeScale e'_t
type LocalTrend struct {
	LevelScale, SlopeScale any  // standard deviations of a step; nil is 0
	Mean, Spread           any  // of the first level; nil is 0, and 1
	SlopeMean, SlopeSpread any  // of the first slope; nil is 0, and 1
	Diffuse                bool // a flat prior of both, as in LocalLevel
}

// System is the trend as a system of two states.
func (c LocalTrend) System() System {
	return System{
		Design:     torch.New([]float64{1, 0}, 2),
		Transition: torch.New([]float64{1, 1, 0, 1}, 2, 2),
		Noise: diag(scale("LocalTrend.LevelScale", c.LevelScale, 0),
			scale("LocalTrend.SlopeScale", c.SlopeScale, 0)),
		Mean: torch.Stack(0, scalar("LocalTrend.Mean", c.Mean, 0),
			scalar("LocalTrend.SlopeMean", c.SlopeMean, 0)),
		Spread:  diag(scale("LocalTrend.Spread", c.Spread, 1), scale("LocalTrend.SlopeSpread", c.SlopeSpread, 1)),
		Diffuse: flat(c.Diffuse, 2),
	}
}

// Seasonal is a pattern that repeats itself, whose numbers over a period have the sum 0, but for a step of standard
// deviation Scale at each time (the form with dummy variables):
//
//	season_{t+1} = −season_t − … − season_{t−Period+2} + Scale e_t
//
// Its Period − 1 states are the season at a time and the Period − 2 before it, which at the first time are independent
// of mean 0 and of standard deviation Spread.
type Seasonal struct {
	Period  int  // at least 2
	Scale   any  // nil is 0: the pattern stays
	Spread  any  // nil is 1
	Diffuse bool // a flat prior of the first states, as in LocalLevel
}

// System is the seasons as a system of Period − 1 states.
func (c Seasonal) System() System {
	if c.Period < 2 || c.Period > mostStates {
		fail("Seasonal.Period", fmt.Sprint(c.Period), "it must be at least 2, and at most %d", mostStates)
	}
	m := c.Period - 1
	transition := make([]float64, m*m)
	for i := range m {
		transition[i] = -1
		if i > 0 {
			transition[i*m+i-1] = 1
		}
	}
	return System{
		Design: unit(m), Transition: torch.New(transition, m, m),
		Noise:  unit(m).Mul(scale("Seasonal.Scale", c.Scale, 0)).Unsqueeze(-1),
		Spread: eye(m).Mul(scale("Seasonal.Spread", c.Spread, 1)), Diffuse: flat(c.Diffuse, m),
	}
}

// Trigonometric is a pattern that repeats itself as the sum of waves of the frequencies 2πj/Period, j = 1, …,
// Harmonics. Each wave turns from time to time and takes steps of standard deviation Scale in both of its states:
//
//	wave_{t+1}  =  cos(2πj/Period) wave_t + sin(2πj/Period) other_t + Scale e_t
//	other_{t+1} = −sin(2πj/Period) wave_t + cos(2πj/Period) other_t + Scale e'_t
//
// The states are wave and other of each frequency. A frequency of half a turn has the wave alone.
type Trigonometric struct {
	Period    float64 // of at least 2 steps; need not be a whole number
	Harmonics int     // at most Period/2; 0 is all
	Scale     any     // nil is 0: the pattern stays
	Spread    any     // standard deviation of the first states, whose mean is 0; nil is 1
	Diffuse   bool    // a flat prior of the first states, as in LocalLevel
}

// System is the waves as a system.
func (c Trigonometric) System() System {
	if !(c.Period >= 2 && c.Period <= largest) {
		fail("Trigonometric.Period", fmt.Sprint(c.Period), "it must be finite and at least 2")
	}
	most := int(math.Min(c.Period/2, mostStates/2))
	if c.Harmonics < 0 || c.Harmonics > most {
		fail("Trigonometric.Harmonics", fmt.Sprint(c.Harmonics),
			"it must be from 1 to %d, half of the period, or 0 for all", most)
	}
	if c.Harmonics == 0 {
		c.Harmonics = most
	}
	m := 2 * c.Harmonics
	if float64(m) == c.Period {
		m-- // half a turn: the other state would never be seen
	}
	transition, design := make([]float64, m*m), make([]float64, m)
	for j := range c.Harmonics {
		sin, cos := math.Sincos(2 * math.Pi * float64(j+1) / c.Period)
		i := 2 * j
		design[i] = 1
		if i == m-1 {
			transition[i*m+i] = -1
			break
		}
		transition[i*m+i], transition[i*m+i+1] = cos, sin
		transition[(i+1)*m+i], transition[(i+1)*m+i+1] = -sin, cos
	}
	return System{
		Design: torch.New(design, m), Transition: torch.New(transition, m, m),
		Noise:  eye(m).Mul(scale("Trigonometric.Scale", c.Scale, 0)),
		Spread: eye(m).Mul(scale("Trigonometric.Spread", c.Spread, 1)), Diffuse: flat(c.Diffuse, m),
	}
}

// mostStates keeps the matrices of a long period from filling the memory.
const mostStates = 2048

// unit is the first unit vector.
func unit(m int) torch.Tensor {
	x := make([]float64, m)
	x[0] = 1
	return torch.New(x, m)
}

// flat is the Diffuse of m states.
func flat(diffuse bool, m int) torch.Tensor {
	if !diffuse {
		return torch.Tensor{}
	}
	return eye(m)
}

// eye is the identity matrix.
func eye(m int) torch.Tensor {
	x := make([]float64, m*m)
	for i := range m {
		x[i*m+i] = 1
	}
	return torch.New(x, m, m)
}

// diag is the diagonal matrix of numbers of shape [].
func diag(x ...torch.Tensor) torch.Tensor {
	return eye(len(x)).Mul(torch.Stack(0, anys(x)...))
}
