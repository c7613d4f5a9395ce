package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// model is a model on its data.
type model struct {
	name  string
	model ppl.Model
	batch infer.Batch
	hand  string      // its function in baseline.c; "" for none
	data  [][]float64 // what that reads
}

// measure compiles a model in all tiers, compares and times them.
func (m model) measure(hand *baseline, seconds float64, points int) (row, error) {
	program, err := ppl.Compile(m.model, m.batch)
	if err != nil {
		return row{}, err
	}
	e, err := newEager(program, m.batch)
	if err != nil {
		return row{}, err
	}
	r := row{Name: m.name, Tier: string(native.Eager)}
	x := e.start
	if r.Eager, err = bench.Least(seconds, func() error { _, err := e.at(x, nil); return err }); err != nil {
		return row{}, err
	}
	at, err := e.points(points)
	if err != nil {
		return row{}, err
	}
	for _, tier := range []native.Tier{native.C, native.VM} {
		f, report, err := compile(program, e, m.batch, tier)
		if err != nil {
			if !errors.Is(err, native.ErrNative) {
				return row{}, err
			}
			if r.Reason != "" {
				r.Reason += "; "
			}
			r.Reason += report.Reason
			continue
		}
		grad := make([]float64, len(x))
		us, err := loop(f, x, 1/e.data, seconds)
		if err != nil {
			return row{}, err
		}
		call, err := bench.Least(seconds, func() error { _, err := f.Eval(x, 1/e.data, grad); return err })
		if err != nil {
			return row{}, err
		}
		if tier == native.C {
			r.Call = &call
			r.US, r.Ops, r.Loops, r.Seconds = &us, report.Ops, report.Loops, report.Seconds
		} else {
			r.VM = &us
		}
		first, err := m.first(tier)
		if err != nil {
			return row{}, err
		}
		if tier == native.C {
			r.FirstC = &first
		} else {
			r.FirstVM = &first
		}
		if r.Tier == string(native.Eager) {
			r.Tier = string(tier)
		}
		worst, err := compare(f, at, e.data)
		if err != nil {
			r.Reason += fmt.Sprintf("%s: %v", tier, err)
		}
		r.Error = max(r.Error, worst)
		if tier == native.C && m.hand != "" && hand != nil {
			if _, err := f.Eval(x, 1/e.data, grad); err != nil {
				return row{}, err
			}
			by, err := hand.time(m, x, grad, e.data, seconds)
			if err != nil {
				return row{}, err
			}
			r.Baseline = &by
		}
	}
	f, _, err := compile(program, e, m.batch, native.Replay)
	switch {
	case errors.Is(err, native.ErrNative):
		return r, nil
	case err != nil:
		return row{}, err
	}
	grad := make([]float64, len(x))
	us, err := bench.Least(seconds, func() error { _, err := f.Eval(x, 1/e.data, grad); return err })
	r.Replay = &us
	return r, err
}

// loop is the time of a value and gradient where C goes from one point to the next: without the call from Go.
func loop(f *native.Func, x []float64, weight, seconds float64) (float64, error) {
	const n = 64
	points, grads, values := make([]float64, 0, n*len(x)), make([]float64, n*len(x)), make([]float64, n)
	for range n {
		points = append(points, x...)
	}
	aux := make([][]float64, len(f.Outputs()))
	for i, o := range f.Outputs() {
		size := n
		for _, s := range o.Shape {
			size *= int(s)
		}
		aux[i] = make([]float64, size)
	}
	us, err := bench.Least(seconds, func() error { return f.Rows(points, weight, values, grads, aux) })
	return us / n, err
}

// compile makes native code with an empty cache.
func compile(p *ppl.Program, e *eager, b infer.Batch, tier native.Tier) (*native.Func, native.Report, error) {
	dir, err := os.MkdirTemp("", "kelvin-compiled")
	if err != nil {
		return nil, native.Report{}, err
	}
	defer os.RemoveAll(dir)
	start, err := infer.NewParams(p.Layout(), e.start)
	if err != nil {
		return nil, native.Report{}, err
	}
	return infer.Compile(p.Target(), start, b, native.Options{Tier: tier, CacheDir: dir})
}

