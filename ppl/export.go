package ppl

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// exportPoints is at how many points what is exported is compared with the program.
const exportPoints = 4

// Export writes the program with the data of its batch, so that package serve can use it where there is neither
// libtorch nor C: the log density on unconstrained space with its gradient, the named values at a point as
// [Program.Draws] makes them, the log likelihood of each datum where it can be had, names and shapes, and where
// chains start. docs/deploy.md describes the file.
//
// What is written was compared with the program at four points. A model that cannot be compiled is refused, with the
// site and the operation, and so is one with a Density or a solution of differential equations: functions stay where
// they are. What the model reads besides its batch is a constant of the file.
func (p *Program) Export(w io.Writer) error {
	if p.layout == nil {
		return fmt.Errorf("ppl.Export: Compile has not made the program: %w", infer.ErrConfig)
	}
	f, err := p.portable()
	if err == nil {
		err = f.Write(w)
	}
	if err != nil {
		return fmt.Errorf("ppl.Export: %w", err)
	}
	return nil
}

// portable is the program as what is written.
func (p *Program) portable() (*portable.File, error) {
	start, err := p.Init(p.batch, FromUniform, exportPoints, 1)
	if err != nil {
		return nil, err
	}
	defer torch.Free(start.Flat)
	flat, err := start.Values()
	if err != nil {
		return nil, err
	}
	f := &portable.File{Sites: p.layout.Sites, Data: p.Data()}
	f.Centre, f.Radius = p.around()
	for i, by := range f.Radius {
		f.Radius[i] = FromUniform.radius / by
	}
	d := p.layout.Dim()
	var points [][]float64
	for k := range exportPoints {
		points = append(points, flat[k*d:(k+1)*d])
	}
	if f.Density, err = p.portableDensity(start, points); err != nil {
		return nil, fmt.Errorf("the log density: %w", err)
	}
	if f.Named, f.Values, err = p.portableValues(p.namedAt, points); err != nil {
		return nil, fmt.Errorf("the named values: %w", err)
	}
	if f.Pointwise, f.Likelihood, err = p.portableValues(p.pointwiseAt, points); err != nil {
		f.Pointwise, f.Likelihood, f.NoLikelihood = nil, nil, err.Error()
	} else if len(f.Likelihood) == 0 {
		f.Pointwise, f.NoLikelihood = nil, "it observes nothing: a Factor is not of single data"
	}
	return f, nil
}

// portableDensity is the log density at T = 1, on the scale of the sum over data, with its gradient.
func (p *Program) portableDensity(start infer.Params, points [][]float64) (*portable.Plan, error) {
	code, _, err := infer.Compile(p.Target().Summed(), start, p.batch, native.Options{Tier: native.VM})
	if err != nil {
		return nil, err
	}
	plan, err := code.Portable()
	if err != nil {
		return nil, err
	}
	machine, err := plan.Machine()
	if err != nil {
		return nil, err
	}
	want, got := make([]float64, p.layout.Dim()), make([]float64, p.layout.Dim())
	for _, x := range points {
		v, err := code.Eval(x, 1, want)
		if err != nil {
			return nil, err
		}
		if u := machine.Eval(x, 1, got, nil); !near([]float64{u}, []float64{v}) || !near(got, want) {
			return nil, fmt.Errorf("in Go it is %v where the program has %v: %w", u, v, errDiffers)
		}
	}
	return plan, nil
}

var errDiffers = errors.New("the exported function and the program differ")

// exportTolerance is how far numbers in Go may be from those of the program, in units of the largest of their kind. The
// compiled function was compared with the model more strictly.
const exportTolerance = 1e-8

func near(got, want []float64) bool {
	scale := 1e-3
	for _, v := range want {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			scale = math.Max(scale, math.Abs(v))
		}
	}
	return slices.EqualFunc(got, want, func(a, b float64) bool {
		return a == b || a != a && b != b || math.Abs(a-b) <= exportTolerance*scale
	})
}

// pointFunc gives named tensors at a point.
type pointFunc func(point infer.Params, batch infer.Batch) Values

// namedAt is what [Program.Constrain] has.
func (p *Program) namedAt(point infer.Params, batch infer.Batch) Values {
	return p.collected(point, batch, func(s *Site) *ts.Tensor {
		if s.Observed && s.Kind != KindDeterministic {
			return nil
		}
		return s.Value
	})
}

// pointwiseAt is what [Program.LogLikelihood] has.
func (p *Program) pointwiseAt(point infer.Params, batch infer.Batch) Values {
	return p.collected(point, batch, func(s *Site) *ts.Tensor {
		if s.Kind != KindSample || !s.Observed || !s.counts() {
			return nil
		}
		return s.elementwise()
	})
}

func (p *Program) collected(point infer.Params, batch infer.Batch, take func(*Site) *ts.Tensor) Values {
	out := Values{}
	e := &evaluator{program: p, point: point, collect: func(s *Site) {
		if t := take(s); t != nil {
			out[s.Name] = t
		}
	}}
	execute(p.model, batch, nil, e)
	e.complete()
	return out
}

// portableValues is a plan whose outputs are named tensors, with their places.
func (p *Program) portableValues(f pointFunc, points [][]float64) (*portable.Plan, []draws.Site, error) {
	d := p.layout.Dim()
	source := native.Source{Dim: d, Batch: p.batch}
	source.Evaluate = func(x *ts.Tensor, batch map[string]*ts.Tensor) (values, grads []*ts.Tensor,
		aux map[string]*ts.Tensor, err error) {
		err = torch.NoGrad(func() error {
			aux = Values{}
			for name, t := range f(infer.Params{Layout: p.layout, Flat: x}, batch) {
				if t, err = t.Totype(gotch.Double, false); err == nil {
					t, err = t.Contiguous(false)
				}
				if err != nil {
					return err
				}
				aux[name] = t
			}
			values, grads = []*ts.Tensor{zeros(nil)}, []*ts.Tensor{zeros([]int64{int64(d)})}
			return nil
		})
		return values, grads, aux, err
	}
	code, _, err := native.Compile(source, points, native.Options{Tier: native.VM})
	if err != nil {
		return nil, nil, err
	}
	plan, err := code.Portable()
	if err != nil {
		return nil, nil, err
	}
	machine, err := plan.Machine()
	if err != nil {
		return nil, nil, err
	}
	var sites []draws.Site
	offset := 0
	for _, o := range machine.Outputs() {
		s := draws.Site{Name: o.Name, Shape: o.Shape, Offset: offset, Size: int(count(o.Shape))}
		sites, offset = append(sites, s), offset+s.Size
	}
	for _, x := range points {
		if err := p.sameValues(f, machine, sites, x); err != nil {
			return nil, nil, err
		}
	}
	return plan, sites, nil
}

// sameValues compares the outputs of a machine with the model's.
func (p *Program) sameValues(f pointFunc, machine *portable.Machine, sites []draws.Site, x []float64) error {
	aux := make([][]float64, len(sites))
	for i, s := range sites {
		aux[i] = make([]float64, s.Size)
	}
	machine.Eval(x, 1, make([]float64, len(x)), aux)
	return torch.Do(func(*torch.Scope) error {
		point, err := infer.NewParams(p.layout, x)
		if err != nil {
			return err
		}
		values := f(point, p.batch)
		for i, s := range sites {
			want, err := torch.ToSlice[float64](values[s.Name])
			if err != nil {
				return err
			}
			if !near(aux[i], want) {
				return fmt.Errorf("site %q: %w", s.Name, errDiffers)
			}
		}
		return nil
	})
}
