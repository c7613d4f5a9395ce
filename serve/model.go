package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/formula"
)

// Model is an exported model with its data. It is immutable, and safe for concurrent use.
type Model struct {
	file                      portable.File
	density, named, pointwise machine
	values, likelihood        []draws.Site

	design     *data.Design
	regression *formula.Recipe
	ready      *predictors
}

// machine evaluates a plan: value and gradient at x, and outputs. It is safe for concurrent use.
type machine interface {
	Dim() int
	Eval(x []float64, weight float64, grad []float64, aux [][]float64) float64
}

// ErrFile is what the error of a file that is damaged, cut or no export wraps.
var ErrFile = portable.ErrFile

// Load reads a model, to the end of r. Take files of a trusted maker only where time matters: a file is no code, and
// its memory is bounded, but it may ask for evaluations of hours.
func Load(r io.Reader) (m *Model, err error) {
	defer wrap("Load", &err)
	f, err := portable.Read(r)
	if err != nil {
		return nil, err
	}
	return newModel(*f)
}

func newModel(f portable.File) (m *Model, err error) {
	m = &Model{file: f, ready: &predictors{}}
	if len(f.Design) > 0 {
		if m.regression, err = formula.Saved(f.Design); err == nil && m.regression == nil {
			m.design = &data.Design{}
			err = json.Unmarshal(f.Design, m.design)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, ErrFile)
		}
	}
	m.density, err = f.Density.Machine()
	if err == nil {
		m.named, m.values, err = maker(f.Named)
	}
	if err == nil && f.Pointwise != nil {
		m.pointwise, m.likelihood, err = maker(f.Pointwise)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// With is the model on other data: the numbers of tensors of the batch, by name and in row-major order, as many as
// there were. [Model.Inputs] has the names and shapes.
func (m *Model) With(data map[string][]float64) (out *Model, err error) {
	defer wrap("With", &err)
	known := m.Inputs()
	for name := range data {
		if !slices.ContainsFunc(known, func(s draws.Site) bool { return s.Name == name }) {
			return nil, fmt.Errorf("the model reads no data %q", name)
		}
	}
	f := m.file
	for _, p := range []**portable.Plan{&f.Density, &f.Named, &f.Pointwise} {
		if *p != nil && err == nil {
			*p, err = (*p).With(data)
		}
	}
	if err != nil {
		return nil, err
	}
	f.Likelihood, f.Points, f.NoUpdate = nil, nil, "With gave it other data than those of its draws"
	return newModel(f)
}

// Inputs are the names and shapes of the tensors of the batch that the model reads.
func (m *Model) Inputs() (out []draws.Site) {
	for _, p := range []*portable.Plan{m.file.Density, m.file.Named, m.file.Pointwise} {
		if p == nil {
			continue
		}
		for _, s := range p.Inputs() {
			if !slices.ContainsFunc(out, func(o draws.Site) bool { return o.Name == s.Name }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// wrap says what was being done.
func wrap(doing string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("serve.%s: %w", doing, *err)
	}
}

// maker is what makes named numbers at a point, and their places.
func maker(p *portable.Plan) (made machine, sites []draws.Site, err error) {
	if sites, err = p.Sites(); err == nil {
		made, err = p.Machine()
	}
	return made, sites, err
}

// Dim is the number of parameters on unconstrained space.
func (m *Model) Dim() int { return m.density.Dim() }

// Data is the number of data.
func (m *Model) Data() int64 { return m.file.Data }

// Sites is the layout on unconstrained space.
func (m *Model) Sites() []draws.Site { return slices.Clone(m.file.Sites) }

// Values are the places of the named values: latent variables and deterministic sites.
func (m *Model) Values() []draws.Site { return slices.Clone(m.values) }

// Names are the names of the named values.
func (m *Model) Names() []string {
	var out []string
	for _, s := range m.values {
		out = append(out, s.Name)
	}
	return out
}

// LogDensity is the log posterior density at a point x of unconstrained space, up to a constant, with its gradient in
// grad: log prior + log likelihood + log |Jacobian|. It is NaN where there is none. Lengths other than Dim panic.
func (m *Model) LogDensity(x, grad []float64) float64 { return m.density.Eval(x, 1, grad, nil) }

// ValueAndGrad, ValueAndGradAt and Concurrent make the model a density of package infer/hmc/kernel.
func (m *Model) ValueAndGrad(x, logp, grad []float64) error {
	return m.ValueAndGradAt(x, slices.Repeat([]float64{1}, len(logp)), logp, grad)
}

// ValueAndGradAt evaluates rows, each at its temperature T: log prior + log likelihood + T·log |Jacobian|.
func (m *Model) ValueAndGradAt(x, temperatures, logp, grad []float64) error {
	d := m.Dim()
	if n := len(logp); len(x) != n*d || len(grad) != n*d || len(temperatures) != n {
		return fmt.Errorf("serve: %d points of %d parameters from %d numbers, with room for %d", n, d, len(x), len(grad))
	}
	for k, t := range temperatures {
		lo, hi := k*d, (k+1)*d
		logp[k] = m.density.Eval(x[lo:hi:hi], t, grad[lo:hi:hi], nil)
	}
	return nil
}

// Concurrent says that calls may come from several goroutines at once.
func (m *Model) Concurrent() bool { return true }

// Constrain gives the named values at a point of unconstrained space, each in row-major order. A length other than Dim
// panics.
func (m *Model) Constrain(x []float64) map[string][]float64 {
	return outputs(m.named, m.values, x)
}

// LogLikelihood is the log density of each datum at a point of unconstrained space, by observed site. The error says
// why the model was exported without.
func (m *Model) LogLikelihood(x []float64) (map[string][]float64, error) {
	if m.pointwise == nil {
		return nil, fmt.Errorf("serve: the model was exported without the log likelihood of each datum: %s",
			m.file.NoLikelihood)
	}
	if len(x) != m.Dim() {
		return nil, fmt.Errorf("serve: a point of %d numbers in a model of %d parameters", len(x), m.Dim())
	}
	return outputs(m.pointwise, m.likelihood, x), nil
}

// outputs evaluates what a machine makes at a point.
func outputs(m machine, sites []draws.Site, x []float64) map[string][]float64 {
	out, aux := make(map[string][]float64, len(sites)), make([][]float64, len(sites))
	for i, s := range sites {
		aux[i] = make([]float64, s.Size)
		out[s.Name] = aux[i]
	}
	m.Eval(x, 1, make([]float64, len(x)), aux)
	return out
}

// startTries is how often a start is drawn until density and gradient are finite.
const startTries = 100

// Start draws a point from which a chain may start, as ppl.FromUniform does, with a stream of its own.
func (m *Model) Start(seed, chain uint64) ([]float64, error) {
	rng := rand.New(rand.NewPCG(seed, chain))
	x, grad := make([]float64, m.Dim()), make([]float64, m.Dim())
	for range startTries {
		for i := range x {
			x[i] = m.file.Centre[i] + m.file.Radius[i]*(2*rng.Float64()-1)
		}
		sum := m.LogDensity(x, grad)
		for _, g := range grad {
			sum += g
		}
		if sum-sum == 0 {
			return x, nil
		}
	}
	return nil, errors.New("serve: the log density is finite at none of 100 starts")
}
