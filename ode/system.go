package ode

import (
	"fmt"
	"math"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Func is the right-hand side dy/dt of a system of n equations: of the time, of shape [], the state, [n], and the
// parameters in the shapes that [Solve] is given. It returns a tensor of shape [n].
//
// It is recorded once for all solutions: it must not branch on values, and what it captures is a constant. It runs in
// float64 on tensors of main memory.
type Func func(t, y torch.Tensor, params []torch.Tensor) torch.Tensor

// Method is a way to solve.
type Method int

const (
	// DormandPrince is the explicit pair of orders 5 and 4 (Dormand and Prince 1980) with a PI controller, and outputs by
	// its interpolation of order 4: for systems that are not stiff.
	DormandPrince Method = iota
	// SDIRK is the L-stable, singly diagonally implicit method of order 4 (Hairer and Wanner 1996, table IV.6.5), which
	// steps to each output: for stiff systems.
	SDIRK
)

// Options of a [System]. The zero value is the default.
type Options struct {
	Method Method // default DormandPrince
	// RTol and ATol bound the error that a step may make in each number y, ATol + RTol |y|, as a root of the mean square
	// over the states. The default of RTol is 1e-6. An ATol of 0, the default, is RTol/100 of the largest |y| so far, in
	// each number: the unit of a state does not matter, down to 1e-15 of the largest state.
	//
	// A step's error in a derivative dy/dp is at most RTol |dy/dp| + (ATol + RTol·largest |y|)/max(1, |p|).
	RTol, ATol float64
	MaxSteps   int     // of a solution; default 10000
	FirstStep  float64 // default is found from the right-hand side
	MaxStep    float64 // 0 for no bound
}

// System is a right-hand side and the way to solve it. Any number of goroutines may use it.
type System struct {
	f Func
	o Options

	mu      sync.Mutex
	solvers map[string]*solver // for the shapes of Solve's arguments
	order   []string

	compiling sync.Mutex
	rhs       map[string]*native.Func // for the shapes of y and θ, and the derivatives that are wanted
}

// solver is a system for arguments of some shapes.
type solver struct {
	once sync.Once
	*cSolver
	err error
}

// New makes a system. A bad option is an error of the first [Solve].
func New(f Func, o Options) *System {
	s := &System{f: f, o: o}
	if s.o.RTol == 0 {
		s.o.RTol = 1e-6
	}
	if s.o.MaxSteps == 0 {
		s.o.MaxSteps = 10000
	}
	return s
}

// Error is a mistake in the use of this package.
type Error struct {
	Message string // what is wrong, and what would be right
}

// Error is the message with the name of the package.
func (e *Error) Error() string { return "ode: " + e.Message }

// RecoverAsError makes the panic of [Solve] an error of the function that runs the model.
func (e *Error) RecoverAsError() {}

func mistake(format string, args ...any) *Error { return &Error{fmt.Sprintf(format, args...)} }

// check checks the options.
func (s *System) check() error {
	if s.f == nil {
		return mistake("the right-hand side is nil")
	}
	for _, c := range []struct {
		name  string
		value float64
		zero  bool
	}{{"RTol", s.o.RTol, false}, {"ATol", s.o.ATol, true}, {"FirstStep", s.o.FirstStep, true},
		{"MaxStep", s.o.MaxStep, true}} {
		if !(c.value > 0 || c.zero && c.value == 0) || math.IsInf(c.value, 0) {
			return mistake("Options.%s is %v: it must be finite and greater than 0, or 0 for the default", c.name, c.value)
		}
	}
	if s.o.MaxSteps < 0 {
		return mistake("Options.MaxSteps is %d: it must be greater than 0, or 0 for 10000", s.o.MaxSteps)
	}
	if s.o.Method != DormandPrince && s.o.Method != SDIRK {
		return mistake("Options.Method is %d: it must be ode.DormandPrince or ode.SDIRK", s.o.Method)
	}
	return nil
}
