package gibbs

import (
	"maps"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// space is what [Discrete] asks of the program behind a target: *ppl.Program, and a block of it.
type space interface {
	Layout() *infer.Layout
	Discrete() []string
	Ends(site string) (low, high float64, ok bool)
	Dims(site string) []string
	Rows(p infer.Params, b infer.Batch, plate string, n int) torch.Tensor
}

// view is a block of a target: its sites, with those of the other blocks as data. The batch has the whole point.
type view struct {
	space  // of the target; nil for functions
	layout *infer.Layout
	whole  *infer.Layout
	at     []int  // the places of the block's numbers in the whole point
	key    string // of the whole point in batches
}

// newView is the block of some sites of a target.
func newView(target infer.Target, whole *infer.Layout, sites []string) (*view, error) {
	v := &view{whole: whole, key: "gibbs"}
	shapes := infer.Shapes{}
	for _, n := range sites {
		s, _ := whole.Site(n)
		shapes[n] = s.Shape
		for i := range s.Size {
			v.at = append(v.at, s.Offset+i)
		}
	}
	v.space, _ = target.Program.(space)
	if outer, ok := v.space.(*view); ok {
		if v.key = outer.key + "*"; outer.space == nil {
			v.space = nil
		}
	}
	var err error
	v.layout, err = infer.NewLayout(shapes)
	return v, err
}

// with is the batch for an update where the whole point is x.
func (v *view) with(b infer.Batch, x torch.Tensor) infer.Batch {
	out := infer.Batch{}
	maps.Copy(out, b)
	out[v.key] = x
	return out
}

// cut are the numbers of the block in a whole point.
func (v *view) cut(whole []float64) []float64 {
	x := make([]float64, len(v.at))
	for i, at := range v.at {
		x[i] = whole[at]
	}
	return x
}

// point is the whole point with the block at p, and the batch of the target.
func (v *view) point(p infer.Params, b infer.Batch) (infer.Params, infer.Batch) {
	x := b.Get(v.key).T()
	parts := make([]torch.Tensor, len(v.whole.Sites))
	for i, s := range v.whole.Sites {
		if _, ok := v.layout.Site(s.Name); ok {
			parts[i] = p.Get(s.Name).Reshape(-1)
		} else {
			parts[i] = torch.Of(torch.Must(x.Narrow(0, int64(s.Offset), int64(s.Size), false)))
		}
	}
	out := maps.Clone(b)
	delete(out, v.key)
	all := v.whole.Join(torch.Of(torch.Must(ts.Cat(raw.Pointers(parts), 0))), parts)
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
func zero(p infer.Params) torch.Tensor { return p.Flat.Mul(0).Sum() }

// Layout is that of the block's sites.
func (v *view) Layout() *infer.Layout { return v.layout }

// Discrete are the names of its discrete sites.
func (v *view) Discrete() (names []string) {
	for _, s := range v.layout.Sites {
		if v.space == nil {
			break
		}
		if _, _, ok := v.Ends(s.Name); ok {
			names = append(names, s.Name)
		}
	}
	return names
}

// Rows are those of the log density of all sites.
func (v *view) Rows(p infer.Params, b infer.Batch, plate string, n int) torch.Tensor {
	p, b = v.point(p, b)
	return v.space.Rows(p, b, plate, n)
}
