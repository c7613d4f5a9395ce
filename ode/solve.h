#ifndef KELVIN_ODE_H
#define KELVIN_ODE_H
#include <abi.h>
#include <stdatomic.h>

enum kelvin_ode_method { ODE_DOPRI5, ODE_SDIRK4 };

// A step is longer than this part of the largest of its times: a few roundings.
#define ODE_SHORTEST 1e-15

// How a solution ended.
enum kelvin_ode_end { ODE_DONE, ODE_TIMES, ODE_BLOWUP, ODE_STEPS, ODE_STIFF, ODE_MEMORY, ODE_ENDS };

// A system with all that does not change from solution to solution.
//
// The function makes [times, start, y0, θ] into the solution y at the times, [times][n], and its derivatives,
// [times][n][columns]. A column is the derivative in one number of (start, y0, θ), which `column` names: 0, 1 to n, and
// from 1 + n on. The columns S follow the variational equation dS/dt = J S + ∂f/∂θ along with y, so that they are the
// exact derivatives of the numbers that the steps make of y.
typedef struct kelvin_ode {
  long n, m, times, columns;
  const long *column;
  long outer; // how many columns are of start and y0; those of θ follow
  double rtol, atol, first, longest; // first step and the longest; 0 for none given
  long most;                         // steps
  int method;
  kelvin_fn rhs;
  const kelvin_call *call; // of rhs, whose outputs are f, [n], and ∂f/∂(y, θ of the columns), [n][width]
  long work;               // bytes of rhs
  // Counters over all solutions.
  _Atomic long solutions, steps, rejected, evaluations, ends[ODE_ENDS];
} kelvin_ode;

// One solution. State vectors are y, then the columns one after the other: (1 + columns)·n numbers.
typedef struct ode_run {
  kelvin_ode *p;
  long size;  // of a state vector
  long width; // of a row of derivatives of f: n, and the columns of θ
  const double *times, *theta;
  double start;
  double *out;           // y at the times, and behind them the derivatives
  double *x, *f, *j;     // of rhs: the point, f and its derivatives
  double *grad, value;   // which rhs writes too
  double *largest;       // of each number of the state vector so far, in absolute value
  double *whole;         // errors that a step may make in y where it is largest
  double *units;         // what these are multiplied by in a column: 1 over its parameter, but at most 1
  double *aux[2];
  kelvin_call call;
  long taken, refused, evaluations, written; // steps, and outputs
} ode_run;

void kelvin_ode_solve(const void *self, const double *in, double *out);

// f and its derivatives at (t, y).
void ode_evaluate(ode_run *r, double t, const double *y);
// The derivatives of a state vector that follow from them, in d: f itself, and J S + ∂f/∂θ.
void ode_slopes(const ode_run *r, const double *z, double *d);
// The error that a step may make in y_i however small it is: atol, or a hundredth of what rtol allows where it is
// largest. Rounding is that of the largest number, top.
double ode_least(const ode_run *r, long i, double size, double top);
// The error of a step from a to b relative to what is tolerated: the largest of y and the columns, each the root of its
// mean square.
double ode_norm(const ode_run *r, const double *error, const double *a, const double *b);
// Takes over a step: the columns may have grown.
void ode_accept(ode_run *r, const double *z);
// Whether the next output is at t, or so little later that no step leads there.
int ode_reached(const ode_run *r, double t);
// Writes a state vector as the next output.
void ode_write(ode_run *r, const double *z);
// The first step (Hairer, Nørsett and Wanner 1993, section II.4) of a method of some order.
double ode_first_step(ode_run *r, double t, double end, const double *z, const double *d, double *scratch, int order);

int ode_dopri5(ode_run *r, double *z, double *scratch);
int ode_sdirk4(ode_run *r, double *z, double *scratch);
// State vectors, and other numbers, that the methods need.
enum { ODE_DOPRI5_VECTORS = 13, ODE_SDIRK4_VECTORS = 11 };
#endif
