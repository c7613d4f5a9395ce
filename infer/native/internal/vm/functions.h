// The functions of one and two numbers, on vectors.
#include "special.h"

#include "elementary.h"
#include "error.h"
#include "gamma.h"

FN V vneg(V x) { return neg_(x); }
FN V vabs(V x) { return abs_(x); }
FN V vsqrt(V x) { return sqrt_(x); }
FN V vtan(V x) { return LANES(tan, x); }
FN V vasin(V x) { return LANES(asin, x); }
FN V vacos(V x) { return LANES(acos, x); }
FN V vatan(V x) { return LANES(atan, x); }
FN V vsinh(V x) { return LANES(sinh, x); }
FN V vcosh(V x) { return LANES(cosh, x); }
FN V verfinv(V x) { return LANES(kvm_erfinv, x); }
FN V vi0e(V x) { return LANES(kvm_i0e, x); }
FN V vi1e(V x) { return LANES(kvm_i1e, x); }
FN V vfloor(V x) { return floor_(x); }
FN V vceil(V x) { return ceil_(x); }
FN V vtrunc(V x) { return trunc_(x); }
FN V vround(V x) { return rint_(x); }
FN V vsign(V x) { return truth(lt(splat(0), x)) - truth(lt(x, splat(0))); }
FN V visnan(V x) { return truth(nan_(x)); }
FN V visinf(V x) { return truth(eq(abs_(x), splat(__builtin_inf()))); }
FN V vnot(V x) { return truth(eq(x, splat(0))); }

FN V vadd(V a, V b) { return a + b; }
FN V vsub(V a, V b) { return a - b; }
FN V vmul(V a, V b) { return a * b; }
FN V vdiv(V a, V b) { return a / b; }
FN V lanes2(double (*f)(double, double), V a, V b) {
  for (int i = 0; i < W; i++) a[i] = f(a[i], b[i]);
  return a;
}
FN V vpow(V a, V b) { return lanes2(pow, a, b); }
FN V vatan2(V a, V b) { return lanes2(atan2, a, b); }
FN V vrem(V a, V b) { return lanes2(kvm_rem, a, b); }
FN V vmin(V a, V b) { return min_(a, b); }
FN V vmax(V a, V b) { return max_(a, b); }
FN V vlt(V a, V b) { return truth(lt(a, b)); }
FN V vle(V a, V b) { return truth(le(a, b)); }
FN V veq(V a, V b) { return truth(eq(a, b)); }
FN V vne(V a, V b) { return truth(ne(a, b)); }
FN V vand(V a, V b) { return truth(mand(ne(a, splat(0)), ne(b, splat(0)))); }
FN V vor(V a, V b) { return truth(mor(ne(a, splat(0)), ne(b, splat(0)))); }

// In the order of ir.Op: X for what is a few instructions of the processor, Y for what is many.
#define UNARY_OF(X, Y)                                                                                                \
  X(neg) X(abs) X(sqrt) Y(exp) Y(expm1) Y(log) Y(log1p) Y(sin) Y(cos) Y(tan) Y(asin) Y(acos) Y(atan) Y(sinh) Y(cosh) \
  Y(tanh) Y(lgamma) Y(digamma) Y(trigamma) Y(erf) Y(erfc) Y(erfcx) Y(erfinv) Y(i0e) Y(i1e) X(floor) X(ceil) X(trunc) \
  X(round) X(sign) X(isnan) X(isinf) X(not)
#define BINARY_OF(X, Y)                                                                                               \
  X(add) X(sub) X(mul) X(div) Y(pow) Y(hypot) Y(atan2) Y(rem) X(min) X(max) X(lt) X(le) X(eq) X(ne) X(and) X(or)
#define UNARY(X) UNARY_OF(X, X)
#define BINARY(X) BINARY_OF(X, X)
