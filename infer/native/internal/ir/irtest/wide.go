package irtest

/*
#cgo LDFLAGS: -lm
#include <float.h>
#include <math.h>

static int wide_digits(void) { return LDBL_MANT_DIG; }

// The distance of got from the function's value, in units of the last place of a double of that size, at least floor.
static double wide_error(int f, double x, double got, double floor) {
  long double v;
  switch (f) {
  case 0: v = expl(x); break;
  case 1: v = expm1l(x); break;
  case 2: v = logl(x); break;
  case 3: v = log1pl(x); break;
  case 4: v = sinl(x); break;
  case 5: v = cosl(x); break;
  case 6: v = tanhl(x); break;
  case 7: v = erfl(x); break;
  case 8: v = erfcl(x); break;
  default: v = lgammal(x);
  }
  double near = (double)v;
  if (isinf(near) || isinf(got)) return near == got ? 0 : INFINITY;
  double unit = fabs(near) < 0x1p-1022 ? 0x1p-1074 : ldexp(1, ilogb(near) - 52);
  if (unit < floor) unit = floor;
  return (double)(fabsl(got - v) / unit);
}
*/
import "C"

// Functions of the C library in long double, with which back ends compare their own.

// WideNames are the functions that WideError knows.
var WideNames = []string{"exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf", "erfc", "lgamma"}

// WideEnough says whether long double has at least the 64 bits that references need.
func WideEnough() bool { return C.wide_digits() >= 64 }

// WideError is the distance of got from the value of function f of WideNames at x, in units of the last place, or of
// floor where that is larger.
func WideError(f int, x, got, floor float64) float64 {
	return float64(C.wide_error(C.int(f), C.double(x), C.double(got), C.double(floor)))
}
