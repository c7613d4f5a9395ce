package regression

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Priors replace the default priors. A key is the name of what has the prior, as summaries and [Model.Priors] have it,
// or its class:
//
//	"intercept"      the intercept, where each covariate has its mean
//	"b"              all coefficients; "b[age]" one of them
//	"sd"             standard deviations of group effects; "sd_clinic" of a group, "sd_clinic[dose]" of one column
//	"sigma", "nu"    a parameter of the family; of one with a formula "intercept_sigma", "b_sigma", "sd_clinic_sigma"
//	"sd_s(hour)"     the smoothness of s(hour); "sd_gp(x)" and "length_gp(x)" of a Gaussian process
//	"thresholds"     those of ordered categories
//
// A distribution is of single numbers. The defaults are weak, and follow the data: with s the standard deviation of the
// outcome for families whose outcome has a scale and 1 for others, m the link of its mean, and s_j the standard
// deviation of column j,
//
//	intercept  Normal(m, 2.5 s)
//	b          Normal(0, 2.5 s/s_j)
//	sd         HalfNormal(2.5 s/s_j), of the intercept HalfNormal(2.5 s)
//	sd_s(x)    HalfNormal(2.5 s/d), with d the standard deviation of s(x) where this is 1; sd_gp(x) HalfNormal(2.5 s)
//	length     LogNormal(log(R/4), 0.7) for a Gaussian process of a column of range R
//	cor        LKJ(1), of which Formula.Eta is the parameter
//	sigma      Exponential(1/s)
//
// (Gabry and Goodrich 2024, Prior distributions for rstanarm models; Capretto et al. 2022 for group effects.)
type Priors map[string]dist.Distribution

// Prior is a line of the table of priors.
type Prior struct {
	Name string // as "b[age]"
	Law  string // as "Normal(0, 12.5)"
	Own  bool   // it is one of Formula.Priors
}

// find is the prior that the user gave for a site, an element of it or its class.
func (m *Model) find(keys ...string) (dist.Distribution, bool) {
	for _, k := range keys {
		if d, ok := m.formula.Priors[k]; ok {
			m.used[k] = true
			return d, true
		}
	}
	return nil, false
}

// vector is a site of labelled elements with independent priors: those that the user gave by element are sites of their
// own, named as the element. class are the keys of priors for all of them, from the narrowest.
func (m *Model) vector(g getter, r role, site string, labels, class []string, scale []float64,
	of func(scale any) dist.Distribution, says string) torch.Tensor {
	var rest, own []int
	for i, label := range labels {
		if _, ok := m.find(element(site, label)); ok {
			own = append(own, i)
		} else {
			rest = append(rest, i)
		}
	}
	var parts []any
	if len(rest) > 0 {
		names, scales := make([]string, len(rest)), make([]float64, len(rest))
		for k, i := range rest {
			names[k], scales[k] = labels[i], scale[i]
		}
		m.note(r, site, names)
		if d, ok := m.find(class...); ok {
			parts = append(parts, g.sample(site, func() dist.Distribution { return d.Expand(len(rest)) }))
		} else {
			parts = append(parts, scaled(g, site, scales, of))
		}
		for k, name := range names {
			m.describe(element(site, name), fmt.Sprintf(says, scales[k]), class...)
		}
	}
	for _, i := range own {
		name := element(site, labels[i])
		m.note(r, name)
		parts = append(parts, g.sample(name, func() dist.Distribution {
			d, _ := m.find(name)
			return d
		}).Reshape(1))
		m.describe(name, "", name)
	}
	if len(own) == 0 {
		return parts[0].(torch.Tensor)
	}
	order, at := make([]int, len(labels)), 0
	for _, i := range append(rest, own...) {
		order[i] = at
		at++
	}
	return torch.Cat(0, parts...).IndexSelect(0, torch.New(order))
}

// small is a scale below which a vector is made of numbers of scale 1. Chains start within 2 of 0: without it the first
// predictors of a column in thousands are too large for exp.
const small = 0.5

// scaled is a site of default priors of the given scales.
func scaled(g getter, site string, scale []float64, of func(scale any) dist.Distribution) torch.Tensor {
	by := torch.New(scale)
	if slices.Min(scale) >= small {
		return g.sample(site, func() dist.Distribution { return of(by) })
	}
	if v, ok := g.known(site); ok {
		return v
	}
	v := g.sample("unit_"+site, func() dist.Distribution { return of(1).Expand(len(scale)) }).Mul(by)
	g.keep(site, v)
	return v
}

// scalar is a site of one number.
func (m *Model) scalar(g getter, r role, site, says string, of func() dist.Distribution, class ...string) torch.Tensor {
	m.note(r, site)
	m.describe(site, says, append([]string{site}, class...)...)
	return g.sample(site, func() dist.Distribution {
		if d, ok := m.find(append([]string{site}, class...)...); ok {
			return d
		}
		return of()
	})
}

func element(site, label string) string { return site + "[" + label + "]" }

// describe notes a prior in words, once.
func (m *Model) describe(name, says string, keys ...string) {
	if m.sealed {
		return
	}
	if slices.ContainsFunc(m.priors, func(p Prior) bool { return p.Name == name }) {
		return
	}
	p := Prior{Name: name, Law: says}
	for _, k := range keys {
		if d, ok := m.formula.Priors[k]; ok {
			p.Own, p.Law = true, inWords(d)
			break
		}
	}
	m.priors = append(m.priors, p)
}

// inWords is a distribution with its parameters, where they are numbers: "Normal(loc 0, scale 1)".
func inWords(d dist.Distribution) string {
	of, ok := d.(dist.Parameterised)
	if !ok {
		return d.Name()
	}
	var parts []string
	params := of.Params()
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if t, ok := params[name].(torch.Tensor); ok {
			if v, number := t.Number(); number {
				parts = append(parts, fmt.Sprintf("%s %.3g", name, v))
			}
		}
	}
	if len(parts) < len(params) {
		return d.Name()
	}
	return d.Name() + "(" + strings.Join(parts, ", ") + ")"
}

// normalNumbers are the parameters of a normal distribution of Go numbers.
func normalNumbers(d dist.Distribution) (loc, scale float64, ok bool) {
	of, parameterised := d.(dist.Parameterised)
	if !parameterised || d.Name() != "Normal" {
		return 0, 0, false
	}
	p := of.Params()
	var first, second bool
	loc, first = torch.Of(p["loc"]).Number()
	scale, second = torch.Of(p["scale"]).Number()
	return loc, scale, first && second
}

// unused refuses priors that nothing has.
func (m *Model) unused() error {
	for _, k := range slices.Sorted(maps.Keys(m.formula.Priors)) {
		if m.used[k] {
			continue
		}
		var names []string
		for _, p := range m.priors {
			names = append(names, p.Name)
		}
		return &infer.FieldError{Type: typeName, Field: "Priors", Value: fmt.Sprintf("of %q", k),
			Allowed: "the model has nothing of that name; it has " + strings.Join(names, ", ")}
	}
	for k, d := range m.formula.Priors {
		if d == nil || len(d.BatchShape())+len(d.EventShape()) > 0 {
			return &infer.FieldError{Type: typeName, Field: "Priors", Value: fmt.Sprintf("of %q", k),
				Allowed: "it must be a distribution of single numbers"}
		}
	}
	return nil
}

// Priors are the priors of the model, in its order.
func (m *Model) Priors() []Prior { return slices.Clone(m.priors) }