// eager is the log posterior as it is.
type eager struct {
	layout   *infer.Layout
	gradient infer.Gradient
	batch    infer.Batch
	start    []float64
	// A target is the mean over its data: N·LogPosterior + LogJacobian is the log density.
	data float64
}

func newEager(p *ppl.Program, b infer.Batch) (*eager, error) {
	gradient, err := infer.NewGradient(p.Target())
	if err != nil {
		return nil, err
	}
	start, err := p.Start(b, 1, 1)
	if err != nil {
		return nil, err
	}
	values, err := start.Values()
	return &eager{p.Layout(), gradient, b, values, float64(max(1, p.Data()))}, err
}

// at is the value, and the gradient where one is wanted.
func (e *eager) at(x, grad []float64) (value float64, err error) {
	err = torch.Do(func(*torch.Scope) error {
		p, err := infer.NewParams(e.layout, x)
		if err != nil {
			return err
		}
		v, err := e.gradient.ValueAndGrad(p, e.batch, 1/e.data)
		if err != nil {
			return err
		}
		value = v.Values[0]
		if grad != nil {
			g, err := torch.ToSlice[float64](v.Grad)
			copy(grad, g)
			return err
		}
		return nil
	})
	return value, err
}

// evaluation is value and gradient at a point, and how far each number moves where the point moves by rounding.
type evaluation struct{ x, numbers, slack []float64 }

// points are random, a third each within 1, 3 and 10 of the start.
func (e *eager) points(n int) ([]evaluation, error) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var out []evaluation
	for k := range n {
		v := evaluation{x: slices.Clone(e.start)}
		for i := range v.x {
			v.x[i] += []float64{1, 3, 10}[k%3] * (2*rng.Float64() - 1)
		}
		v.numbers = e.numbers(v.x)
		v.slack = make([]float64, len(v.numbers))
		for range 4 {
			beside := slices.Clone(v.x)
			for i := range beside {
				beside[i] *= 1 + 8*0x1p-52*float64(1-2*rng.IntN(2))
			}
			for i, n := range e.numbers(beside) {
				v.slack[i] = max(v.slack[i], 16*math.Abs(n-v.numbers[i]))
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// numbers are the value and the gradient; NaN where the density has no value.
func (e *eager) numbers(x []float64) []float64 {
	out := make([]float64, len(x)+1)
	var err error
	if out[0], err = e.at(x, out[1:]); err != nil {
		out[0] = math.NaN()
	}
	return out
}

// compare is the largest difference. The error counts numbers that are finite on one side only.
func compare(f *native.Func, at []evaluation, data float64) (float64, error) {
	worst, apart := 0.0, 0
	for _, v := range at {
		got := make([]float64, len(v.numbers))
		var err error
		if got[0], err = f.Eval(v.x, 1/data, got[1:]); err != nil {
			return worst, err
		}
		if !finite(v.numbers[0]) || !finite(got[0]) {
			if finite(v.numbers[0]) != finite(got[0]) {
				apart++
			}
			continue // a point that every sampler refuses
		}
		largest := 1.0
		for _, g := range v.numbers[1:] {
			if finite(g) {
				largest = max(largest, math.Abs(g))
			}
		}
		for i, want := range v.numbers {
			scale := largest
			if i == 0 {
				scale = max(1, math.Abs(want))
			}
			switch {
			case finite(want) != finite(got[i]):
				apart++
			case finite(want) && finite(v.slack[i]):
				worst = max(worst, (math.Abs(got[i]-want)-v.slack[i])/scale)
			}
		}
	}
	if apart > 0 {
		return worst, fmt.Errorf("%d numbers are finite on one side only", apart)
	}
	return worst, nil
}

func finite(v float64) bool { return v-v == 0 }
