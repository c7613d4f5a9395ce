package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// HiddenMarkov is a series of numbers whose mean and spread depend on a hidden state, a Markov chain over S states that
// starts in each with probability 1/S:
//
//	transition_s ~ Dirichlet(Concentration, …), loc ~ N(LocMean, LocScale²) in increasing order,
//	scale_s ~ LogNormal(0, SpreadScale²)
//	state_1 ~ Uniform(1, …, S), state_t ~ Categorical(transition_{state_{t−1}}), y_t ~ N(loc_{state_t}, scale_{state_t}²)
//
// The latent variables are "transition", of shape [S, S], a row for each state to come from, "loc", [S], and "scale",
// [S]; the order keeps the labels of the states from switching. The states are summed out by the forward algorithm
// (Rabiner 1989, Proceedings of the IEEE 77, 257–286, section III), with logarithms:
//
//	a_1(s) = log N(y_1; loc_s, scale_s²) − log S
//	a_t(s) = log N(y_t; loc_s, scale_s²) + log Σ_r exp(a_{t−1}(r)) transition_{rs},  log p(y) = log Σ_s exp(a_T(s))
//
// in four tensor operations for each t. The batch has "y", [T], in its order; the series is one datum, so that there
// are no minibatches, and the temperature of the Bayes posterior is 1.
//
// There may be several modes: one for each way to share the numbers among the states.
type HiddenMarkov struct {
	Y             []float64 // T numbers, one after the other
	States        int       // S, at least 2
	LocMean       float64   // mean of the prior of loc
	LocScale      float64   // its standard deviation; 0 means 5
	SpreadScale   float64   // standard deviation of log scale; 0 means 1
	Concentration float64   // of the rows of the transition matrix; 0 means 1, all rows equally likely
}

// Build checks the data and scales; an error names the field.
func (c HiddenMarkov) Build() (Model, error) {
	f := &fields{config: "models.HiddenMarkov"}
	y := f.vector("Y", c.Y, -1, finite, "finite")
	f.atLeast("States", c.States, 2)
	if !finite(c.LocMean) {
		f.fail("LocMean", c.LocMean, "it must be finite")
	}
	locs := f.scale("LocScale", c.LocScale, 5)
	spreads := f.scale("SpreadScale", c.SpreadScale, 1)
	concentration := f.scale("Concentration", c.Concentration, 1)
	if f.err != nil {
		return Model{}, f.err
	}
	states := c.States
	prior := f.repeated(concentration, states, states)
	return f.model("hidden_markov", func(m *ppl.Ctx) {
		transition := m.Sample("transition", dist.Dirichlet(prior))
		loc := m.Sample("loc", OrderedNormal(c.LocMean, locs, c.States))
		scale := m.Sample("scale", dist.LogNormal(0, spreads).Expand(states))
		emission := dist.Normal(loc, scale).LogProb(m.Data("y").Unsqueeze(-1))
		m.Factor("y", forward(transition.Log(), emission, len(c.Y)))
	}, infer.Batch{"y": y})
}

// forward is log p(y) of a hidden Markov chain that starts in each state equally likely, from the logarithms of its
// transition matrix, of shape [S, S], and of the densities of the numbers in each state, [T, S].
func forward(transition, emission torch.Tensor, times int) torch.Tensor {
	states := transition.Shape()[0]
	a := emission.At(0)
	for t := 1; t < times; t++ {
		a = a.Unsqueeze(-1).Add(transition).LogSumExp(0).Add(emission.At(t))
	}
	return a.LogSumExp(0).Sub(math.Log(float64(states)))
}

// SimulateHMM draws data for [HiddenMarkov] with two states from the random stream (seed, 0): the same numbers
// each time. The means are −1 and 2, both standard deviations 0.7, and the chain stays in its state with
// probability 0.9 and 0.8.
func SimulateHMM(times int, seed uint64) (HiddenMarkov, error) {
	f := &fields{config: "models.SimulateHMM"}
	f.atLeast("times", times, 1)
	if f.err != nil {
		return HiddenMarkov{}, f.err
	}
	c := HiddenMarkov{States: 2}
	err := torch.Do(func(*torch.Scope) error {
		source := torch.NewSource(seed, 0)
		z, err := source.Normal([]int{times}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		u, err := source.Uniform([]int{times}, gotch.Double, torch.CPU)
		if err != nil {
			return err
		}
		if c.Y, err = torch.ToSlice[float64](z); err != nil {
			return err
		}
		uniform, err := torch.ToSlice[float64](u)
		stay, state := []float64{0.9, 0.8}, 0
		for t := range uniform {
			if t == 0 && uniform[0] < 0.5 || t > 0 && uniform[t] >= stay[state] {
				state = 1 - state
			}
			c.Y[t] = []float64{-1, 2}[state] + 0.7*c.Y[t]
		}
		return err
	})
	return c, err
}

// HMMSimulated is [HiddenMarkov] of 40 numbers that SimulateHMM draws with seed 1.
func HMMSimulated() (Model, error) {
	c, err := SimulateHMM(40, 1)
	if err != nil {
		return Model{}, err
	}
	m, err := c.Build()
	return named("hidden_markov", m, err)
}
