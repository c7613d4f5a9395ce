package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// target is a posterior that is run, with data that are made up from its name, so that they are the same in each run.
type target struct {
	name string
	make func(m *maker) problem
}

// problem is a target as it is sampled.
type problem struct {
	model ppl.Model
	batch infer.Batch
	watch []string // sites that are judged; nil is all latent ones
	// accept is the target acceptance that the posterior is known to need, for all methods; 0 is the method's own.
	accept float64
	exact  truth // what is known in closed form; the rest comes from the file of long runs
	// bimodal says that chains must not agree: the right answer is that R-hat is large.
	bimodal bool
	program *ppl.Program // compiled already; nil compiles model and batch
	stan    string       // the name of the Stan program of the same posterior; empty for none
	data    any          // of the Stan program, as JSON
}

// targets are all but those of posteriordb.
var targets = slices.Concat(covariances, hierarchies, regressions, seriesTargets, densities, systems)

// compile makes the program of a target.
func (t target) compile() (problem, *ppl.Program, error) {
	p := t.make(newMaker(t.name))
	if p.program != nil {
		return p, p.program, nil
	}
	program, err := ppl.Compile(p.model, p.batch)
	if err != nil {
		return p, nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return p, program, nil
}

// maker makes data up.
type maker struct{ *rand.Rand }

func newMaker(name string) *maker {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &maker{rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// normals are n numbers from N(0, scale²).
func (m *maker) normals(n int, scale float64) []float64 {
	return each(n, func(int) float64 { return scale * m.NormFloat64() })
}

// chance is 1 with a probability, else 0.
func (m *maker) chance(p float64) float64 {
	if m.Float64() < p {
		return 1
	}
	return 0
}

// category is an index drawn with probabilities.
func (m *maker) category(p []float64) int {
	u := m.Float64()
	for i, v := range p {
		if u -= v; u < 0 {
			return i
		}
	}
	return len(p) - 1
}

// matrix is rows of k numbers, one after the other.
type matrix struct {
	values []float64
	k      int
}

// numbers are data by name: float64 or int for a number, []float64 or matrix for what a batch holds. Stan reads them
// all, and counts indices from 0 as Kelvin does: its programs add 1.
type numbers map[string]any

// batch is the data that are no single numbers.
func (d numbers) batch() infer.Batch {
	b := infer.Batch{}
	for name, v := range d {
		switch v := v.(type) {
		case []float64:
			b[name] = tensor(v)
		case matrix:
			b[name] = tensor(v.values, len(v.values)/v.k, v.k)
		}
	}
	return b
}

// MarshalJSON is the data as Stan reads them.
func (d numbers) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, v := range d {
		if m, ok := v.(matrix); ok {
			v = slices.Collect(slices.Chunk(m.values, m.k))
		}
		out[name] = v
	}
	return json.Marshal(out)
}

func tensor(v []float64, shape ...int) torch.Tensor {
	return torch.New(v, shape...)
}

// each is f at every index.
func each(n int, f func(i int) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// vector is a number n times, as a tensor.
func vector(n int, v float64) torch.Tensor { return torch.Zeros(n).Add(v) }

// choose is the targets with the names in a list separated by commas, and all for an empty list. The name posteriordb
// stands for all of its posteriors, whose names are data-model.
func choose(all []target, list string) ([]target, error) {
	if list == "" {
		return all, nil
	}
	var out []target
	for name := range strings.SplitSeq(list, ",") {
		if name == "posteriordb" {
			for _, t := range all {
				if strings.Contains(t.name, "-") {
					out = append(out, t)
				}
			}
			continue
		}
		i := slices.IndexFunc(all, func(t target) bool { return t.name == name })
		if i < 0 {
			var names []string
			for _, t := range all {
				names = append(names, t.name)
			}
			return nil, fmt.Errorf("-targets: there is no %q; there are %s", name, strings.Join(names, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}
