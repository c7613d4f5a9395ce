package ode

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// Outputs of the compiled right-hand side, in the order of their names.
const (
	outputF = "f"
	outputJ = "jacobian"
)

// build records and compiles the right-hand side, and makes a solver with it.
func (a *arguments) build() (*cSolver, error) {
	if err := a.system.check(); err != nil {
		return nil, err
	}
	n, m := a.sizes()
	rhs, err := a.rhs(n, m)
	if err != nil {
		return nil, err
	}
	o := a.system.o
	return newCSolver(problem{Rhs: rhs, States: n, Params: m, Times: a.times, Columns: a.columns, RTol: o.RTol,
		ATol: o.ATol, First: o.FirstStep, Longest: o.MaxStep, Most: o.MaxSteps, Implicit: o.Method == SDIRK})
}

// rhs is the compiled right-hand side, which solvers for other numbers of times share.
func (a *arguments) rhs(n, m int) (*native.Func, error) {
	s, key := a.system, fmt.Sprint(a.shapes[2:], a.wanted(n))
	s.compiling.Lock()
	defer s.compiling.Unlock()
	if f, ok := s.rhs[key]; ok {
		return f, nil
	}
	f, err := a.compile(n, m)
	if err == nil {
		if s.rhs == nil {
			s.rhs = map[string]*native.Func{}
		}
		s.rhs[key] = f
	}
	return f, err
}

// wanted are the numbers of θ that gradients are taken in, in increasing order.
func (a *arguments) wanted(n int) (numbers []int) {
	for _, c := range a.columns {
		if c > n {
			numbers = append(numbers, c-1-n)
		}
	}
	return numbers
}

// compile makes native code of the right-hand side and its derivatives in y and what is wanted of θ.
func (a *arguments) compile(n, m int) (*native.Func, error) {
	dim := 1 + n + m
	source := native.Source{Dim: dim, Evaluate: func(x torch.Tensor, _ map[string]torch.Tensor) (values,
		grads []torch.Tensor,
		aux map[string]torch.Tensor, err error) {
		f, j, err := a.evaluate(x, n, dim)
		if err != nil {
			return nil, nil, nil, err
		}
		// A plan has a value and a gradient; the outputs are what counts here.
		value := torch.Scalar(0)
		grad, err := torch.FromSlice(make([]float64, dim))
		return []torch.Tensor{value}, []torch.Tensor{grad}, map[string]torch.Tensor{outputF: f, outputJ: j}, err
	}}
	// Nothing is known of the numbers to come; the recording does not depend on them.
	points := make([][]float64, 2)
	for k := range points {
		for i := range dim {
			points[k] = append(points[k], 0.7+0.3*math.Cos(2.4*float64(i)+float64(k)))
		}
	}
	f, report, err := native.Compile(source, points, native.Options{})
	if f == nil && (err == nil || errors.Is(err, native.ErrNative)) {
		// What the environment says of models is not of right-hand sides, which are nothing else than compiled.
		f, report, err = native.Compile(source, points, native.Options{Tier: native.VM})
	}
	switch {
	case errors.Is(err, native.ErrNative):
		return nil, mistake("the right-hand side cannot be compiled: %s", report.Reason)
	case err != nil:
		return nil, err
	}
	return f, a.compare(f, n, points)
}

// evaluate is the right-hand side with its derivatives, [n] and [n, n + wanted].
func (a *arguments) evaluate(x torch.Tensor, n, dim int) (f, j torch.Tensor, err error) {
	err = torch.Do(func(scope *torch.Scope) error {
		leaf, err := torch.Leaf(x)
		if err != nil {
			return err
		}
		t, y, params := a.split(leaf)
		out := a.system.f(t, y, params)
		if have := out.Shape(); !slices.Equal(have, []int{n}) {
			return mistake("the right-hand side returned shape %v for a state of shape [%d]: it must return the derivative "+
				"of each number of the state", have, n)
		}
		f = out
		d, err := f.T().KelvinDescribe()
		if err != nil {
			return err
		}
		wanted := a.wanted(n)
		var rows []torch.Tensor
		for i := range n {
			row := torch.New(make([]float64, n+len(wanted)))
			if d.RequiresGrad {
				grads, err := torch.Grad([]torch.Tensor{f.At(i)}, []torch.Tensor{leaf},
					&torch.GradOptions{KeepGraph: true, AllowUnused: true})
				if err != nil {
					return err
				}
				pieces := []torch.Tensor{torch.Of(grads[0].T().MustNarrow(0, 1, int64(n), false))}
				for _, k := range wanted {
					pieces = append(pieces, torch.Of(grads[0].T().MustNarrow(0, int64(1+n+k), 1, false)))
				}
				row = torch.Cat(0, pieces)
			}
			rows = append(rows, row)
		}
		if f, err = raw.Of(f.T().Detach(false)); err != nil {
			return err
		}
		j, err = raw.Of(ts.Stack(raw.Pointers(rows), 0))
		scope.Keep(f, j)
		return err
	})
	if err != nil {
		var own *Error
		if errors.As(err, &own) {
			return torch.Tensor{}, torch.Tensor{}, own
		}
		return torch.Tensor{}, torch.Tensor{}, fmt.Errorf("ode: the right-hand side: %w", err)
	}
	return f, j, nil
}

// compare compares compiled code with tensors.
func (a *arguments) compare(f *native.Func, n int, points [][]float64) error {
	dim := len(points[0])
	for _, x := range points {
		have := [][]float64{make([]float64, n), make([]float64, n*(n+len(a.wanted(n))))}
		if err := f.Rows(x, 1, make([]float64, 1), make([]float64, dim), have); err != nil {
			return err
		}
		err := torch.Do(func(*torch.Scope) error {
			t, err := torch.FromSlice(x)
			if err != nil {
				return err
			}
			slopes, j, err := a.evaluate(t, n, dim)
			if err != nil {
				return err
			}
			for k, tensor := range []torch.Tensor{slopes, j} {
				want, err := torch.ToSlice[float64](tensor)
				if err != nil {
					return err
				}
				largest := 1.0
				for _, v := range want {
					if v-v == 0 {
						largest = max(largest, math.Abs(v))
					}
				}
				for i, v := range want {
					if h := have[k][i]; v-v == 0 && !(math.Abs(h-v) <= 1e-10*largest) {
						return mistake("the compiled right-hand side gives %v where tensors give %v", h, v)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
