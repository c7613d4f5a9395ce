package laplace

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// climb is how many updates a run makes to find the mode. A chain that is there stays there.
const climb = 1000

// defaults are the options of a run of all methods.
func defaults() infer.Options { return infer.Options{Warmup: climb, Draws: 1000} }

// FindMode is what a run climbs first, and with what: the log density at temperature T on unconstrained space.
func (o *options) FindMode() (infer.Method, infer.Target) {
	t, err := o.at(1)
	if err != nil {
		t = 1 // an update will say it
	}
	return o.optimizer, infer.Target{LogPosterior: o.target.Density(t / o.target.N()), Data: o.target.Data}
}

// Passes is how often a fit goes over the data: once.
func (o *options) Passes() int { return 1 }

// far is how many standard deviations of the Gaussian the mode may be from its mean before a run says so.
const far = 0.3

// Notes are what a run says of its Gaussians: how far their means are from modes, and whether they are one mode.
func (o *options) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := posteriorOf("Notes", state)
	if err != nil {
		return nil
	}
	var notes []draws.Note
	err = torch.Do(func(scope *torch.Scope) error {
		unit := max(s.Temperature, math.SmallestNonzeroFloat64)
		if s.Temperature == 0 {
			unit = 1
		}
		slope := column(s.Params, s.Gradient)
		step := s.structure().solve(s, slope)
		away, err := torch.ToSlice[float64](torch.Of(slope.Mul(step).T().MustSumDimIntlist([]int64{1, 2}, false,
			slope.T().DType(),
			false)))
		if err != nil {
			return err
		}
		worst, count := 0, 0
		for i, v := range away {
			if math.Sqrt(v/unit) > far {
				count++
			}
			if v > away[worst] {
				worst = i
			}
		}
		if count > 0 {
			notes = append(notes, draws.Note{Kind: "not_at_a_mode", Serious: true,
				Text: fmt.Sprintf(
					"The point of %d of %d chains is no mode: by its gradient that of chain %d is %.3g standard deviations away.",
					count, s.Params.Chains(), worst, math.Sqrt(away[worst]/unit)),
				Advice: fmt.Sprintf("Increase infer.Options.Warmup, the updates that look for the mode, or set "+
					"%s{Optimizer: optim.Adam{LR: ...}}, which minibatches need; %d updates of optim.LBFGS are the default.",
					o.name, climb)})
			return nil
		}
		if notes = append(notes, o.modes(scope, s, run, unit)...); len(notes) == 0 {
			notes = o.closeness(s, run)
		}
		return nil
	})
	if err != nil {
		notes = append(notes, draws.Note{Kind: "indefinite", Serious: true,
			Text:   fmt.Sprintf("The precision cannot be used: %v.", err),
			Advice: "Increase infer.Options.Warmup to end nearer to a mode, or set Damping."})
	}
	return notes
}

// closeness compares Gaussians at modes with the posterior.
func (o *options) closeness(s Gaussian, run infer.RunSummary) []draws.Note {
	if !o.given {
		return nil // there is no density but the likelihood
	}
	return approx.Closeness(approx.Fit{Name: o.name, Target: o.target, Temperature: s.Temperature, Batch: run.Batch,
		Mean: s.Params, Width: s.Params.Layout.Dim(),
		Map: func(eps torch.Tensor) (deviations, logq torch.Tensor, err error) {
			logDet := make([]float64, s.Params.Chains()) // of P^(-1/2)
			for k := range logDet {
				one := s.of(k)
				one.Temperature = 1
				logDet[k] = -one.structure().logDet(one) / 2
			}
			return s.deviations(eps), approx.Standard(eps, logDet), nil
		},
		Advice: "a Gaussian at the mode misses skewness: use vi.Dense, which is centred at the mean, or hmc.NUTS."})
}

// modes compares the chains' points, in standard deviations of the first chain's Gaussian.
func (o *options) modes(scope *torch.Scope, s Gaussian, run infer.RunSummary, unit float64) []draws.Note {
	p := s.Params
	if p.Chains() < 2 {
		return nil
	}
	first := s.of(0).bayes()
	quadratic := first.structure().quadratic(first, scope)
	farthest, most := 0, 0.0
	for k := 1; k < p.Chains(); k++ {
		away := math.Sqrt(max(approx.Item(quadratic(approx.Point(p, k).Flat.Sub(first.Params.Flat)))/unit, 0))
		if away > most {
			farthest, most = k, away
		}
	}
	if most < 1 {
		return nil
	}
	text := fmt.Sprintf(
		"The chains found different modes: that of chain %d is %.3g standard deviations from that of chain 0", farthest, most)
	if lp := run.Info.LogPosterior; len(lp) == p.Chains() {
		text += fmt.Sprintf(", and its log density differs by %+.3g", (lp[farthest]-lp[0])*o.target.N()/unit)
	}
	return []draws.Note{{Kind: "different_modes", Serious: true, Text: text + ".",
		Advice: "The draws are a mixture in equal parts: look at the chains one by one, " +
			"choose the chain of the highest density, or use hmc.NUTS."}}
}
