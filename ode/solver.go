package ode

/*
#cgo CFLAGS: -O3 -std=gnu11 -I${SRCDIR}/../infer/native/internal/cc
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include "solve.h"

static void *kelvin_ode_function(void) { return (void *)kelvin_ode_solve; }
static kelvin_ode *kelvin_ode_new(void) { return calloc(1, sizeof(kelvin_ode)); }
static void kelvin_ode_rhs(kelvin_ode *p, void *rhs, void *call) {
  p->rhs = (kelvin_fn)rhs;
  p->call = call;
}
static long kelvin_ode_solutions(kelvin_ode *p) { return p->solutions; }
static long kelvin_ode_steps(kelvin_ode *p) { return p->steps; }
static long kelvin_ode_rejected(kelvin_ode *p) { return p->rejected; }
static long kelvin_ode_evaluations(kelvin_ode *p) { return p->evaluations; }
static long kelvin_ode_ended(kelvin_ode *p, int end) { return p->ends[end]; }
*/
import "C"

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
)

// How a solution ended.
const (
	endTimes  = C.ODE_TIMES  // the times do not increase, or begin before the start
	endBlowUp = C.ODE_BLOWUP // numbers that are not finite, or steps that become too short
	endSteps  = C.ODE_STEPS  // too many steps
	endStiff  = C.ODE_STIFF  // too many steps, and the method's stability bounds them
	endMemory = C.ODE_MEMORY
	ends      = C.ODE_ENDS
)

// problem is what does not change from solution to solution.
type problem struct {
	Rhs            *native.Func // of (t, y, θ), with the outputs f, [n], and its derivatives in y and Columns' θ
	States, Params int          // n and m
	Times          int
	Columns        []int // derivatives, increasing: 0 for the start, 1 + i for y0_i, 1 + n + k for θ_k
	RTol, ATol     float64
	First, Longest float64 // steps; 0 for none given
	Most           int
	Implicit       bool
}

// cSolver is a problem in memory of C. It lives as long as the process: compiled code has its address.
type cSolver struct {
	foreign.Function
	c    *C.kelvin_ode
	rhs  *native.Func
	call func() // has the memory of the call that all calls of rhs are copies of
}

// forever are all solvers. Code that calls one may outlive whoever asked for it.
var forever struct {
	sync.Mutex
	solvers []*cSolver
}

// newCSolver makes a cSolver.
func newCSolver(p problem) (*cSolver, error) {
	main, _, call, done, err := p.Rhs.Addresses()
	if err != nil {
		return nil, err
	}
	c := C.kelvin_ode_new()
	column := (*C.long)(C.malloc(C.size_t(8 * max(len(p.Columns), 1))))
	if c == nil || column == nil {
		return nil, errors.New("there is no memory")
	}
	for i, v := range p.Columns {
		unsafe.Slice(column, len(p.Columns))[i] = C.long(v)
		if v <= p.States {
			c.outer++
		}
	}
	c.n, c.m, c.times, c.columns = C.long(p.States), C.long(p.Params), C.long(p.Times), C.long(len(p.Columns))
	c.column, c.rtol, c.atol = column, C.double(p.RTol), C.double(p.ATol)
	c.first, c.longest, c.most = C.double(p.First), C.double(p.Longest), C.long(p.Most)
	c.work = C.long(p.Rhs.Work())
	if p.Implicit {
		c.method = C.ODE_SDIRK4
	}
	C.kelvin_ode_rhs(c, main, call)
	s := &cSolver{c: c, rhs: p.Rhs, call: done}
	s.Function = foreign.Function{Call: C.kelvin_ode_function(), Self: unsafe.Pointer(c),
		In: p.Times + 1 + p.States + p.Params, Out: p.Times * p.States * (1 + len(p.Columns))}
	forever.Lock()
	defer forever.Unlock()
	forever.solvers = append(forever.solvers, s)
	return s, nil
}

// counts are sums over all solutions.
type counts struct {
	Solutions, Steps, Rejected, Evaluations int
	Ends                                    [ends]int
}

// add adds the counts of a solver.
func (c *counts) add(s *cSolver) {
	c.Solutions += int(C.kelvin_ode_solutions(s.c))
	c.Steps += int(C.kelvin_ode_steps(s.c))
	c.Rejected += int(C.kelvin_ode_rejected(s.c))
	c.Evaluations += int(C.kelvin_ode_evaluations(s.c))
	for i := range c.Ends {
		c.Ends[i] += int(C.kelvin_ode_ended(s.c, C.int(i)))
	}
}

// allCounts are the counts of all solvers.
func allCounts() (c counts) {
	forever.Lock()
	defer forever.Unlock()
	for _, s := range forever.solvers {
		c.add(s)
	}
	return c
}

// minus is what was counted since.
func (c counts) minus(before counts) counts {
	c.Solutions -= before.Solutions
	c.Steps -= before.Steps
	c.Rejected -= before.Rejected
	c.Evaluations -= before.Evaluations
	for i, n := range before.Ends {
		c.Ends[i] -= n
	}
	return c
}
