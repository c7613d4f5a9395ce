package ppl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// Export writes the program with the data of its batch, so that package serve can use it where there is neither
// libtorch nor C: the log density on unconstrained space with its gradient, the named values at a point as
// [Program.Draws] makes them, the log likelihood of each datum where it can be had, names and shapes, and where
// chains start. docs/deploy.md describes the file.
//
// What is written was compared with the program at four points. A model that cannot be compiled is refused, with the
// site and the operation, and so is one with a Density or a solution of differential equations: functions stay where
// they are. What the model reads besides its batch is a constant of the file.
func (p *Program) Export(w io.Writer) error { return p.export("Export", w, nil, nil) }

// ExportFitted is [Program.Export] with draws of the program's posterior, from which package serve predicts, and the
// design that makes the data of a prediction from rows, a [data.Design]; nil where the rows are the data. Of the draws
// the named values are written, and no statistics.
func (p *Program) ExportFitted(w io.Writer, posterior *draws.Draws, design *data.Design) error {
	if posterior == nil || posterior.Total() == 0 {
		return fmt.Errorf("ppl.ExportFitted: %w", draws.ErrNoDraws)
	}
	return p.export("ExportFitted", w, posterior, design)
}

func (p *Program) export(doing string, w io.Writer, posterior *draws.Draws, design *data.Design) error {
	if p.layout == nil {
		return fmt.Errorf("ppl.%s: Compile has not made the program: %w", doing, infer.ErrConfig)
	}
	f, err := p.portable(posterior)
	if err == nil && design != nil {
		f.Design, err = json.Marshal(design)
	}
	if err == nil {
		err = f.Write(w)
	}
	if err != nil {
		return fmt.Errorf("ppl.%s: %w", doing, err)
	}
	return nil
}

// portable is the program as what is written.
func (p *Program) portable(posterior *draws.Draws) (*portable.File, error) {
	start, err := p.Init(p.batch, FromUniform, 4, 1)
	if err != nil {
		return nil, err
	}
	defer torch.Free(start.Flat)
	flat, err := start.Values()
	if err != nil {
		return nil, err
	}
	f := &portable.File{Sites: p.layout.Sites, Data: int64(p.Data())}
	f.Centre, f.Radius = p.around()
	for i, by := range f.Radius {
		f.Radius[i] = FromUniform.radius / by
	}
	points := slices.Collect(slices.Chunk(flat, p.layout.Dim()))
	if f.Density, err = p.portableDensity(start, points); err != nil {
		return nil, fmt.Errorf("the log density: %w", err)
	}
	if f.Named, err = p.portableValues(named, points); err != nil {
		return nil, fmt.Errorf("the named values: %w", err)
	}
	if f.Pointwise, err = p.portableValues(pointwise, points); err != nil {
		f.Pointwise, f.NoLikelihood = nil, err.Error()
	}
	if f.Draws = posterior; posterior == nil {
		if posterior, err = p.drawsAt(points); err != nil {
			return nil, err
		}
	}
	f.Predictive, err = p.portablePrediction(posterior)
	switch {
	case err != nil && f.Draws != nil:
		return nil, fmt.Errorf("the predictions: %w", err)
	case err != nil:
		f.Predictive, f.NoPrediction = nil, err.Error()
	}
	if f.Draws != nil {
		f.Update(p.portableUpdates(f.Draws))
	}
	return f, nil
}

// drawsAt are named draws at points of unconstrained space.
func (p *Program) drawsAt(points [][]float64) (*draws.Draws, error) {
	d, err := draws.New(p.layout.Sites, nil, 1)
	if err != nil {
		return nil, err
	}
	for _, x := range points {
		if err := d.AppendChain(0, x, nil); err != nil {
			return nil, err
		}
	}
	d.SetSpace(draws.Unconstrained)
	return p.Draws(d, p.batch)
}

// portableDensity is the log density at T = 1, on the scale of the sum over data, with its gradient.
func (p *Program) portableDensity(start infer.Params, points [][]float64) (*portable.Plan, error) {
	code, _, err := infer.Compile(p.Target().Summed(), start, p.batch, native.Options{Tier: native.VM})
	if err != nil {
		return nil, err
	}
	plan, machine, err := portableCode(code)
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

// planMachine evaluates a plan: value and gradient at x, and outputs.
type planMachine interface {
	Eval(x []float64, weight float64, grad []float64, aux [][]float64) float64
}

// portableCode is a function as a plan, and what runs that.
func portableCode(code *native.Func) (plan *portable.Plan, machine planMachine, err error) {
	if plan, err = code.Portable(); err == nil {
		machine, err = plan.Machine()
	}
	return plan, machine, err
}

var errDiffers = errors.New("the exported function and the program differ")

// near says whether numbers in Go are those of the program, to 1e-8 of the largest. The compiled function was compared
// with the model more strictly.
func near(got, want []float64) bool {
	scale := 1e-3
	for _, v := range want {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			scale = math.Max(scale, math.Abs(v))
		}
	}
	return slices.EqualFunc(got, want, func(a, b float64) bool {
		return a == b || a != a && b != b || math.Abs(a-b) <= 1e-8*scale
	})
}

// named is what [Program.Constrain] has of a site, nil for none, and pointwise what [Program.LogLikelihood] has.
func named(s *Site) torch.Tensor {
	if s.Observed && s.Kind != KindDeterministic {
		return torch.Tensor{}
	}
	return s.Value
}

func pointwise(s *Site) torch.Tensor {
	if s.Kind != KindSample || !s.Observed || !s.counts() {
		return torch.Tensor{}
	}
	return s.elementwise()
}

// collected are tensors of the sites at a point.
func (p *Program) collected(take func(*Site) torch.Tensor, x torch.Tensor, batch infer.Batch) Values {
	out := Values{}
	e := &evaluator{program: p, point: infer.Params{Layout: p.layout, Flat: x}, collect: func(s *Site) {
		if t := take(s); t != (torch.Tensor{}) {
			out[s.Name] = torch.Of(torch.Must(t.T().Totype(gotch.Double, false)).MustContiguous(false))
		}
	}}
	execute(p.model, batch, nil, e)
	e.complete()
	return out
}

// portableValues is a plan whose sites are named tensors.
func (p *Program) portableValues(take func(*Site) torch.Tensor, points [][]float64) (*portable.Plan, error) {
	code, err := compileValues(func(x torch.Tensor, batch infer.Batch) Values { return p.collected(take, x, batch) },
		points, p.batch, native.Options{Tier: native.VM})
	if err != nil {
		return nil, err
	}
	plan, machine, err := portableCode(code)
	if err != nil {
		return nil, err
	}
	sites, err := plan.Sites()
	if err != nil {
		return nil, err
	}
	if len(sites) == 0 {
		return nil, errors.New("the model observes nothing: a Factor is not of single data")
	}
	for _, x := range points {
		if err := p.sameValues(take, machine, sites, x); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// sameValues compares the outputs of a machine with the model's.
func (p *Program) sameValues(take func(*Site) torch.Tensor, machine planMachine, sites []draws.Site,
	x []float64) error {
	aux := make([][]float64, len(sites))
	for i, s := range sites {
		aux[i] = make([]float64, s.Size)
	}
	machine.Eval(x, 1, make([]float64, len(x)), aux)
	return torch.Do(func(*torch.Scope) error {
		values := p.collected(take, torch.New(x), p.batch)
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
