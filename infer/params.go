package infer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Params is a point θ: a flat tensor of shape [d], or [K, d] for K chains, and the layout that names its parts.
type Params struct {
	Layout *Layout      // the names and shapes of the sites
	Flat   torch.Tensor // the values, of shape [d] or [K, d]

	// External is what Go code computed for this point; see the type [External]. Nil for nothing.
	External Tensors

	cut   *cut // by Split, or of a point whose sites are tensors of their own
	alone bool
	tied  bool // parts without a gradient get one of zeros
}

// cut are the parts of a flat vector, one for each site of a layout.
type cut struct {
	of    torch.Tensor
	by    *Layout
	parts []torch.Tensor
}

// Alone reports that this is one point that libtorch evaluates as it is: it is not one of several in a vmap, and
// nothing is recorded. What is shortest may differ.
func (p Params) Alone() bool { return p.alone }

// NewParams makes a point from its flat values, in the layout's order: d numbers for one chain, K·d for K chains.
// The tensor is float64 and lives in main memory; [Params.To] moves it.
func NewParams(l *Layout, flat []float64) (Params, error) {
	d := l.Dim()
	if d == 0 || len(flat) == 0 || len(flat)%d != 0 {
		return Params{}, fmt.Errorf("infer.NewParams: %d values for the layout %v, which has %d: %w", len(flat), l, d,
			ErrLayout)
	}
	shape := []int{d}
	if k := len(flat) / d; k > 1 {
		shape = []int{k, d}
	}
	t, err := torch.FromSlice(flat, shape...)
	return Params{Layout: l, Flat: t}, err
}

// Zeros is the point 0 of a layout.
func Zeros(l *Layout) (Params, error) { return NewParams(l, make([]float64, l.Dim())) }

// FromTensors makes a point, and its layout, from named tensors of one type on one device.
func FromTensors(values map[string]torch.Tensor) (Params, error) {
	shapes := Shapes{}
	for name, t := range values {
		shape, err := torch.Shape(t)
		if err != nil {
			return Params{}, fmt.Errorf("infer.FromTensors: site %q: %w", name, err)
		}
		shapes[name] = shape
	}
	l, err := NewLayout(shapes)
	if err != nil {
		return Params{}, err
	}
	p := Params{Layout: l}
	err = torch.Do(func(s *torch.Scope) error {
		parts := make([]torch.Tensor, len(l.Sites))
		for i, site := range l.Sites {
			// libtorch would convert them all to the widest type without a word.
			if dtype, first := values[site.Name].T().DType(), values[l.Sites[0].Name].T().DType(); dtype != first {
				return fmt.Errorf("infer.FromTensors: site %q is %v and site %q is %v: they must be of one type: %w",
					site.Name, dtype, l.Sites[0].Name, first, ErrLayout)
			}
			if parts[i], err = raw.Of(values[site.Name].T().Reshape([]int64{-1}, false)); err != nil {
				return err
			}
		}
		if p.Flat, err = raw.Of(ts.Cat(raw.Pointers(parts), 0)); err != nil {
			return err
		}
		p.Flat, err = raw.Of(p.Flat.T().Detach(false))
		s.Keep(p.Flat)
		return err
	})
	return p, err
}

// Get is the value of a site, in its shape; with K chains there is a leading dimension of K. Gradients flow through it.
// It may be a view, which is not to be written to. It is meant for use inside a model: an unknown name, or a layout
// that does not fit, panics with an error that the caller of the model returns.
func (p Params) Get(name string) torch.Tensor {
	batched := torch.Must(p.rows())
	site, ok := p.Layout.Site(name)
	if !ok {
		panic(&ModelError{Name: name, What: "site", Have: p.Layout.Names()})
	}
	shape := site.Shape
	if part := p.part(site); part != (torch.Tensor{}) {
		if len(shape) == 1 {
			return part
		}
		return torch.Of(torch.Must(part.T().Reshape(torch.Int64s(shape), false)))
	}
	if batched > 0 {
		shape = append([]int{batched}, shape...)
	} else if site.Size == p.Layout.Dim() && len(shape) == 1 {
		return torch.Of(torch.Must(p.Flat.T().ShallowClone()))
	}
	view := torch.Must(p.Flat.T().Narrow(-1, int64(site.Offset), int64(site.Size), false))
	if len(site.Shape) == 1 {
		return torch.Of(view)
	}
	return torch.Of(torch.Must(view.Reshape(torch.Int64s(shape), false)))
}

// Split is the same point, of shape [d], with its sites cut apart at once. The gradient of a model then takes one pass
// over the flat vector for all of [Params.Get]; without it each site takes one. Methods split the points that they hand
// to a log posterior; models need not.
func (p Params) Split() (Params, error) {
	if p.Layout == nil || len(p.Layout.Sites) < 2 || p.Parts() != nil {
		return p, nil
	}
	if rows, err := p.rows(); err != nil {
		return p, err
	} else if rows > 0 {
		return p, fmt.Errorf("infer: Split of params with %d chains, expected a single point: %w", rows, ErrLayout)
	}
	sizes := make([]int, len(p.Layout.Sites))
	for i, s := range p.Layout.Sites {
		sizes[i] = s.Size
	}
	parts, err := p.Flat.T().SplitWithSizes(torch.Int64s(sizes), 0)
	if err != nil {
		return p, err
	}
	p.cut = &cut{p.Flat, p.Layout, raw.All(parts)}
	return p, nil
}

