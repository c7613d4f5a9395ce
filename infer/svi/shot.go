package svi

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/rows"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// trace is the handler that keeps the sites of a run.
type trace struct {
	scored map[string]bool // variables whose draws are taken out of the graph
	sites  []*ppl.Site
	byName map[string]*ppl.Site
}

func newTrace(scored map[string]bool) *trace {
	return &trace{scored: scored, byName: map[string]*ppl.Site{}}
}

func (*trace) Process(*ppl.Site) {}

func (t *trace) Finish(s *ppl.Site) {
	if s.Kind == ppl.KindData {
		return
	}
	if t.byName[s.Name] != nil {
		fail(s.Name, "there are two sites of that name; names must differ within a run")
	}
	if t.scored[s.Name] && s.Value != (torch.Tensor{}) {
		s.Value = torch.Of(s.Value.T().MustDetach(false))
	}
	t.byName[s.Name] = s
	t.sites = append(t.sites, s)
}

// weights are what the parts of ℓ count: the prior, and the guide.
type weights struct{ prior, guide float64 }

// shot is one draw of the guide, and what the model says of it.
type shot struct {
	plan         *plan
	guide, model *trace
}

// shoot runs guide and model at φ, a single point.
func (p *plan) shoot(phi infer.Params, batch infer.Batch, source *torch.Source) shot {
	s := shot{plan: p, guide: newTrace(p.scored), model: newTrace(nil)}
	values := p.values(phi)
	p.guide.Run(batch, source, values, s.guide)
	for _, site := range s.guide.sites {
		if given(site) {
			values[site.Name] = site.Value
		}
	}
	p.model.Run(batch, nil, values, s.model)
	p.resize(s.guide)
	p.resize(s.model)
	p.checkValues(s.model, batch)
	return s
}

// resize gives plates the size that they had when the model was compiled. One of size 0 takes that of each minibatch.
func (p *plan) resize(t *trace) {
	for _, s := range t.sites {
		for i, plate := range s.Plates {
			if want, ok := p.sizes[plate.Name]; ok && plate.Size > 0 && plate.Size != want {
				s.Scale *= float64(want) / float64(plate.Size)
				s.Plates[i].Size = want
			}
		}
	}
}

// checkValues makes sure that an observed variable outside plates has as many values as in the batch that the model was
// compiled on, as ppl.Compile does: without a plate each value of a minibatch counts once, and the posterior would be
// that of a few data. So it is with a factor there that adds up over rows, and with variables that a loop over the rows
// of the batch declares.
func (p *plan) checkValues(model *trace, batch infer.Batch) {
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if model.byName[name] == nil {
			fail(name, "it was there when the model was compiled and is not in this run: %s", rows.Loops)
		}
	}
	for _, s := range model.sites {
		if s.Scale == 1 {
			p.checkTotal(s, batch)
		}
		for _, q := range s.Plates {
			if !s.Observed || q.Used == 0 || q.Used == q.Size || p.part != "" {
				continue
			}
			if wrong := rows.Differences(p.rows, batch, q.Name, q.Used, q.Size); wrong != "" {
				fail(s.Name, "%s", wrong)
			}
		}
		want, ok := p.outside[s.Name]
		if !ok || s.Scale != 1 {
			continue
		}
		if n := size(s.Value.Shape()); n != want {
			fail(s.Name, "it is in no plate, and has %d values where it had %d when the model was compiled: observe it in "+
				"c.Plate(name, 0, ...), so that a minibatch counts for all data", n, want)
		}
	}
}

// draw is one draw of the guide. The model runs only where a support depends on other variables: many draws of a model
// of many data would take much memory.
func (p *plan) draw(phi infer.Params, batch infer.Batch, source *torch.Source) shot {
	for _, l := range p.latents {
		if l.moving {
			return p.shoot(phi, batch, source)
		}
	}
	s := shot{plan: p, guide: newTrace(p.scored)}
	p.guide.Run(batch, source, p.values(phi), s.guide)
	s.model = s.guide
	return s
}

// values are the params at φ.
func (p *plan) values(phi infer.Params) ppl.Values {
	phi = torch.Must(phi.Split())
	out := ppl.Values{}
	for name, q := range p.params {
		out[name] = q.bijector.Forward(phi.Get(name))
	}
	return out
}

// term is a part of ℓ: the log density of each repetition of a site, times its scale.
type term struct {
	value  torch.Tensor
	scale  float64
	plates []ppl.Plate
}

// terms are the parts of ℓ. With closed, the two parts of a variable are one where the divergence has a closed form.
func (s shot) terms(w weights, closed bool) (out []term) {
	done := map[string]bool{}
	add := func(site *ppl.Site, scale float64) {
		if site.Counts() && scale != 0 && !done[site.Name] {
			out = append(out, term{site.LogProbs(), scale * site.Scale, site.Plates})
		}
	}
	if closed {
		inOrder := s.inOrder()
		for _, p := range s.model.sites {
			q := s.guide.byName[p.Name]
			if !inOrder[p.Name] || q.Kind != ppl.KindSample || p.Observed || p.Mask != (torch.Tensor{}) ||
				q.Mask != (torch.Tensor{}) || p.Scale != q.Scale || !p.Counts() || !q.Counts() {
				continue
			}
			if value, ok := expectation(q.Dist, p.Dist, s.weightsOf(p, w)); ok {
				done[p.Name] = true
				out = append(out, term{value, p.Scale, p.Plates})
			}
		}
	}
	for _, site := range s.model.sites {
		add(site, s.weightsOf(site, w).prior)
	}
	for _, site := range s.guide.sites {
		add(site, -w.guide)
	}
	return out
}

