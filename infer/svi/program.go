package svi

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist/bijector"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Program is a model with its guide, for [SVI] alone: what [Compile] makes. Its draws have the latent variables and
// Params of the model, discrete ones too. Variables in a plate of which the batch has a part are not among them: they
// are those of single data, and come from guide and Params (see [State.Params]).
type Program struct {
	plan   *plan
	batch  infer.Batch
	layout *infer.Layout
}

// Compile runs guide and model on a batch, and compares their variables: an error names those that only one of the two
// has. It is for models that ppl.Compile refuses: with discrete variables that cannot be summed out, or with variables
// inside a plate of which the batch is a part.
//
// In such a plate the guide's draws tell how many data are at hand: a guide that reads its batch gives as many values,
// and density and guide count size/n times.
func Compile(model, guide ppl.Model, batch infer.Batch) (*Program, error) {
	plan, err := survey(model, guide, batch)
	if err != nil {
		return nil, fmt.Errorf("svi.Compile: %w", err)
	}
	p := &Program{plan: plan, batch: batch}
	shapes := infer.Shapes{}
	for site, l := range plan.latents {
		if !l.local && !slices.Contains(l.free, 0) {
			shapes[site] = l.free
		}
	}
	for site, q := range plan.params {
		if q.model {
			shapes[site] = q.free
		}
	}
	if len(shapes) == 0 {
		return nil, fmt.Errorf("svi.Compile: all variables are in the plate %q, of which the batch has a part, and the "+
			"model has no Param: nothing is left to draw; compile on all of the data: %w", plan.part, infer.ErrConfig)
	}
	if p.layout, err = infer.NewLayout(shapes); err != nil {
		return nil, fmt.Errorf("svi.Compile: %w", err)
	}
	return p, nil
}

// Target is what [SVI] is built for. It has no density: another method needs a model that ppl.Compile takes.
func (p *Program) Target() infer.Target {
	return infer.Target{Data: max(p.plan.data, 1), Program: p,
		LogPosterior: func(infer.Params, infer.Batch) (torch.Tensor, infer.Aux) {
			panic(&ppl.SiteError{Message: "a program of svi.Compile is for svi.SVI alone: " +
				"another method needs a program of ppl.Compile"})
		}}
}

// Layout is that of the draws: the latent variables and Params of the model on unconstrained space, discrete ones as
// they are.
func (p *Program) Layout() *infer.Layout { return p.layout }

// Batch is the batch that the program was compiled on.
func (p *Program) Batch() infer.Batch { return p.batch }

// Start is 0 for variables, and where the Params of the model start.
func (p *Program) Start(_ infer.Batch, chains int, _ uint64) (infer.Params, error) {
	if chains < 1 || chains > maxChains {
		return infer.Params{}, fmt.Errorf("svi.Program: Start of %d chains: there must be from 1 to %d: %w", chains,
			maxChains, infer.ErrConfig)
	}
	row := make([]float64, p.layout.Dim())
	for _, site := range p.layout.Sites {
		if q := p.plan.params[site.Name]; q != nil {
			copy(row[site.Offset:], q.start)
		}
	}
	var flat []float64
	for range chains {
		flat = append(flat, row...)
	}
	return infer.NewParams(p.layout, flat)
}

// maxChains is the most chains that a run has.
const maxChains = 1 << 20

// CheckFull returns an error if the batch is a part of the data, by the sizes of the model's plates. A plate of size 0
// has the size that it had when the model was compiled.
func (p *Program) CheckFull(batch infer.Batch) error {
	plan, err := look(p.plan.model, p.plan.guide, batch)
	if err != nil {
		return fmt.Errorf("svi.CheckFull: %w", err)
	}
	if plan.part != "" {
		return fmt.Errorf("svi.CheckFull: %w: %w", &other{plan.part, plan.short.Used, plan.short.Size}, infer.ErrConfig)
	}
	for plate, size := range plan.sizes {
		if want, ok := p.plan.sizes[plate]; ok && want != size {
			return fmt.Errorf("svi.CheckFull: %w: %w", &other{plate, size, want}, infer.ErrConfig)
		}
	}
	return nil
}

// other is a batch with another number of data than the program counts.
type other struct {
	plate      string
	used, size int
}

func (o *other) Error() string {
	return fmt.Sprintf("the batch has %d data of plate %q, and the program counts %d", o.used, o.plate, o.size)
}

// Part is for package infer, which says so in its own words.
func (o *other) Part() (plate string, used, size int) { return o.plate, o.used, o.size }

