package gibbs

import (
	"fmt"
	"maps"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// space is what [Discrete] asks of the program behind a target: *ppl.Program, and a block of it.
type space interface {
	Layout() *infer.Layout
	Discrete() []string
	Ends(site string) (low, high float64, ok bool)
	Dims(site string) []string
	Terms(p infer.Params, b infer.Batch, see func(s *ppl.Site, logp *ts.Tensor, scale float64))
}

// view is a block of a target: its sites, with those of the other blocks as data. The batch has the whole point.
type view struct {
	of     any // what the target has as its program
	layout *infer.Layout
	whole  *infer.Layout
	key    string // of the whole point in batches
}

// newView is the block of some sites of a target.
func newView(target infer.Target, whole *infer.Layout, sites []string) (*view, error) {
	shapes := infer.Shapes{}
	for _, s := range sites {
		site, _ := whole.Site(s)
		shapes[s] = site.Shape
	}
	depth := 0
	for v, ok := target.Program.(*view); ok; v, ok = v.of.(*view) {
		depth++
	}
	layout, err := infer.NewLayout(shapes)
	return &view{of: target.Program, layout: layout, whole: whole, key: fmt.Sprintf("gibbs %d", depth)}, err
}

// with is the batch for an update where the whole point is x.
func (v *view) with(b infer.Batch, x *ts.Tensor) infer.Batch {
	out := make(infer.Batch, len(b)+1)
	maps.Copy(out, b)
	out[v.key] = x
	return out
}

// point is the whole point with the block at p, and the batch of the target.
func (v *view) point(p infer.Params, b infer.Batch) (infer.Params, infer.Batch) {
	x := b.Get(v.key).T()
	parts := make([]*ts.Tensor, len(v.whole.Sites))
	for i, s := range v.whole.Sites {
		if _, ok := v.layout.Site(s.Name); ok {
			parts[i] = p.Get(s.Name).Reshape(-1).T()
		} else {
			parts[i] = torch.Must(x.Narrow(0, int64(s.Offset), int64(s.Size), false))
		}
	}
	out := make(infer.Batch, len(b))
	maps.Copy(out, b)
	delete(out, v.key)
	all := v.whole.Join(torch.Must(ts.Cat(parts, 0)), parts)
	all.External = p.External
	return all, out
}

// target is the conditional density of the block: that of all, with the other sites as data.
func (v *view) target(all infer.Target) infer.Target {
	own := func(f infer.LogPosterior) infer.LogPosterior {
		if f == nil {
			return nil
		}
		return func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
			value, aux := f(v.point(p, b))
			return zero(p).Add(value), aux
		}
	}
	t := all
	t.LogPosterior, t.LogJacobian = own(all.LogPosterior), own(all.LogJacobian)
	t.Prior, t.Program = nil, v
	if parts := all.Parts; parts != nil {
		t.Parts = func(p infer.Params, b infer.Batch, w infer.Weights) (torch.Tensor, infer.Aux) {
			return own(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) { return parts(p, b, w) })(p, b)
		}
	}
	return t
}

// zero is 0 with a gradient of zeros, for densities that do not depend on the point.
func zero(p infer.Params) torch.Tensor { return torch.Of(p.Flat).Mul(0).Sum() }

// Layout is that of the block's sites.
func (v *view) Layout() *infer.Layout { return v.layout }

// Discrete are the names of its discrete sites.
func (v *view) Discrete() (names []string) {
	if s, ok := v.of.(space); ok {
		for _, n := range s.Discrete() {
			if _, own := v.layout.Site(n); own {
				names = append(names, n)
			}
		}
	}
	return names
}

// Ends are those of a discrete site.
func (v *view) Ends(site string) (low, high float64, ok bool) {
	if s, is := v.of.(space); is {
		return s.Ends(site)
	}
	return 0, 0, false
}

// Dims are the plates of a site.
func (v *view) Dims(site string) []string {
	if s, ok := v.of.(space); ok {
		return s.Dims(site)
	}
	return nil
}

// Terms shows the terms of the log density of all sites.
func (v *view) Terms(p infer.Params, b infer.Batch, see func(s *ppl.Site, logp *ts.Tensor, scale float64)) {
	if s, ok := v.of.(space); ok {
		p, b = v.point(p, b)
		s.Terms(p, b, see)
	}
}
