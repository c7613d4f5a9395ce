package sgmcmc

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// masses are M for every element, of shape [d] or [K, d].
type masses struct {
	root, inverse, mass *ts.Tensor // √M, 1/M, M
	lightest            float64    // the least of them
}

// least is the least mass of all elements.
func (m *masses) least() float64 {
	if m == nil {
		return 1
	}
	return m.lightest
}

// massesOf are the masses of the elements of a point; nil when all are 1. They outlive every scope, because later states
// share them.
func (t *symplectic) massesOf(p infer.Params) (*masses, error) {
	if len(t.Mass) == 0 {
		return nil, nil
	}
	values := make([]float64, 0, p.Layout.Dim())
	var names []string
	for _, site := range p.Layout.Sites {
		names = append(names, site.Name)
		m, ok := t.Mass[site.Name]
		if !ok {
			m = 1
		}
		for range site.Size {
			values = append(values, m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Mass)) {
		if !slices.Contains(names, name) {
			return nil, &infer.FieldError{Type: "sgmcmc.SymplecticSGHMC", Field: "Mass", Value: fmt.Sprintf("given for site %q", name),
				Allowed: fmt.Sprintf("the sites are %q", names)}
		}
	}
	m, err := newMasses(p, values)
	if err != nil {
		return nil, fmt.Errorf("sgmcmc.SymplecticSGHMC: %w", err)
	}
	return m, nil
}

// withMassiveNoise appends the noise of an update in which elements have masses of their own. Nothing is drawn where no
// element gets any.
func (t *symplectic) withMassiveNoise(terms []torch.Term, p pace, mass *masses, like *ts.Tensor, streams *torch.Streams) ([]torch.Term, error) {
	if p.temp*p.h == 0 || p.damp == 0 {
		return terms, nil
	}
	z, err := streams.NormalLike(like)
	if err != nil {
		return nil, err
	}
	scale, sd := math.Sqrt(2*p.temp*p.damp/t.unit), mass.root
	if t.Beta > 0 {
		lost := p.temp * p.temp * p.h * p.h * t.Beta
		variance, err := torch.Combine(torch.Term{Coeff: scale * scale, Tensor: mass.mass})
		if err != nil {
			return nil, err
		}
		if variance, err = variance.AddScalar(ts.FloatScalar(-lost), false); err != nil {
			return nil, err
		}
		// The least variance may be zero and come out a rounding below.
		if variance, err = variance.ClampMin(ts.FloatScalar(0), false); err != nil {
			return nil, err
		}
		if sd, err = variance.Sqrt(false); err != nil {
			return nil, err
		}
		scale = 1
	}
	if err = z.Mul_(sd); err != nil {
		return nil, err
	}
	return append(terms, torch.Term{Coeff: scale, Tensor: z}), nil
}

// newMasses are the masses of every element, in the shape of p or [d] for all chains alike. They outlive every scope, because
// later states share them.
func newMasses(p infer.Params, values []float64) (*masses, error) {
	shape := []int64{int64(len(values))}
	if d := p.Layout.Dim(); p.Batched() && len(values) == p.Chains()*d {
		shape = []int64{int64(p.Chains()), int64(d)}
	}
	device, err := torch.DeviceOf(p.Flat)
	if err != nil {
		return nil, err
	}
	dtype, err := torch.DTypeOfTensor(p.Flat)
	if err != nil {
		return nil, err
	}
	m := &masses{lightest: math.Inf(1)}
	if m.mass, err = torch.FromSliceOn(device, dtype, values, shape...); err != nil {
		return nil, err
	}
	// What a checkpoint holds is the mass in its type: the rest is made of that, so that it is the same after one.
	if values, err = torch.ToSlice[float64](m.mass); err != nil {
		return nil, err
	}
	root, inverse := make([]float64, len(values)), make([]float64, len(values))
	for i, v := range values {
		root[i], inverse[i] = math.Sqrt(v), 1/v
		m.lightest = min(m.lightest, v)
	}
	if m.root, err = torch.FromSliceOn(device, dtype, root, shape...); err != nil {
		return nil, err
	}
	if m.inverse, err = torch.FromSliceOn(device, dtype, inverse, shape...); err != nil {
		return nil, err
	}
	torch.Detach(m.mass, m.root, m.inverse)
	return m, nil
}

// transported are the momenta after a change of masses: m' = √(M'/M) m, so that √M⁻¹ m stays.
func transported(m *ts.Tensor, from, to *masses) (out *ts.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		if out, err = m.Mul(to.root, false); err != nil {
			return err
		}
		if from != nil {
			if out, err = out.Div(from.root, false); err != nil {
				return err
			}
		}
		scope.Keep(out)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("momenta: %w", err)
	}
	return out, nil
}
