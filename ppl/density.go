package ppl

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Density adds a term to the log density that a Go function computes with its gradient: the solution of a differential
// equation, a likelihood from another library. f returns the log density at x and puts its gradient into grad: x[i]
// holds the elements of inputs[i] in row-major order, and grad[i] takes ∂f/∂x[i] and is 0 at first. Whatever f depends
// on must be an input: what it captures has no gradient. The gradient in data, the same for all chains, is not used.
//
// With K chains f is called K times, from several goroutines: it must not change what calls share. It must not keep x
// or grad. [Compile] compares the gradient with differences of values. A value that is not finite is a divergence.
//
// A density is one term of the likelihood, outside plates: where the data are in plates it takes all of them, and a sum
// over the rows of a minibatch is an error. (N times their mean is an estimate of the sum, and is none.) Methods that
// need second derivatives or single data (Laplace, EKF) refuse a model that has one.
func (c *Ctx) Density(name string, f func(x, grad [][]float64) float64, inputs ...torch.Tensor) {
	s := &Site{Kind: KindFactor, Name: name, Observed: true, Scale: 1, density: &density{f: f}}
	for _, p := range c.plates {
		s.Plates = append(s.Plates, p.Plate)
	}
	switch {
	case len(c.plates) > 0:
		s.fail("a Density is one term for all data, and cannot be inside a plate: declare it outside, with the " +
			"values from the plate as its inputs")
	case f == nil:
		s.fail("its function is nil")
	case len(inputs) == 0:
		s.fail("it has no inputs: only through inputs does the density depend on latent variables")
	}
	s.density.inputs = append(s.density.inputs, inputs...)
	c.visit(s)
}

// density is a term of the log density that a Go function computes.
type density struct {
	f      func(x, grad [][]float64) float64
	inputs []torch.Tensor
	exact  bool // its gradient need not be checked
}

// call evaluates the function for one chain. What goes wrong is an error.
func (d *density) call(x, grad [][]float64) (v float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its function panicked%s: %v", panicLine(), r)
		}
	}()
	own := slices.Clone(grad)
	v = d.f(x, own)
	for i := range own {
		if len(own[i]) != len(grad[i]) {
			return v, fmt.Errorf("its function made a gradient of length %d for input %d, which has %d elements",
				len(own[i]), i, len(grad[i]))
		}
		copy(grad[i], own[i]) // where the function put another slice there
	}
	return v, nil
}

