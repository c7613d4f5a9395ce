// Package weights goes between files of weights and points of networks: it loads and saves safetensors files by the
// names of sites, and adapts networks whose weights stay as they are (LoRA). To train some of the sites that it loads,
// hold the others by infer.Subspace.
package weights

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn/safetensors"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Names goes between the names of sites and of tensors. The zero value gives tensors the names of the sites.
type Names struct {
	// Tensor is the tensor of a site, "" for none; nil means the site's name.
	Tensor func(site string) string
	// Others lets Load pass over tensors that no site has.
	Others bool
}

// of is the tensor of a site.
func (n Names) of(site string) string {
	if n.Tensor == nil {
		return site
	}
	return n.Tensor(site)
}

// Load puts the tensors of a safetensors file into a copy of a point, in float64 and in main memory: each site that has
// a tensor gets its elements, the others stay as they are. The shapes must agree. Its sites that have no name of a
// tensor, and how many there may be, are the caller's choice; a site whose tensor is missing is an error, and so is a
// tensor for which there is no site, unless names.Others. Errors name the file, the tensor and what was expected.
func Load(path string, p infer.Params, names Names) (infer.Params, error) {
	fail := func(err error) (infer.Params, error) { return infer.Params{}, fmt.Errorf("weights.Load: %w", err) }
	if p.Layout == nil || p.Flat == (torch.Tensor{}) || p.Batched() {
		return fail(fmt.Errorf("a single point with a layout is needed: %w", infer.ErrLayout))
	}
	flat, err := torch.ToSlice[float64](p.Flat)
	if err != nil {
		return fail(err)
	}
	if len(flat) != p.Layout.Dim() {
		return fail(fmt.Errorf("the point has %d numbers and its layout %d: %w", len(flat), p.Layout.Dim(),
			infer.ErrLayout))
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = f.Close() }()
	left := map[string]safetensors.Tensor{}
	for _, t := range f.Tensors() {
		left[t.Name] = t
	}
	wrong := func(tensor, reason string, args ...any) (infer.Params, error) {
		return fail(&safetensors.Error{File: path, Tensor: tensor, Reason: fmt.Sprintf(reason, args...)})
	}
	taken := map[string]string{}
	for _, site := range p.Layout.Sites {
		name := names.of(site.Name)
		if name == "" {
			continue
		}
		if other, twice := taken[name]; twice {
			return wrong(name, "it is the tensor of the sites %q and %q: expected one site", other, site.Name)
		}
		t, ok := left[name]
		if !ok {
			return wrong(name, "it is not in the file, and site %q has shape %v; the file has %q", site.Name,
				site.Shape,
				slices.Sorted(maps.Keys(left)))
		}
		if !slices.Equal(t.Shape, site.Shape) {
			return wrong(name, "its shape is %v: expected %v, that of site %q", t.Shape, site.Shape, site.Name)
		}
		v, err := f.Values(name)
		if err != nil {
			return fail(err)
		}
		copy(flat[site.Offset:], v)
		taken[name] = site.Name
		delete(left, name)
	}
	if len(left) > 0 && !names.Others {
		rest := slices.Sorted(maps.Keys(left))
		return wrong(rest[0], "no site has it: expected tensors of the sites %q alone, or Names.Others",
			p.Layout.Names())
	}
	out, err := infer.NewParams(p.Layout, flat)
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// Save writes the sites of a point that have a name as tensors of a safetensors file, in the point's type, F64 or F32.
func Save(path string, p infer.Params, names Names, metadata map[string]string) error {
	if p.Layout == nil || p.Flat == (torch.Tensor{}) || p.Batched() {
		return fmt.Errorf("weights.Save: a single point with a layout is needed: %w", infer.ErrLayout)
	}
	dtype, err := torch.DTypeOfTensor(p.Flat)
	if err != nil {
		return fmt.Errorf("weights.Save: %w", err)
	}
	known := map[string]string{"Double": "F64", "Float": "F32"}[dtype.String()]
	if known == "" {
		return fmt.Errorf("weights.Save: the point is %v: expected Double or Float: %w", dtype, infer.ErrConfig)
	}
	flat, err := torch.ToSlice[float64](p.Flat)
	if err != nil {
		return fmt.Errorf("weights.Save: %w", err)
	}
	if len(flat) != p.Layout.Dim() {
		return fmt.Errorf("weights.Save: the point has %d numbers and its layout %d: %w", len(flat), p.Layout.Dim(),
			infer.ErrLayout)
	}
	var tensors []safetensors.Tensor
	values := map[string][]float64{}
	for _, site := range p.Layout.Sites {
		name := names.of(site.Name)
		if name == "" {
			continue
		}
		tensors = append(tensors, safetensors.Tensor{Name: name, DType: known, Shape: site.Shape})
		values[name] = flat[site.Offset : site.Offset+site.Size]
	}
	if err := safetensors.Write(path, tensors, values, metadata); err != nil {
		return fmt.Errorf("weights.Save: %w", err)
	}
	return nil
}
