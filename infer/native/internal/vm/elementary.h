// Exponentials, logarithms, sines and cosines. Error at most 1 ulp unless stated, 1.5 without fused multiplication.
#include "coefficients.h"

// Σ c_i x^i, even and odd powers apart, so that two chains run side by side.
FN V poly(V x, const double *c, int n) {
  V square = x * x, top = splat(c[n - 1]), below = splat(c[n - 2]);
#pragma GCC unroll 16
  for (int i = n - 3; i > 0; i -= 2) {
    top = fma_(top, square, splat(c[i]));
    below = fma_(below, square, splat(c[i - 1]));
  }
  if (n % 2) return fma_(fma_(top, x, below), x, splat(c[0])); // n odd: top has odd powers, then
  return fma_(top, x, below);
}

FN V clamp(V x, double lo, double hi) { // NaN stays
  x = sel(lt(x, splat(lo)), splat(lo), x);
  return sel(lt(splat(hi), x), splat(hi), x);
}

#define LOG2E 0x1.71547652b82fep+0

// exp(x + tail)·2^-k = 1 + p for a small tail. x = k·log 2 + r.
FN V exp_part(V x, V tail, V *k) {
  V t = fma_(x, splat(LOG2E), splat(MAGIC));
  *k = t - splat(MAGIC);
  V r = fnma_(*k, splat(LN2_0), x);
  V lo = fnma_(*k, splat(LN2_1), tail);
  V s = r + lo;
  V rest = (r - s) + lo;
  return s + fma_(s * s, poly(s, c_exp, 11), rest);
}

FN V vexp(V x) {
  V k, c = clamp(x, -746, 710);
  V p = exp_part(c, splat(0), &k);
  return scale_(splat(1) + p, k);
}

FN V vexpm1(V x) {
  V c = clamp(x, -50, 710), k;
  V t = fma_(c, splat(LOG2E), splat(MAGIC));
  k = t - splat(MAGIC);
  V hi = fnma_(k, splat(LN2_0), c), lo = k * splat(LN2_1);
  V r = hi - lo;
  lo = (hi - r) - lo;
  // 2^k (1 - 2^-k + (e^r - 1)), of which the first terms are added without loss.
  V a = splat(1) - scale_(splat(1), -k);
  V s = a + r;
  V rest = (a - s) + r;
  V y = scale_(s + (rest + fma_(r * r, poly(r, c_exp, 11), lo)), k);
  return sel(eq(x, splat(0)), x, y);
}

// The logarithm of (1 + f)·2^e, plus tail, for 1 + f between √½ and √2: with s = f/(2+f), log(1+f) is 2 atanh(s).
FN V log_part(V f, V e, V tail) {
  V s = f / (splat(2) + f);
  V z = s * s, half = splat(0.5) * f * f;
  V q = fma_(z, poly(z, c_log, 7), half);
  return fma_(e, splat(LN2_0), f - (half - fma_(s, q, fma_(e, splat(LN2_1), tail))));
}

// x = m·2^e with m between √½ and √2, for a normal x above 0.
FN V split(V x, V *e) {
  U shifted = (U)bits(x) - 0x3fe6a09e667f3bcdULL + (1024ULL << 52);
  *e = real((I)((shifted >> 52) | 0x4330000000000000ULL)) - splat(0x1p52 + 1024);
  return real(bits(x) - (I)(((shifted >> 52) - 1024) << 52));
}

#define INF __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")

FN V vlog(V x) {
  V e, least = splat(0x1p-1022);
  M small = lt(x, least);
  V m = split(sel(small, x * splat(0x1p54), x), &e);
  V y = log_part(m - splat(1), e - sel(small, splat(54), splat(0)), splat(0));
  y = sel(mand(lt(splat(0), x), lt(x, splat(INF))), y, splat(NOT_A_NUMBER));
  y = sel(eq(x, splat(0)), splat(-INF), y);
  return sel(eq(x, splat(INF)), x, y);
}

