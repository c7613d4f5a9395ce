package ppl

import (
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/sugarme/gotch/ts"
)

// Run runs the model once inside the caller's torch.Do, and shows its sites to handlers, the innermost last: what
// methods of inference outside of this package are made of. It may run mapped over points.
//
// Latent variables and params that values names have their values there, also before handlers see them. A plate with a
// latent variable inside takes as many of its data as the value has: the rest of a subsampled plate is not there. What
// has no value is drawn from the source, params start; without a source it is a mistake. A mistake is a panic with a
// typed error, which torch.Do returns.
func (m Model) Run(batch infer.Batch, source *dist.Source, values Values, handlers ...Handler) {
	if slices.Contains(handlers, nil) {
		panic(&SiteError{Message: "a handler is nil"})
	}
	run(m, &execution{batch: batch, source: source, values: values}, handlers)
}

// Model is the model as it was compiled: discrete variables that Compile sums out are summed out.
func (p *Program) Model() Model { return p.model }

// Counts says whether the site is a term of the log density.
func (s *Site) Counts() bool { return s.counts() }

// LogProbs is the log density of each repetition, of the shape of the site's batch, without Scale and Jacobian. A mask
// has made it 0 where it does not count.
func (s *Site) LogProbs() *ts.Tensor { return s.elementwise() }

// given is the value that the run knows for a site, nil where it knows none.
func (e *execution) given(s *Site) *ts.Tensor {
	if s.Observed || s.Kind != KindSample && s.Kind != KindParam {
		return nil
	}
	return e.values[s.Name]
}

// Prior says whether the site is a term of the prior: a latent variable, or a sum over discrete ones without data.
func (s *Site) Prior() bool {
	return s.counts() && (!s.Observed || s.summed != nil && s.summed.prior)
}
