package mcmc

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// points are those of the chains, as a tensor like the old one.
func points(old infer.Params, chains []*chain) (torch.Tensor, error) {
	var x []float64
	for _, c := range chains {
		x = append(x, c.X...)
	}
	shape, err := torch.Shape(old.Flat)
	if err != nil {
		return torch.Tensor{}, err
	}
	device, err := torch.DeviceOf(old.Flat)
	if err != nil {
		return torch.Tensor{}, err
	}
	return torch.FromSliceOn(device, old.Flat.T().DType(), x, shape...)
}

// copied are the chains with memory of their own.
func (s saved) copied() saved {
	out := saved{Step: s.Step}
	for _, c := range s.Chains {
		own := *c
		for _, v := range []*[]float64{&own.X, &own.G, &own.Width, &own.Root, &own.Mean, &own.Sum} {
			*v = slices.Clone(*v)
		}
		out.Chains = append(out.Chains, &own)
	}
	return out
}

// refused is the mean acceptance below which proposals are too far, or the chains too far apart.
const refused = 0.02

// Notes of a run say where the density was no number, and where nearly all proposals were refused.
func (t *transform) Notes(_ infer.State, run infer.RunSummary) (notes []draws.Note) {
	all := Detail{}
	for _, d := range run.Details {
		if one, ok := d.(*Detail); ok && one != nil {
			all.Evaluations += one.Evaluations
			if all.Undefined += one.Undefined; all.Where == nil {
				all.Where = one.Where
			}
		}
	}
	if all.Undefined > 0 {
		notes = append(notes, draws.Note{Kind: "undefined_density", Serious: all.Undefined*100 > all.Evaluations,
			Text: fmt.Sprintf("%d of %d values of the log density were NaN or +Inf, the first at %.4g: they count as points "+
				"outside of the support.", all.Undefined, all.Evaluations, all.Where),
			Advice: t.name + ": return -Inf where the support ends, and mend what is not a number inside."})
	}
	if run.Draws == nil || t.moves {
		return notes
	}
	sum, n := 0.0, 0.0
	for chain := range run.Draws.Chains() {
		trace, err := run.Draws.Stat(draws.StatAccept, chain)
		if err != nil {
			return notes
		}
		for _, v := range trace {
			sum, n = sum+v, n+1
		}
	}
	if n > 0 && sum/n < refused {
		advice := "give the run a longer warm-up, or use mcmc.Slice, which refuses nothing."
		if t.fewest != nil {
			advice = "in many dimensions ensembles stand still: use mcmc.Slice, or hmc.NUTS where there is a gradient."
		}
		notes = append(notes, draws.Note{Kind: "proposals_refused", Serious: sum/n < refused/4,
			Text:   fmt.Sprintf("Of all proposals %.2g %% were accepted.", 100*sum/n),
			Advice: t.name + ": " + advice})
	}
	return notes
}
