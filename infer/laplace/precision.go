package laplace

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/internal/approx"
	"github.com/kelvin-ppl/kelvin/infer/method"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Precision is the precision of a Gaussian prior: the inverse of its covariance. The zero value is a flat prior,
// precision 0.
type Precision struct {
	all    float64
	sites  map[string]float64
	given  torch.Tensor
	square bool  // given is a matrix
	err    error // of what it was made from
}

// Isotropic is the same precision λ = 1/σ² for each parameter.
func Isotropic(lambda float64) Precision { return Precision{all: lambda} }

// PerSite is one precision for each site; every site must be named.
func PerSite(lambda map[string]float64) Precision { return Precision{sites: lambda} }

// PerElement is one precision for each parameter: a tensor of shape [d], or [K, d] for K chains, in the layout's order.
func PerElement(lambda torch.Tensor) Precision { return givenAs("PerElement", lambda, false) }

// Matrix is a precision matrix, of shape [d, d], or [K, d, d] for K chains, for the dense methods.
func Matrix(precision torch.Tensor) Precision { return givenAs("Matrix", precision, true) }

func givenAs(what string, t torch.Tensor, square bool) Precision {
	if t == (torch.Tensor{}) {
		return Precision{err: fmt.Errorf("laplace.%s: the tensor is nil: %w", what, infer.ErrConfig)}
	}
	return Precision{given: t, square: square}
}

// flat says that no prior precision is given.
func (p Precision) flat() bool {
	return p.all == 0 && p.sites == nil && p.given == (torch.Tensor{}) && p.err == nil
}

// Site is the precision of a site, where it is one number.
func (p Precision) Site(name string) (lambda float64, ok bool) {
	if p.given != (torch.Tensor{}) || p.err != nil {
		return 0, false
	}
	if p.sites != nil {
		lambda, ok = p.sites[name]
		return lambda, ok
	}
	return p.all, true
}

// check is what can be checked without the layout.
func (p Precision) check(name string) error {
	if p.err != nil {
		return fmt.Errorf("%s: PriorPrecision: %w", name, p.err)
	}
	if err := method.CheckValue(name, "PriorPrecision", p.all, 0, false); err != nil {
		return err
	}
	for _, site := range slices.Sorted(maps.Keys(p.sites)) {
		if err := method.CheckValue(name, fmt.Sprintf("PriorPrecision of site %q", site), p.sites[site], 0,
			false); err != nil {
			return err
		}
	}
	return nil
}

// fail panics with the error of a method's PriorPrecision.
func (p Precision) fail(method, value, allowed string) {
	approx.Try(&infer.FieldError{Type: method, Field: "PriorPrecision", Value: value, Allowed: allowed})
}

// perSite is the precision of each site of a layout, in its order.
func (p Precision) perSite(method string, l *infer.Layout) []float64 {
	for _, name := range slices.Sorted(maps.Keys(p.sites)) {
		if _, ok := l.Site(name); !ok {
			p.fail(method, fmt.Sprintf("given for site %q", name), fmt.Sprintf("there are the sites %q", l.Names()))
		}
	}
	out := make([]float64, len(l.Sites))
	for i, site := range l.Sites {
		v, ok := p.Site(site.Name)
		if !ok {
			p.fail(method, fmt.Sprintf("missing for site %q", site.Name),
				"PerSite needs a number for each site, 0 for a flat prior")
		}
		out[i] = v
	}
	return out
}

// diagonal is the precision as a tensor of the shape of the point.
func (p Precision) diagonal(method string, at infer.Params) torch.Tensor {
	if p.square {
		p.fail(method, "a matrix", "matrices are for the dense methods; use PerElement")
	}
	if p.given != (torch.Tensor{}) {
		return p.tensor(method, at, []int{at.Layout.Dim()}, at.Flat.Shape())
	}
	row := make([]float64, at.Layout.Dim())
	for i, v := range p.perSite(method, at.Layout) {
		site := at.Layout.Sites[i]
		for j := range site.Size {
			row[site.Offset+j] = v
		}
	}
	flat := torch.Must(torch.FromSliceOn(torch.Must(torch.DeviceOf(at.Flat)), at.Flat.T().DType(), row))
	return torch.Of(flat.T().MustExpandAs(at.Flat.T(), false).MustContiguous(false))
}

// matrix is the precision as a matrix, with a chain axis where the point has one.
func (p Precision) matrix(method string, at infer.Params) torch.Tensor {
	if p.square {
		d := at.Layout.Dim()
		return p.tensor(method, at, []int{d, d}, torch.Ints(append(at.Flat.T().MustSize(), int64(d))))
	}
	return torch.Of(p.diagonal(method, at).T().MustDiagEmbed(0, -2, -1, false))
}

// tensor is a copy of the given tensor, of one shape or the other, in the type and on the device of the point.
func (p Precision) tensor(method string, at infer.Params, shape, whole []int) torch.Tensor {
	have, err := torch.Shape(p.given)
	if err != nil {
		approx.Fail("%s: PriorPrecision: %w", method, err)
	}
	if !slices.Equal(have, shape) && !slices.Equal(have, whole) {
		allowed := fmt.Sprintf("it must be of shape %v", shape)
		if !slices.Equal(shape, whole) {
			allowed += fmt.Sprintf(", or %v for the chains", whole)
		}
		p.fail(method, fmt.Sprintf("of shape %v", have), allowed)
	}
	v, err := torch.ToSlice[float64](p.given)
	if err != nil {
		approx.Fail("%s: PriorPrecision: %w", method, err)
	}
	d := at.Layout.Dim()
	for i, x := range v {
		name, allowed := at.Layout.At(i%d), "it must be finite and at least 0"
		if p.square {
			name, allowed = at.Layout.At(i/d%d)+" and "+name, "it must be finite"
		}
		if math.IsNaN(x) || math.IsInf(x, 0) || !p.square && x < 0 {
			p.fail(method, fmt.Sprintf("%v for %s", x, name), allowed)
		}
	}
	t := torch.Must(torch.To(p.given, torch.Must(torch.DeviceOf(at.Flat)), at.Flat.T().DType())).T().MustDetach(false)
	if p.square {
		approx.Try(approx.CheckSymmetric(method, "PriorPrecision", torch.Of(t)))
	}
	return approx.Copy(torch.Of(t.MustExpand(torch.Int64s(whole), true, false).MustContiguous(false)))
}
