package infer

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Subspace restricts a log posterior to some of the sites and holds the others at their values in full, a single point.
// It returns the log posterior of those sites, the point to start from, and a function that puts a point of the
// subspace ([m], or [K, m] for K chains) back into the whole space. Last-layer and low-rank inference are subspaces.
func Subspace(logPosterior LogPosterior, full Params, sites ...string) (LogPosterior, Params,
	func(Params) (Params, error), error) {
	fail := func(err error) (LogPosterior, Params, func(Params) (Params, error), error) {
		return nil, Params{}, nil, fmt.Errorf("infer.Subspace: %w", err)
	}
	if logPosterior == nil {
		return fail(fmt.Errorf("the log posterior is nil: %w", ErrConfig))
	}
	if rows, err := full.rows(); err != nil {
		return fail(err)
	} else if rows > 0 {
		return fail(fmt.Errorf("the full params have %d chains, expected a single point: %w", rows, ErrLayout))
	}
	shapes := Shapes{}
	for _, name := range sites {
		site, ok := full.Layout.Site(name)
		if !ok {
			return fail(&ModelError{Name: name, What: "site", Have: full.Layout.Names()})
		}
		shapes[name] = site.Shape
	}
	layout, err := NewLayout(shapes)
	if err != nil {
		return fail(err)
	}
	fixed, err := torch.ToSlice[float64](full.Flat)
	if err != nil {
		return fail(err)
	}
	var start []float64
	for _, s := range layout.Sites {
		at, _ := full.Layout.Site(s.Name)
		start = append(start, fixed[at.Offset:at.Offset+at.Size]...)
	}
	p, err := NewParams(layout, start)
	if err != nil {
		return fail(err)
	}
	device, err := torch.DeviceOf(full.Flat)
	if err != nil {
		return fail(err)
	}
	dtype, err := torch.DTypeOfTensor(full.Flat)
	if err != nil {
		return fail(err)
	}
	if p, err = p.To(device, dtype); err != nil {
		return fail(err)
	}
	held, err := heldParts(full, layout)
	if err != nil {
		return fail(err)
	}

	// whole puts a subspace point into the full vector: the sites of the full layout in their order.
	whole := func(sub Params) (Params, error) {
		rows, err := sub.rows()
		if err != nil {
			return Params{}, err
		}
		if !sub.Layout.Equal(layout) {
			return Params{}, fmt.Errorf("infer.Subspace: params with layout %v, expected %v: %w", sub.Layout, layout, ErrLayout)
		}
		parts := make([]torch.Tensor, len(full.Layout.Sites))
		for i, site := range full.Layout.Sites {
			if at, ok := layout.Site(site.Name); ok {
				parts[i], err = raw.Of(sub.Flat.T().Narrow(-1, int64(at.Offset), int64(at.Size), false))
			} else if parts[i] = held[site.Name]; rows > 0 {
				parts[i], err = raw.Of(parts[i].T().Expand([]int64{int64(rows), int64(site.Size)}, true, false))
			}
			if err != nil {
				return Params{}, err
			}
		}
		flat, err := raw.Of(ts.Cat(raw.Pointers(parts), -1))
		return Params{Layout: full.Layout, Flat: flat}, err
	}
	restricted := func(sub Params, b Batch) (torch.Tensor, Aux) { return logPosterior(torch.Must(whole(sub)), b) }
	embed := func(sub Params) (out Params, err error) {
		err = torch.Do(func(s *torch.Scope) error {
			out, err = whole(sub)
			s.Keep(out.Flat)
			return err
		})
		return out, err
	}
	return restricted, p, embed, nil
}

// heldParts are the flat values of the sites outside the subspace, each as a tensor of its own.
func heldParts(full Params, sub *Layout) (map[string]torch.Tensor, error) {
	held := map[string]torch.Tensor{}
	err := torch.Do(func(s *torch.Scope) error {
		for _, site := range full.Layout.Sites {
			if _, ok := sub.Site(site.Name); ok {
				continue
			}
			view, err := full.Flat.T().Narrow(0, int64(site.Offset), int64(site.Size), false)
			if err != nil {
				return err
			}
			copied, err := torch.Combine(torch.Term{Coeff: 1, Tensor: torch.Of(view)})
			if err != nil {
				return err
			}
			if held[site.Name], err = raw.Of(copied.T().Detach(false)); err != nil {
				return err
			}
			s.Keep(held[site.Name])
		}
		return nil
	})
	for _, t := range held {
		torch.Detach(t)
	}
	return held, err
}

// Except lists the names of a layout except the given ones: what a subspace leaves out.
func (l *Layout) Except(names ...string) []string {
	return slices.DeleteFunc(l.Names(), func(n string) bool { return slices.Contains(names, n) })
}
