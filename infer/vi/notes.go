package vi

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/torch"
)

// far is what to do about a fit that is far from the posterior, for each family.
var far = map[string]string{
	"diag": "compare with hmc.NUTS; vi.Dense has correlations, and a hierarchical model is nearer to a normal " +
		"distribution in its non-centred form.",
	"dense": "compare with hmc.NUTS; a hierarchical model is nearer to a normal distribution in its non-centred form.",
	"low_rank": "compare with hmc.NUTS; vi.Dense has all correlations, and a hierarchical model is nearer to a normal " +
		"distribution in its non-centred form.",
}

// Notes are what a run says of its fit: whether the ELBO has settled, whether the chains found the same optimum, and
// how near it is to the posterior.
func (t *fit) Notes(state infer.State, run infer.RunSummary) []draws.Note {
	s, err := t.own(state)
	if err != nil || s.trend == nil {
		return nil
	}
	updates, longer := approx.Decay, approx.LongerSteps(t.name)
	if t.natural {
		updates = naturalUpdates
		longer = fmt.Sprintf("Set vi.Dense.Samples to %d or more: steps are as long as there are samples for the "+
			"dimensions.", 4*t.count(s.Mean))
	}
	notes, gap := s.trend.Notes(t.name, updates, longer, s.Steps(), run.Info.Temperature)
	if len(notes) > 0 {
		return notes
	}
	if off, at := s.apart(); off > apartLimit {
		notes = append(notes, draws.Note{Kind: "fits_differ", Serious: off > 1,
			Text: fmt.Sprintf("The fits of the chains differ: their means of %s are %.2g standard deviations of the fits "+
				"apart, their ELBOs %.2g nats.", s.Mean.Layout.At(at), off, gap),
			Advice: fmt.Sprintf("%s: the posterior may have several modes, or the ELBO a flat ridge, and the draws take "+
				"each fit as equally likely: compare with hmc.NUTS.", t.name)})
	}
	return append(notes, t.closeness(s, run)...)
}

// apartLimit is how far the means of two chains may be from one another, in standard deviations of the fits. Ends of
// the default optimiser at one optimum are less than a tenth apart.
const apartLimit = 0.3

// apart is the largest distance between means of an element in two chains, in standard deviations of the fits (the root
// of their mean square), and the element.
func (s State) apart() (off float64, at int) {
	_ = torch.Do(func(*torch.Scope) error {
		means, variances := torch.Must(s.Mean.Values()), torch.Must(torch.ToSlice[float64](s.gaussian().variance()))
		k, d := s.Mean.Chains(), s.Mean.Layout.Dim()
		for j := range d {
			least, most, square := math.Inf(1), math.Inf(-1), 0.0
			for c := range k {
				least, most = min(least, means[c*d+j]), max(most, means[c*d+j])
				square += variances[c*d+j] / float64(k)
			}
			if v := (most - least) / math.Sqrt(square); v > off {
				off, at = v, j
			}
		}
		return nil
	})
	return off, at
}

// closeness compares a fit that has settled with the posterior.
func (t *fit) closeness(s State, run infer.RunSummary) []draws.Note {
	if t.klWeight(max(s.Steps()-1, 0)) != 1 {
		return nil // it is of another distribution
	}
	return approx.Closeness(approx.Fit{Name: t.name, Target: t.target, Temperature: run.Info.Temperature,
		Batch: run.Batch, Mean: s.Mean, Advice: far[t.family.name()],
		Width: t.family.noise(s.Mean.Layout.Dim()),
		Map: func(eps torch.Tensor) (deviations, logq torch.Tensor, err error) {
			q := s.gaussian()
			deviations = q.apply(eps)
			logq, _ = q.density(eps, deviations)
			return deviations, logq, nil
		}})
}
