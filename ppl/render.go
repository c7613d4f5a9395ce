package ppl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Render draws a model as a graph in Graphviz's DOT language: random variables as ellipses (observed ones
// shaded), params as plain boxes, plates as clusters, and an arrow for every direct dependence of a
// distribution on another site.
func Render(m Model, batch infer.Batch) (string, error) {
	var out string
	err := torch.Do(func(*torch.Scope) error {
		r := &renderer{}
		execute(m, batch, nil, r)
		out = r.dot()
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("ppl.Render: %w", err)
	}
	return out, nil
}

// renderer gives every latent site a value that is a leaf of libtorch's graph. A parameter then has a gradient in
// exactly those sites that it depends on directly.
type renderer struct {
	compiler compiler
	sites    []*Site
	parents  map[string][]string
}

func (r *renderer) Process(s *Site) {
	if r.compiler.program == nil {
		r.compiler = compiler{program: &Program{latents: map[string]*latent{}}, recorder: newRecorder()}
	}
	if s.Kind == KindSample && !s.Observed && s.Value == (torch.Tensor{}) && s.Dist.Support().Discrete() {
		s.Value = torch.Of(s.Dist.Mean().T()) // of the right shape; only the dependences matter
		return
	}
	r.compiler.Process(s)
}

func (r *renderer) Finish(s *Site) {
	if s.Kind == KindData || s.hidden {
		return
	}
	r.find(s)
	if s.Kind != KindFactor && !s.Observed || s.Kind == KindDeterministic {
		s.Value = torch.Must(torch.Leaf(s.Value))
	}
	r.sites = append(r.sites, s)
}

// find lists the sites that a site's parameters depend on.
func (r *renderer) find(s *Site) {
	if r.parents == nil {
		r.parents = map[string][]string{}
	}
	var depends []torch.Tensor
	if s.density != nil {
		depends = s.density.inputs
	} else if s.Kind == KindFactor || s.Kind == KindDeterministic {
		depends = append(depends, s.Value)
	} else {
		depends = tensorsOf(s.Dist)
	}
	for _, t := range depends {
		if !t.T().MustRequiresGrad() {
			continue
		}
		for _, from := range r.sites { // a Density has no value here
			if from.Value == (torch.Tensor{}) || !from.Value.T().MustRequiresGrad() ||
				slices.Contains(r.parents[s.Name], from.Name) {
				continue
			}
			if reaches(t, from.Value) {
				r.parents[s.Name] = append(r.parents[s.Name], from.Name)
			}
		}
	}
}

// tensorsOf are the tensors among a distribution's parameters, and among those of its parts.
func tensorsOf(v any) []torch.Tensor {
	var out []torch.Tensor
	switch v := v.(type) {
	case torch.Tensor:
		if _, isNumber := v.Number(); !isNumber {
			out = append(out, v)
		}
	case *ts.Tensor:
		out = append(out, torch.Of(v))
	case []dist.Distribution:
		for _, d := range v {
			out = append(out, tensorsOf(d)...)
		}
	case dist.Parameterised:
		for _, p := range v.Params() {
			out = append(out, tensorsOf(p)...)
		}
	}
	return out
}

// reaches says whether t was computed from leaf: libtorch refuses a gradient otherwise.
func reaches(t, leaf torch.Tensor) bool {
	_, err := torch.Grad([]torch.Tensor{torch.Of(t.T().MustSum(t.T().DType(), false))}, []torch.Tensor{leaf},
		&torch.GradOptions{KeepGraph: true})
	return err == nil
}

func (r *renderer) dot() string {
	var b strings.Builder
	b.WriteString("digraph model {\n")
	r.cluster(&b, nil, "  ")
	for _, s := range r.sites {
		for _, from := range r.parents[s.Name] {
			fmt.Fprintf(&b, "  %q -> %q;\n", from, s.Name)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// cluster writes the sites that are in exactly these plates, and the plates inside.
func (r *renderer) cluster(b *strings.Builder, path []string, indent string) {
	var inner []Plate
	for _, s := range r.sites {
		names := s.plateNames()
		if slices.Equal(names, path) {
			fmt.Fprintf(b, "%s%q [%s];\n", indent, s.Name, look(s))
		} else if len(names) > len(path) && slices.Equal(names[:len(path)], path) {
			if p := s.Plates[len(path)]; !slices.ContainsFunc(inner, func(q Plate) bool { return q.Name == p.Name }) {
				inner = append(inner, p)
			}
		}
	}
	for _, p := range inner {
		full := append(slices.Clone(path), p.Name)
		fmt.Fprintf(b, "%ssubgraph %q {\n%s  label=%q; labelloc=b; labeljust=r;\n", indent,
			"cluster_"+strings.Join(full, "/"), indent, fmt.Sprintf("%s (%d)", p.Name, p.Size))
		r.cluster(b, full, indent+"  ")
		fmt.Fprintf(b, "%s}\n", indent)
	}
}

// look is a node's attributes.
func look(s *Site) string {
	switch {
	case s.Kind == KindFactor:
		return "shape=square, style=filled, fillcolor=black, label=\"\", xlabel=" + fmt.Sprintf("%q", s.Name)
	case s.Kind == KindDeterministic:
		return "shape=ellipse, style=dashed"
	case s.Kind == KindParam:
		return "shape=plaintext"
	case s.Observed:
		return fmt.Sprintf("shape=ellipse, style=filled, fillcolor=gray80, tooltip=%q", s.Dist.Name())
	}
	return fmt.Sprintf("shape=ellipse, tooltip=%q", s.Dist.Name())
}
