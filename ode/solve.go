package ode

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Solve is the solution of a system at some times, of shape [T, n]. y0 is the state at the start, [n]; start is a
// number; times are T numbers that do not decrease, none before the start; params are what the right-hand side gets.
// Each is a torch.Tensor, a *ts.Tensor, a []float64 or a number, in float64 and main memory.
//
// Gradients flow to y0, start and params, and not to times. There are no second derivatives: methods that need them
// (Laplace, EKF) refuse a model with a solution that depends on latent variables.
//
// A solution that blows up or takes more than Options.MaxSteps steps is NaN, and so is one whose start, a latent
// variable, comes after the first time. Other mistakes panic with an [*Error].
func Solve(s *System, y0, start, times any, params ...any) torch.Tensor {
	a := s.arguments(y0, start, times, params)
	solver := a.solver()
	var parts []torch.Tensor
	for _, x := range a.all {
		parts = append(parts, torch.Of(torch.Must(torch.Must(x.T().Detach(false)).Reshape([]int64{-1}, false))))
	}
	out := torch.Must(solver.Apply(torch.Must(ts.Cat(raw.Pointers(parts), 0)), a.check))
	n, count := a.shapes[2][0], a.times
	y := torch.Must(out.Narrow(0, 0, int64(count*n), false))
	if len(a.columns) == 0 {
		return torch.Of(y.MustView([]int64{int64(count), int64(n)}, false))
	}
	// y + J (x − x): the value of y with the derivatives J.
	columns := len(a.columns)
	j := torch.Must(out.Narrow(0, int64(count*n), int64(count*n*columns),
		false)).MustView([]int64{int64(count * n), int64(columns)}, false)
	var moved []torch.Tensor
	for _, x := range a.differ {
		x = torch.Of(torch.Must(x.T().Reshape([]int64{-1}, false)))
		moved = append(moved, x.Sub(torch.Must(x.T().Detach(false))))
	}
	return torch.Of(y.MustAdd(j.MustMv(torch.Cat(0, moved).T(), false), false).MustView([]int64{int64(count),
		int64(n)}, false))
}

// arguments are those of Solve: times, start, y0 and the parameters.
type arguments struct {
	system  *System
	all     []torch.Tensor
	shapes  [][]int
	times   int
	differ  []torch.Tensor // those that gradients are taken in
	columns []int          // and their numbers among (start, y0, params)
	free    bool           // the start is one of them
}

// arguments checks the arguments.
func (s *System) arguments(y0, start, times any, params []any) *arguments {
	if s == nil {
		panic(mistake("the system is nil"))
	}
	a := &arguments{system: s}
	add := func(name string, x any) {
		if v, ok := x.([]float64); ok {
			x = torch.New(v)
		}
		t := torch.Of(x).T()
		if dtype := torch.Must(torch.DTypeOfTensor(torch.Of(t))); dtype != gotch.Double {
			panic(mistake("%s is of type %v: solutions are in float64", name, dtype))
		}
		if device := torch.Must(torch.DeviceOf(torch.Of(t))); device != torch.CPU {
			panic(mistake("%s is on the device %v: solutions are made in main memory", name, device))
		}
		a.all, a.shapes = append(a.all, torch.Of(t)), append(a.shapes, torch.Of(t).Shape())
	}
	add("times", times)
	add("the start", start)
	add("the initial state", y0)
	for i, p := range params {
		add(fmt.Sprintf("parameter %d", i), p)
	}
	switch {
	case len(a.shapes[0]) != 1 || a.shapes[0][0] == 0:
		panic(mistake("times have shape %v, expected [T] with at least one time", a.shapes[0]))
	case len(a.shapes[1]) != 0:
		panic(mistake("the start has shape %v, expected one number, of shape []", a.shapes[1]))
	case len(a.shapes[2]) != 1 || a.shapes[2][0] == 0:
		panic(mistake("the initial state has shape %v, expected [n] with a number for each equation", a.shapes[2]))
	}
	a.times = a.shapes[0][0]
	at := 0
	for i, x := range a.all {
		differs := torch.Must(foreign.RequiresGrad(x.T()))
		size := 1
		for _, k := range a.shapes[i] {
			size *= k
		}
		switch {
		case i == 0 && differs:
			panic(mistake("times depend on latent variables: gradients do not flow to them; write the model in a time that " +
				"is scaled or moved, whose outputs are fixed"))
		case i == 0:
			continue
		case differs && !thread.IsGradientOnly():
			panic(mistake("of a solution only values and first derivatives are known, and this evaluation may need more: use " +
				"a method that takes gradients alone (HMC, NUTS, SGMCMC, an optimiser, a variational fit)"))
		case differs:
			a.free = a.free || i == 1
			a.differ = append(a.differ, x)
			for k := range size {
				a.columns = append(a.columns, at+k)
			}
		}
		at += size
	}
	return a
}

// solver is that of the system for arguments of these shapes.
func (a *arguments) solver() *solver {
	s := a.system
	key := fmt.Sprint(a.shapes, a.columns)
	s.mu.Lock()
	if s.solvers == nil {
		s.solvers = map[string]*solver{}
	}
	one, ok := s.solvers[key]
	if !ok {
		one = &solver{}
		s.solvers[key], s.order = one, append(s.order, key)
	}
	s.mu.Unlock()
	one.once.Do(func() {
		// What this thread records, or maps, is none of the right-hand side's.
		done := make(chan struct{})
		go func() {
			defer close(done)
			// What is not set below remains of a right-hand side that ends its goroutine, as a failed test does.
			made, err := (*cSolver)(nil), error(mistake("the right-hand side ended its goroutine"))
			defer func() {
				if v := recover(); v != nil {
					err = mistake("the right-hand side panicked: %v", v)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				one.cSolver, one.err = made, err
			}()
			made, err = a.build()
		}()
		<-done
	})
	return torch.Must(one, one.err)
}

// check checks times and start where they can be read.
func (a *arguments) check(row []float64) error {
	times, start := row[:a.times], row[a.times]
	for k, t := range times {
		switch {
		case k > 0 && !(t >= times[k-1]):
			return mistake("time %d is %v and comes after %v: times must not decrease", k, t, times[k-1])
		case t-t != 0:
			return mistake("time %d is %v: times must be finite", k, t)
		}
	}
	if !(times[0] >= start) && !a.free {
		return mistake("the first time, %v, is before the start, %v", times[0], start)
	}
	return nil
}

// sizes are how many states and how many numbers of parameters there are.
func (a *arguments) sizes() (n, m int) {
	for _, shape := range a.shapes[3:] {
		size := 1
		for _, k := range shape {
			size *= k
		}
		m += size
	}
	return a.shapes[2][0], m
}

// split cuts the point (t, y, θ) into the arguments of the right-hand side.
func (a *arguments) split(x torch.Tensor) (t, y torch.Tensor, params []torch.Tensor) {
	n := a.shapes[2][0]
	at := 1 + n
	for _, shape := range a.shapes[3:] {
		size := 1
		for _, k := range shape {
			size *= k
		}
		params = append(params, torch.Of(torch.Must(x.T().Narrow(0, int64(at), int64(size),
			false)).MustReshape(torch.Int64s(slices.Clone(shape)),
			false)))
		at += size
	}
	return x.At(0), torch.Of(x.T().MustNarrow(0, 1, int64(n), false)), params
}