// weightsOf are the weights of a site of the model: what is in the likelihood counts once.
func (s shot) weightsOf(site *ppl.Site, w weights) weights {
	if s.plan.likelihood(site) {
		w.prior = 1
	}
	return w
}

// inOrder are the latent variables that the guide draws after all those that the model has before them. The divergence
// of another has no closed form: its prior given a variable that depends on it is no function of the variables before.
func (s shot) inOrder() map[string]bool {
	place := map[string]int{}
	for i, site := range s.guide.sites {
		place[site.Name] = i
	}
	out, last := map[string]bool{}, -1
	for _, p := range s.model.sites {
		if i, drawn := place[p.Name]; drawn && p.Kind == ppl.KindSample {
			out[p.Name] = i > last
			last = max(last, i)
		}
	}
	return out
}

// logDensity is log p(y, z).
func (s shot) logDensity() torch.Tensor {
	var out []term
	for _, site := range s.model.sites {
		if site.Counts() {
			out = append(out, term{site.LogProbs(), site.Scale, site.Plates})
		}
	}
	return total(out)
}

// total is the sum of terms, of shape [].
func total(terms []term) torch.Tensor {
	var sum torch.Tensor
	for _, t := range terms {
		v := t.value
		if v.T().Dim() > 0 {
			v = torch.Of(v.T().MustSum(v.T().DType(), false))
		}
		if t.scale != 1 {
			v = torch.Of(v.T().MustMulScalar(ts.FloatScalar(t.scale), false))
		}
		if sum == (torch.Tensor{}) {
			sum = v
		} else {
			sum = sum.Add(v)
		}
	}
	if sum == (torch.Tensor{}) {
		return torch.Scalar(0)
	}
	return sum
}

// score is what the score-function gradient of a variable needs: its log density, and the terms that may depend on it,
// added up, both of the shape of its plates.
type score struct{ logq, cost torch.Tensor }

// scores are those of the variables whose draws have no gradient, in the order of the guide.
func (s shot) scores(terms []term) (out []score) {
	for _, site := range s.guide.sites {
		if !s.plan.scored[site.Name] || !site.Counts() {
			continue
		}
		own := term{site.LogProbs(), 1, site.Plates}
		var cost torch.Tensor
		for _, t := range terms {
			v := t.along(site.Plates)
			if t.scale != 1 {
				v = torch.Of(v.T().MustMulScalar(ts.FloatScalar(t.scale), false))
			}
			if cost == (torch.Tensor{}) {
				cost = v
			} else {
				cost = cost.Add(v)
			}
		}
		logq := own.along(site.Plates)
		out = append(out, score{logq, torch.Of(flush(cost, logq.T().Dim()).T().MustDetach(false))})
	}
	return out
}

// along is the term summed over all dimensions but those of the plates that it shares with others. They keep their
// places, counted from the end.
func (t term) along(plates []ppl.Plate) torch.Tensor {
	shape := t.value.Shape()
	var over []int
	for d := -1; d >= -len(shape); d-- {
		if !shares(t.plates, plates, d) {
			over = append(over, d)
		}
	}
	if len(over) == 0 {
		return t.value
	}
	return torch.Of(t.value.T().MustSumDimIntlist(torch.Int64s(over), true, t.value.T().DType(), false))
}

// flush gives a tensor a number of dimensions: those in front that it has beyond it, or lacks, are 1.
func flush(x torch.Tensor, dims uint64) torch.Tensor {
	shape := x.Shape()
	if uint64(len(shape)) == dims {
		return x
	}
	want := make([]int, dims)
	for i := range want {
		want[i] = 1
		if at := len(shape) - int(dims) + i; at >= 0 {
			want[i] = shape[at]
		}
	}
	return x.Reshape(want...)
}

// shares says whether both have the same plate at a dimension.
func shares(a, b []ppl.Plate, dim int) bool {
	for _, p := range a {
		for _, q := range b {
			if p.Dim == dim && q.Dim == dim && p.Name == q.Name {
				return true
			}
		}
	}
	return false
}

// point is the draw on the unconstrained space of a layout, in flat pieces, one for each site, in float64. The pieces
// of discrete variables are their values.
func (s shot) point(layout *infer.Layout, phi infer.Params) (out []torch.Tensor) {
	for _, site := range layout.Sites {
		var x torch.Tensor
		switch q := s.plan.params[site.Name]; {
		case q != nil:
			x = phi.Get(site.Name)
		default:
			found := s.model.byName[site.Name]
			if found == nil || found.Value == (torch.Tensor{}) {
				fail(site.Name, "it is not in this run; declare the same sites in every run")
			}
			x = s.plan.latents[site.Name].unconstrained(found)
		}
		x = torch.Of(x.T().MustDetach(false).MustTotype(gotch.Double, false))
		if have := x.Shape(); size(have) != site.Size {
			hint := ""
			if found := s.model.byName[site.Name]; found != nil && len(found.Plates) > 0 {
				hint = fmt.Sprintf("; a run with minibatches needs a program that svi.Compile made of a part of the data, of a "+
					"model with c.Plate(%q, N, f, ppl.Minibatch), N the number of all data", found.Plates[0].Name)
			}
			fail(site.Name, "its value has shape %v on unconstrained space in this run, and had shape %v at first%s", have,
				site.Shape, hint)
		}
		out = append(out, x.Reshape(site.Size))
	}
	return out
}