// panicLine is where a function panicked, " at file:line".
func panicLine() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for panicked := false; ; {
		f, more := frames.Next()
		if panicked && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf(" at %s:%d", f.File[strings.LastIndex(f.File, "/")+1:], f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// direct evaluates the density where values can be read, outside vmap, as a tensor that has the gradient.
func (s *Site) direct() torch.Tensor {
	d := s.density
	x, grad := make([][]float64, len(d.inputs)), make([][]float64, len(d.inputs))
	for i, t := range d.inputs {
		if describe, err := t.T().KelvinDescribe(); err == nil && describe.Mapped {
			s.fail("its density is a Go function, which cannot be mapped over samples and chains here: set Samples: 1 " +
				"with svi.SVI and infer.Options{Chains: 1}, or use vi.Dense or hmc.NUTS, which call it for each chain")
		}
		x[i] = torch.Must(torch.ToSlice[float64](t))
		grad[i] = make([]float64, len(x[i]))
	}
	v, err := d.call(x, grad)
	if err != nil {
		s.fail("%v", err)
	}
	row := []float64{v}
	for i, t := range d.inputs {
		if t.T().MustRequiresGrad() {
			row = append(row, grad[i]...)
		}
	}
	return s.surrogate(torch.New(row), func(i int) bool { return d.inputs[i].T().MustRequiresGrad() })
}

// surrogate has the value and the gradient of the density, row: v + Σ g (x − detach(x)).
func (s *Site) surrogate(row torch.Tensor, differs func(i int) bool) torch.Tensor {
	sum := row.At(0)
	at := 1
	for i, x := range s.density.inputs {
		if !differs(i) {
			continue
		}
		shape := shapeOf(x)
		g := row.T().MustNarrow(0, int64(at), int64(count(shape)), false).MustReshape(torch.Int64s(shape), false)
		sum = sum.Add(sumAll(x.Sub(x.T().MustDetach(false)).Mul(g)))
		at += count(shape)
	}
	return torch.Of(sum.T())
}

// densityAt gives a density the value that was computed outside for the point, or asks for it.
func (e *evaluator) densityAt(s *Site) {
	row, ok := e.point.External[s.Name]
	if !ok {
		panic(&infer.External{Site: s.Name, Evaluate: e.program.external})
	}
	s.Value = s.surrogate(row, func(i int) bool { return e.program.densities[s.Name][i] })
}

// external evaluates the model's densities at a point, or at K: for each a row of its value and its gradients in the
// inputs that depend on latent variables. The model runs once to find the inputs, mapped over the chains.
func (p *Program) external(point infer.Params, b infer.Batch) (infer.Tensors, error) {
	rows := infer.Tensors{}
	err := torch.Do(func(scope *torch.Scope) error {
		var calls []*densityCalls
		inputs := func(point infer.Params) (out []torch.Tensor, err error) {
			calls = nil
			err = torch.NoGrad(func() error {
				execute(p.model, b, nil, &evaluator{program: p, point: point, collect: func(s *Site) {
					if s.density == nil || !s.counts() {
						return
					}
					c := &densityCalls{site: s, differs: p.densities[s.Name]}
					calls = append(calls, c)
					out = append(out, c.take()...)
				}})
				return nil
			})
			return out, err
		}
		var out []torch.Tensor
		var err error
		if point.Batched() {
			out, err = torch.Vmap(func(in []torch.Tensor) ([]torch.Tensor, error) {
				return inputs(infer.Params{Layout: point.Layout, Flat: in[0]})
			}, []torch.Tensor{point.Flat}, nil)
		} else {
			out, err = inputs(infer.Params{Layout: point.Layout, Flat: point.Flat})
		}
		if err != nil {
			return err
		}
		for _, c := range calls {
			if out, err = c.read(out); err != nil {
				return err
			}
			k := point.Chains()
			flat := c.evaluate(k)
			shape := []int{k, len(flat) / k}
			if !point.Batched() {
				shape = shape[1:]
			}
			if rows[c.site.Name], err = torch.FromSlice(flat, shape...); err != nil {
				return err
			}
			scope.Keep(rows[c.site.Name])
		}
		return nil
	})
	return rows, err
}

// densityCalls are the calls of one density for K chains.
type densityCalls struct {
	site    *Site
	differs []bool      // which inputs differ between chains
	values  [][]float64 // of each input, of all chains where it differs
}

// take returns the inputs that differ between chains, and reads the others.
func (c *densityCalls) take() (out []torch.Tensor) {
	d := c.site.density
	if len(c.differs) != len(d.inputs) {
		c.site.fail("it has %d inputs in this run, and it had %d when the model was compiled", len(d.inputs),
			len(c.differs))
	}
	c.values = make([][]float64, len(d.inputs))
	for i, x := range d.inputs {
		if c.differs[i] {
			out = append(out, x)
			continue
		}
		var err error
		if c.values[i], err = torch.ToSlice[float64](x); err != nil {
			c.site.fail("input %d depended on no latent variable when the model was compiled, and does in this run: %v", i, err)
		}
	}
	return out
}

// read reads the inputs that take returned from the front of a list, and returns the rest.
func (c *densityCalls) read(in []torch.Tensor) ([]torch.Tensor, error) {
	var err error
	for i := range c.values {
		if c.differs[i] {
			if c.values[i], err = torch.ToSlice[float64](in[0]); err != nil {
				return nil, err
			}
			in = in[1:]
		}
	}
	return in, nil
}

// evaluate calls the function for each chain, in parallel, and returns the rows of values and gradients.
func (c *densityCalls) evaluate(k int) []float64 {
	width := 1
	for i, v := range c.values {
		if c.differs[i] {
			width += len(v) / k
		}
	}
	out := make([]float64, k*width)
	var failed atomic.Pointer[error]
	work := func(from, to int) {
		x, grad := make([][]float64, len(c.values)), make([][]float64, len(c.values))
		for row := from; row < to && failed.Load() == nil; row++ {
			o := out[row*width : (row+1)*width]
			at := 1
			for i, v := range c.values {
				if !c.differs[i] {
					x[i] = v
					grad[i] = append(grad[i][:0], make([]float64, len(v))...)
					continue
				}
				n := len(v) / k
				x[i], grad[i] = v[row*n:(row+1)*n:(row+1)*n], o[at:at+n:at+n]
				at += n
			}
			v, err := c.site.density.call(x, grad)
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			o[0] = v
		}
	}
	if workers := min(k, runtime.GOMAXPROCS(0)); workers > 1 {
		var all parallel.Group
		for w := range workers {
			all.Go(func() { work(w*k/workers, (w+1)*k/workers) })
		}
		all.Wait()
	} else {
		work(0, k)
	}
	if err := failed.Load(); err != nil {
		c.site.fail("%v", *err)
	}
	return out
}

// compileDensity evaluates a density at the point of Compile, and checks its gradient.
func (c *compiler) compileDensity(s *Site) {
	if c.program.densities == nil {
		c.program.densities = map[string][]bool{}
	}
	var differs []bool
	for _, t := range s.density.inputs {
		differs = append(differs, t.T().MustRequiresGrad())
	}
	c.program.densities[s.Name] = differs
	s.Value = s.direct()
	if !s.density.exact {
		s.checkGradient(differs)
	}
}