// Join is a point whose sites are the parts, each of shape [size], in the order of the layout. What reads the flat
// vector itself sees flat, which has the same numbers.
func (l *Layout) Join(flat torch.Tensor, parts []torch.Tensor) Params {
	return Params{Layout: l, Flat: flat, cut: &cut{flat, l, parts}}
}

// Parts are the sites of a point that was split or joined, as vectors in the order of its layout; nil of any other, and
// where its tensor or layout was replaced.
func (p Params) Parts() []torch.Tensor {
	if p.cut == nil || p.cut.of != p.Flat || p.cut.by != p.Layout || slices.ContainsFunc(p.cut.parts, torch.Freed) {
		return nil
	}
	return p.cut.parts
}

// part is a site's part of the flat vector when it is split, else nil.
func (p Params) part(site Site) torch.Tensor {
	if p.cut == nil || p.cut.of != p.Flat || p.cut.by != p.Layout {
		return torch.Tensor{}
	}
	i, ok := slices.BinarySearchFunc(p.Layout.Sites, site.Name,
		func(s Site, n string) int { return strings.Compare(s.Name, n) })
	if !ok || torch.Freed(p.cut.parts[i]) {
		return torch.Tensor{}
	}
	return p.cut.parts[i]
}

// rows is K for a flat tensor of shape [K, d] and 0 for [d].
func (p Params) rows() (int, error) {
	if p.Layout == nil {
		return 0, fmt.Errorf("the params have no layout: %w", ErrLayout)
	}
	shape, err := torch.Shape(p.Flat)
	if err != nil {
		return 0, err
	}
	d := p.Layout.Dim()
	switch {
	case len(shape) == 1 && shape[0] == d:
		return 0, nil
	case len(shape) == 2 && shape[1] == d && shape[0] > 0:
		return shape[0], nil
	}
	return 0, fmt.Errorf("params of shape %v for the layout %v: expected [%d], or [K, %d] for K chains: %w", shape,
		p.Layout, d, d, ErrLayout)
}

// Check returns an error unless the flat tensor is of shape [d] or [K, d] and every element is finite.
func (p Params) Check() error {
	if _, err := p.rows(); err != nil {
		return err
	}
	values, err := torch.ToSlice[float64](p.Flat)
	if err != nil {
		return err
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			d := p.Layout.Dim()
			return fmt.Errorf("%s of chain %d is %v at the start: %w", p.Layout.At(i%d), i/d, v, ErrNonFinite)
		}
	}
	return nil
}

// Chains is K, or 1 for a single point.
func (p Params) Chains() int {
	k, err := p.rows()
	if err != nil || k == 0 {
		return 1
	}
	return k
}

// Batched says whether there is a chain axis.
func (p Params) Batched() bool {
	k, err := p.rows()
	return err == nil && k > 0
}

// Repeat returns a point of K chains that all start at p, which must be a single point.
func (p Params) Repeat(k int) (Params, error) {
	rows, err := p.rows()
	if err != nil {
		return Params{}, err
	}
	if rows > 0 || k < 1 {
		return Params{}, fmt.Errorf("infer: cannot repeat params with %d chains %d times: %w", p.Chains(), k, ErrLayout)
	}
	return p.with(raw.Of(p.Flat.T().Repeat([]int64{int64(k), 1}, false)))
}

// copy returns the point with a tensor of its own.
func (p Params) copy() (Params, error) {
	return p.with(torch.Combine(torch.Term{Coeff: 1, Tensor: p.Flat}))
}

// To returns the point on a device and with a type.
func (p Params) To(device gotch.Device, dtype gotch.DType) (Params, error) {
	return p.with(torch.To(p.Flat, device, dtype))
}

// Values copies the flat values: d numbers, or K·d.
func (p Params) Values() ([]float64, error) { return torch.ToSlice[float64](p.Flat) }

// Site copies the values of one site, of all chains one after the other.
func (p Params) Site(name string) ([]float64, error) {
	if _, err := p.rows(); err != nil {
		return nil, err
	}
	site, ok := p.Layout.Site(name)
	if !ok {
		return nil, &ModelError{Name: name, What: "site", Have: p.Layout.Names()}
	}
	flat, err := p.Values()
	if err != nil {
		return nil, err
	}
	var out []float64
	for rest := flat; len(rest) > 0; rest = rest[p.Layout.Dim():] {
		out = append(out, rest[site.Offset:site.Offset+site.Size]...)
	}
	return slices.Clip(out), nil
}

func (p Params) with(flat torch.Tensor, err error) (Params, error) {
	return Params{Layout: p.Layout, Flat: flat}, err
}
