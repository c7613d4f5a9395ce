package store

import (
	"maps"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
)

// group is a group of ArviZ's InferenceData.
type group struct {
	name  string
	vars  []*variable
	attrs map[string]any
}

// part is a container of draws in an Inference, with the names of its groups; stats is empty where there can be none.
type part struct {
	name, stats string
	draws       **draws.Draws
}

// parts are the sampled groups, in the order of ArviZ.
func (inf *Inference) parts() []part {
	return []part{
		{"posterior", "sample_stats", &inf.Posterior},
		{"posterior_predictive", "", &inf.PosteriorPredictive},
		{"log_likelihood", "", &inf.LogLikelihood},
		{"prior", "sample_stats_prior", &inf.Prior},
		{"prior_predictive", "", &inf.PriorPredictive},
		{"warmup_posterior", "warmup_sample_stats", &inf.Warmup},
	}
}

type dataPart struct {
	name   string
	arrays *[]Array
}

func (inf *Inference) dataParts() []dataPart {
	return []dataPart{{"observed_data", &inf.ObservedData}, {"constant_data", &inf.ConstantData}}
}

// encoder turns an Inference into groups.
type encoder struct {
	inf   *Inference
	fit   func(string) string // makes names fit for the format
	sizes map[string]int64
}

func (e *encoder) groups() ([]*group, error) {
	e.sizes = map[string]int64{}
	attrs := e.inf.attrs()
	var all []*group
	for _, p := range e.inf.parts() {
		if *p.draws == nil {
			continue
		}
		sampled, err := e.sampled(p, attrs)
		if err != nil {
			return nil, err
		}
		all = append(all, sampled...)
	}
	for _, p := range e.inf.dataParts() {
		if len(*p.arrays) == 0 {
			continue
		}
		g := &group{name: p.name, attrs: attrs}
		var bad error
		shapes := map[string][]int64{}
		var names []string
		for _, a := range *p.arrays {
			if n, ok := product(a.Shape); !ok || n != len(a.Values) {
				bad = failf(ErrLayout, "%s: %q has %d values, but the shape %v", p.name, a.Name, len(a.Values), a.Shape)
			}
			if _, twice := shapes[a.Name]; twice || a.Name == "" {
				bad = failf(ErrLayout, "%s: the name %q is empty or there twice", p.name, a.Name)
			}
			shapes[a.Name] = a.Shape
			names = append(names, a.Name)
		}
		if bad != nil {
			return nil, bad
		}
		for i, name := range identifiers(names, e.fit) {
			a := (*p.arrays)[i]
			dims, err := e.dims(p.name, a.Name, name, a.Shape)
			if err != nil {
				return nil, err
			}
			g.vars = append(g.vars, &variable{name: name, shape: a.Shape, dims: dims, data: a.Values})
		}
		all = append(all, g)
	}
	return all, nil
}

// sampled makes the group of the sites and that of the statistics.
func (e *encoder) sampled(p part, attrs map[string]any) ([]*group, error) {
	d := *p.draws
	sites, stats := d.Sites(), d.Stats()
	switch {
	case p.stats == "" && len(stats) > 0:
		return nil, failf(ErrLayout, "%s: the format has no place for the statistics %q of this group", p.name, stats)
	case d.Chains() == 0:
		return nil, failf(ErrLayout, "%s: there are no chains", p.name)
	case len(sites)+len(stats) == 0 && d.Total() > 0:
		return nil, failf(ErrLayout, "%s: draws have neither sites nor statistics", p.name)
	}
	own := maps.Clone(attrs)
	own[layoutKey] = layoutOf(d).String()
	g := &group{name: p.name, attrs: own}
	head := []int64{int64(d.Chains()), int64(d.MaxLen())}
	pad := make([]float64, d.Dim())
	for i := range pad {
		pad[i] = math.NaN()
	}
	for i, name := range siteVariables(sites, e.fit) {
		s := sites[i]
		dims, err := e.dims(p.name, s.Name, name, s.Shape)
		if err != nil {
			return nil, err
		}
		g.vars = append(g.vars, &variable{
			name: name, shape: append(slices.Clone(head), s.Shape...), dims: append([]string{"chain", "draw"}, dims...),
			at: func(chain, draw int) []float64 {
				if row := d.Row(chain, draw); row != nil {
					return row[s.Offset : s.Offset+s.Size]
				}
				return pad[:s.Size]
			},
		})
	}
	if len(stats) == 0 {
		return []*group{g}, nil
	}
	of := &group{name: p.stats, attrs: attrs}
	for k, name := range statVariables(stats, e.fit) {
		v := &variable{name: name, shape: head, dims: []string{"chain", "draw"}}
		traces := make([][]float64, d.Chains())
		for c := range traces {
			traces[c], _ = d.Stat(stats[k], c)
		}
		v.kind = statKind(name, traces)
		missing := []float64{math.NaN()}
		if v.kind != float {
			missing[0] = 0
		}
		v.at = func(chain, draw int) []float64 {
			if draw < len(traces[chain]) {
				return traces[chain][draw : draw+1]
			}
			return missing
		}
		of.vars = append(of.vars, v)
	}
	return []*group{g, of}, nil
}

// dims are the names of a variable's own dimensions: those that the user gave, else theta_dim_0 and so on.
func (e *encoder) dims(group, site, name string, shape []int64) ([]string, error) {
	dims := e.inf.Dims[site]
	if dims == nil {
		return defaultDims(name, len(shape)), nil
	}
	if len(dims) != len(shape) {
		return nil, failf(ErrLayout, "%s: Dims has %d names for %q of shape %v", group, len(dims), site, shape)
	}
	for k, dim := range dims {
		want, ok := e.sizes[dim]
		if labels := e.inf.Coords[dim]; labels != nil {
			want = int64(len(labels))
		} else if !ok {
			want = shape[k]
		}
		e.sizes[dim] = want
		if shape[k] != want || dim == "chain" || dim == "draw" || slices.Contains(dims[:k], dim) {
			return nil, failf(ErrLayout, "%s: dimension %q of %q has size %d, elsewhere or in Coords %d; names of dimensions are unique, and neither chain nor draw", group, dim, site, shape[k], want)
		}
	}
	return slices.Clone(dims), nil
}