// Draws maps draws on unconstrained space to the variables and Params of the model, and to its deterministic values
// where no variable is left out.
func (p *Program) Draws(unconstrained *draws.Draws, batch infer.Batch) (*draws.Draws, error) {
	if unconstrained == nil || unconstrained.Total() == 0 {
		return nil, fmt.Errorf("svi.Draws: there are no draws: %w", draws.ErrNoDraws)
	}
	if unconstrained.Space() == draws.Named {
		return nil, fmt.Errorf("svi.Draws: the draws are named values, constrained already: give those on "+
			"unconstrained space, Unconstrained of an infer.Result: %w", draws.ErrLayout)
	}
	var out *draws.Draws
	for chain := range unconstrained.Chains() {
		n := unconstrained.Len(chain)
		for from := 0; from < n; from += constrainRows {
			if err := p.block(unconstrained, batch, chain, from, min(from+constrainRows, n), &out); err != nil {
				return nil, fmt.Errorf("svi.Draws: %w", err)
			}
		}
	}
	out.SetSpace(draws.Named)
	return out, nil
}

// constrainRows is how many draws are mapped at once.
const constrainRows = 1024

// block maps the draws from to to of a chain, and appends them.
func (p *Program) block(in *draws.Draws, batch infer.Batch, chain, from, to int, out **draws.Draws) error {
	return torch.Do(func(*torch.Scope) error {
		var flat []float64
		for i := from; i < to; i++ {
			flat = append(flat, in.Row(chain, i)[:in.Dim()]...)
		}
		rows, err := torch.FromSlice(flat, to-from, in.Dim())
		if err != nil {
			return err
		}
		var names []string
		values, err := torch.Vmap(func(x []torch.Tensor) (all []torch.Tensor, err error) {
			names, all = p.constrain(infer.Params{Layout: p.layout, Flat: x[0]}, batch)
			return all, nil
		}, []torch.Tensor{rows}, nil)
		if err != nil {
			return err
		}
		return appendRows(out, in, names, values, chain, to-from)
	})
}

// constrain gives a point the values of the model's variables.
func (p *Program) constrain(x infer.Params, batch infer.Batch) (names []string, values []torch.Tensor) {
	add := func(s *ppl.Site) { names, values = append(names, s.Name), append(values, s.Value) }
	local := false
	for _, l := range p.plan.latents {
		local = local || l.local
	}
	if !local {
		t := newTrace(nil)
		p.plan.model.Run(batch, nil, nil, t, placer{p, x})
		for _, s := range t.sites {
			if s.Kind == ppl.KindDeterministic || s.Kind == ppl.KindParam || s.Kind == ppl.KindSample && !s.Observed {
				add(s)
			}
		}
		return names, values
	}
	for _, site := range p.layout.Sites { // the model does not run without the variables that are left out
		v := x.Get(site.Name)
		switch q, l := p.plan.params[site.Name], p.plan.latents[site.Name]; {
		case q != nil:
			v = q.bijector.Forward(v)
		case l.moving:
			fail(site.Name, "its support depends on other variables, and the model does not run without those of single data: "+
				"draws of it need all of the data in the batch")
		case !l.discrete:
			v = l.bijector.Forward(v)
		}
		add(&ppl.Site{Name: site.Name, Value: v})
	}
	return names, values
}

// placer gives the variables and Params of the model their values at a point.
type placer struct {
	*Program
	x infer.Params
}

func (h placer) Process(s *ppl.Site) {
	if s.Observed || s.Value != (torch.Tensor{}) || s.Kind != ppl.KindSample && s.Kind != ppl.KindParam {
		return
	}
	q, l := h.plan.params[s.Name], h.plan.latents[s.Name]
	if _, ok := h.layout.Site(s.Name); !ok && l != nil { // it has one value only
		s.Value = l.at(s).Forward(torch.Of(ts.MustZeros(torch.Int64s(l.free), h.x.Flat.T().DType(),
			torch.Must(torch.DeviceOf(h.x.Flat)))))
		return
	}
	v := h.x.Get(s.Name)
	switch {
	case q != nil:
		v = q.bijector.Forward(v)
	case l != nil && !l.discrete:
		v = l.at(s).Forward(v)
	}
	s.Value = v
}

func (placer) Finish(*ppl.Site) {}

// at is the map to the support of a site.
func (l *latent) at(s *ppl.Site) bijector.Bijector {
	if l.moving {
		return torch.Must(bijector.For(s.Dist.Support()))
	}
	return l.bijector
}

// appendRows appends n draws of named values to a chain.
func appendRows(out **draws.Draws, in *draws.Draws, names []string, values []torch.Tensor, chain, n int) error {
	columns := map[string][]float64{}
	shapes := infer.Shapes{}
	for i, v := range values {
		var err error
		if columns[names[i]], err = torch.ToSlice[float64](v); err != nil {
			return err
		}
		shapes[names[i]] = v.Shape()[1:]
	}
	if *out == nil {
		layout, err := infer.NewLayout(shapes)
		if err != nil {
			return err
		}
		if *out, err = draws.New(layout.Sites, nil, in.Chains()); err != nil {
			return err
		}
	}
	row := make([]float64, (*out).Dim())
	for i := range n {
		for _, s := range (*out).Sites() {
			copy(row[s.Offset:s.Offset+s.Size], columns[s.Name][i*s.Size:])
		}
		if err := (*out).AppendChain(chain, row, nil); err != nil {
			return err
		}
	}
	return nil
}