// 1 + x = u + c without error; u = m·2^e, so log(1+x) = log(m + c·2^-e) + e·log 2, where c·2^-e/m needs few digits.
FN V vlog1p(V x) {
  V u = splat(1) + x, e;
  V c = sel(lt(x, splat(1)), x - (u - splat(1)), splat(1) - (u - x));
  V f = split(u, &e) - splat(1);
  V few = fnma_(f, fnma_(f, fnma_(f, splat(1) - f, splat(1)), splat(1)), splat(1));
  V tail = sel(lt(e, splat(60)), c * two_to(-clamp(e, -60, 60)), splat(0));
  V y = log_part(f, e, tail * few);
  y = sel(mand(lt(splat(-1), x), lt(x, splat(INF))), y, splat(NOT_A_NUMBER));
  y = sel(eq(x, splat(-1)), splat(-INF), y);
  return sel(mor(eq(x, splat(INF)), eq(x, splat(0))), x, y);
}

// x = k·π/2 + r + lo with |r| <= π/4, for |x| up to 2^18: π/2 is a sum of numbers of 33 bits, whose products with k are
// exact.
FN V reduce(V x, V *lo, I *quadrant) {
  V k = rint_(x * splat(0x1.45f306dc9c883p-1));
  *quadrant = low(k);
  V a = fnma_(k, splat(HALF_PI_0), x);
  V t = k * splat(HALF_PI_1), b = a - t;
  V lost = (a - b) - t;
  V u = fms_(k, splat(HALF_PI_2), lost);
  V r = b - u;
  *lo = fnma_(k, splat(HALF_PI_3), (b - r) - u);
  return r;
}

FN V sine(V r, V lo) {
  V z = r * r;
  return r + fma_(z * r, poly(z, c_sin, 7), fnma_(splat(0.5) * z, lo, lo));
}

FN V cosine(V r, V lo) {
  V z = r * r, half = splat(0.5) * z, w = splat(1) - half;
  return w + (((splat(1) - w) - half) + fma_(z * z, poly(z, c_cos, 7), -(r * lo)));
}

// sin for turn 0, cos for turn 1.
FN V wave(V x, int turn) {
  V lo;
  I q;
  V r = reduce(x, &lo, &q);
  q += turn;
  M odd = ne(real((q & 1) << 62), splat(0));
  V y = sel(odd, cosine(r, lo), sine(r, lo));
  return real(bits(y) ^ ((q & 2) << 62));
}

FN M beyond(V x) { return mnot(lt(abs_(x), splat(0x1p18))); } // also NaN

// Where an argument is huge, which is rare, the C library reduces it.
FN V vsin(V x) {
  V y = sel(eq(x, splat(0)), x, wave(x, 0));
  return any(beyond(x)) ? sel(beyond(x), LANES(sin, x), y) : y;
}
FN V vcos(V x) {
  V y = wave(x, 1);
  return any(beyond(x)) ? sel(beyond(x), LANES(cos, x), y) : y;
}

// Up to 0.55 by a polynomial, then 1 - 2/(exp(2x) + 1).
FN V vtanh(V x) {
  V a = abs_(x), z = x * x;
  V near = fma_(x * z, poly(z, c_tanh, 11), x);
  V far = splat(1) - splat(2) / (vexp(a + a) + splat(1));
  return sign_of(sel(lt(a, splat(0.55)), near, far), x);
}

// Scaled by the larger number; NaN before infinity.
FN V vhypot(V a, V b) {
  a = abs_(a), b = abs_(b);
  V most = sel(lt(a, b), b, a), least = sel(lt(a, b), a, b);
  V r = least / most;
  V h = most * sqrt_(fma_(r, r, splat(1)));
  h = sel(mor(eq(most, splat(0)), eq(most, splat(INF))), most, h);
  return sel(mor(nan_(a), nan_(b)), a + b, h);
}
