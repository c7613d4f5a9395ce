// The operations of kelvin_op on the elements of registers, for one precision and one instruction set: REAL is the type
// of the elements, WORD a whole number of its size, NAME gives the name of a function, MULTIPLY_ADD(a, b, c) is ab + c,
// with one rounding or two. With FAST_ROOTS roots are made of products, to a unit of the last place, where that is
// faster than the processor's own; ROOTS replaces as many numbers by their roots as a vector of VECTOR bytes has.

// A register may be read and written by one operation, at the same element.
#ifndef KELVIN_EACH
#if defined(__clang__)
#define KELVIN_EACH _Pragma("clang loop vectorize(assume_safety)") for (long i = 0; i < n; i++)
#elif defined(__GNUC__)
#define KELVIN_EACH _Pragma("GCC ivdep") for (long i = 0; i < n; i++)
#else
#define KELVIN_EACH for (long i = 0; i < n; i++)
#endif
// Elements that go through an update of ATMC at a time: enough for operations that wait for each other.
#define FEW 128
#endif

// exp(x) - 1 for x <= 0, to about a unit of the last place: with x = k log 2 + r and |r| <= log 2 / 2 it is
// 2^k p + (2^k - 1), with p the series of exp(r) - 1. Adding a large number rounds x / log 2 to k and leaves its bits.
static inline REAL NAME(less)(REAL x) {
  const int single = sizeof(REAL) == 4;
  const REAL magic = single ? 12582912.0 : 6755399441055744.0; // 1.5 2^23, 1.5 2^52
  const REAL high = single ? 0.693145751953125 : 0x1.62e42fee00000p-1;
  const REAL low = single ? 1.428606765330187e-06 : 0x1.a39ef35793c76p-33;
  const REAL least = single ? -25 : -45; // where the result rounds to -1
  x = x < least ? least : x;
  const REAL shifted = MULTIPLY_ADD(x, (REAL)1.44269504088896340736, magic), k = shifted - magic;
  REAL r = MULTIPLY_ADD(k, -high, x);
  r = MULTIPLY_ADD(k, -low, r);
  REAL p;
  if (single) {
    p = 1.0 / 5040;
  } else {
    p = 1.0 / 87178291200;
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 6227020800));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 479001600));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 39916800));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 3628800));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 362880));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 40320));
    p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 5040));
  }
  p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 720));
  p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 120));
  p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 24));
  p = MULTIPLY_ADD(p, r, (REAL)(1.0 / 6));
  p = MULTIPLY_ADD(p, r, (REAL)0.5);
  p = MULTIPLY_ADD(p * r, r, r);
  WORD bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (WORD)((single ? (uint64_t)(uint32_t)bits + 127 : (uint64_t)bits + 1023) << (single ? 23 : 52));
  REAL power;
  memcpy(&power, &bits, sizeof power);
  return MULTIPLY_ADD(power, p, power - 1);
}

// (1 - exp(-x)) / x for x up to 3/8, or 1/64 where it is shorter, by its series: the term after the last is 1.1e-9 at
// most, a fiftieth of a unit of the last place of single precision.
static inline __attribute__((always_inline)) REAL NAME(short_decay)(REAL x, int shorter) {
  REAL p = -1.0 / 24;
  if (!shorter) {
    p = -1.0 / 40320;
    p = MULTIPLY_ADD(p, x, (REAL)(1.0 / 5040));
    p = MULTIPLY_ADD(p, x, (REAL)(-1.0 / 720));
    p = MULTIPLY_ADD(p, x, (REAL)(1.0 / 120));
    p = MULTIPLY_ADD(p, x, (REAL)(-1.0 / 24));
  }
  p = MULTIPLY_ADD(p, x, (REAL)(1.0 / 6));
  p = MULTIPLY_ADD(p, x, (REAL)-0.5);
  return MULTIPLY_ADD(p, x, (REAL)1);
}

static inline REAL NAME(root)(REAL x) {
  return sizeof(REAL) == 4 ? (REAL)__builtin_sqrtf((float)x) : (REAL)__builtin_sqrt((double)x);
}

// The roots of n numbers, in vectors where ROOTS takes that of as many as one has: a compiler leaves roots to the C
// library, which is to set errno.
static inline void NAME(roots)(REAL *x, long n) {
  long vectors = 0; // numbers of them
#ifdef ROOTS
  const long some = (long)(VECTOR / sizeof(REAL));
  vectors = n / some * some;
  for (long i = 0; i < vectors; i += some)
    ROOTS(x + i);
#endif
  for (long i = vectors; i < n; i++)
    x[i] = NAME(root)(x[i]);
}

static inline REAL NAME(within)(REAL x, REAL bound) {
  x = x < -bound ? -bound : x;
  return x > bound ? bound : x;
}

// n/sqrt(x), with n 1 or x, for x of usual size: a number y whose bits are about -1/2 of those of x is within 3.5 %,
// and with e = 1 - xy^2, which is at most 0.07, it is ny/sqrt(1 - e), here by the polynomial in e whose largest
// relative error is least, 2.3e-8. If x is zero the result is finite, or zero.
#ifdef FAST_ROOTS
static inline __attribute__((always_inline)) REAL NAME(over_root)(REAL n, REAL x) {
  WORD bits;
  memcpy(&bits, &x, sizeof bits);
  bits = 0x5f375a86 - (bits >> 1);
  REAL y;
  memcpy(&y, &bits, sizeof y);
  const REAL e = MULTIPLY_ADD(-x * y, y, (REAL)1);
  REAL p = 0.27408355;
  p = MULTIPLY_ADD(p, e, (REAL)0.31393568);
  p = MULTIPLY_ADD(p, e, (REAL)0.37500034);
  p = MULTIPLY_ADD(p, e, (REAL)0.49999834);
  return MULTIPLY_ADD(n * y * e, p, n * y);
}

// Whether all numbers are such, with zeros if allowed.
static int NAME(usual)(const REAL *x, long n, REAL plus, int zeros) {
  int bad = 0;
  KELVIN_EACH {
    const REAL y = x[i] + plus;
    bad |= !(y >= (REAL)1e-30 && y <= (REAL)1e30) & !(zeros && y == 0);
  }
  return !bad;
}

// Whether a kick has short steps: 0 for no, 1, or 2 for shorter ones. Positive numbers are in the order of their bits,
// and those of NaN come last.
static int NAME(gentle)(const REAL *xi, REAL h, REAL friction, long n) {
  WORD most = 0;
  KELVIN_EACH {
    WORD bits;
    memcpy(&bits, xi + i, sizeof bits);
    most = bits > most ? bits : most;
  }
  REAL largest;
  memcpy(&largest, &most, sizeof largest);
  largest = largest < friction ? friction : largest;
  return h * largest <= (REAL)0.015625 ? 2 : h * largest <= (REAL)0.375;
}
#endif

// The slowness of relativistic momenta within bounds is 1/sqrt(1 + limit p^2). Without FAST_ROOTS this is 1 + limit p^2
// alone, and end_slowness takes the roots of many at a time.
static inline __attribute__((always_inline)) REAL NAME(begin_slowness)(REAL p, REAL limit, REAL bound) {
  const REAL q = NAME(within)(p, bound), x = MULTIPLY_ADD(limit * q, q, (REAL)1);
#ifdef FAST_ROOTS
  return NAME(over_root)(1, x);
#else
  return x;
#endif
}

static inline __attribute__((always_inline)) void NAME(end_slowness)(REAL *r, long n) {
#ifndef FAST_ROOTS
  NAME(roots)(r, n);
  KELVIN_EACH r[i] = 1 / r[i];
#endif
}

// An update of ATMC of n elements from `at` on, at most FEW; see Program.ATMC. relative says whether there is a limit:
// it, and quick, what gentle says, are constants of the call. It is in several loops, because the operations on an
// element wait for each other.
static inline __attribute__((always_inline)) void NAME(few)(const kelvin_op *op, REAL *const *v, REAL *const *to,
                                                            long at, long n, int relative, int quick) {
  const REAL *p = v[op->from[0]] + at, *xi = v[op->from[1]] + at, *z = v[op->from[2]] + at;
  const REAL *g = v[KELVIN_GRAD] + at, *theta = v[KELVIN_THETA] + at;
  REAL *to_p = to[op->from[0]] + at, *to_xi = to[op->from[1]] + at, *to_theta = to[KELVIN_THETA] + at;
  const REAL h = (REAL)op->c[0], friction = (REAL)op->c[1], scale = (REAL)op->c[2], velocity = (REAL)op->c[3];
  const REAL plus = (REAL)op->c[4], limit = (REAL)op->c[5];
  // Beyond it the velocity is the limit's but for rounding, and squares would overflow.
  const REAL bound = relative ? (REAL)(1e15 / __builtin_sqrt(op->c[5])) : 0;
  REAL moved[FEW] __attribute__((aligned(64))), injected[FEW] __attribute__((aligned(64)));
  REAL r[FEW] __attribute__((aligned(64)));
  if (relative) {
    KELVIN_EACH r[i] = NAME(begin_slowness)(p[i], limit, bound);
    NAME(end_slowness)(r, n);
  }
  KELVIN_EACH {
    const REAL most = xi[i] < friction ? friction : xi[i], b = relative ? most * r[i] : most;
    const REAL u = quick ? -(h * b) * NAME(short_decay)(h * b, quick == 2) : NAME(less)(-h * b);
    const REAL k = quick ? h * NAME(short_decay)(h * b, quick == 2) : b > 0 ? -u / b : h;
    const REAL alpha = friction - (xi[i] > friction ? friction : xi[i]);
    injected[i] = alpha * k * (u + 2);
    moved[i] = p[i] + MULTIPLY_ADD(k, g[i], u * p[i]);
  }
  NAME(roots)(injected, n);
  KELVIN_EACH {
    moved[i] = MULTIPLY_ADD(injected[i] * z[i], scale, moved[i]);
    if (relative)
      r[i] = NAME(begin_slowness)(moved[i], limit, bound);
  }
  if (relative)
    NAME(end_slowness)(r, n);
  KELVIN_EACH {
    const REAL m = relative ? NAME(within)(moved[i], bound) * r[i] : moved[i];
    to_p[i] = moved[i];
    to_theta[i] = MULTIPLY_ADD(m, velocity, theta[i]);
    if (relative)
      to_xi[i] = MULTIPLY_ADD(r[i] * r[i] * r[i], plus, MULTIPLY_ADD(m * m, velocity, xi[i]));
    else
      to_xi[i] = MULTIPLY_ADD(m * m, velocity, xi[i]) + plus;
  }
}

static inline __attribute__((always_inline)) void NAME(atmc)(const kelvin_op *op, REAL *const *v, REAL *const *to,
                                                             long n, int relative, int quick) {
  long at = 0;
  for (; at + FEW <= n; at += FEW)
    NAME(few)(op, v, to, at, FEW, relative, quick);
  if (at < n)
    NAME(few)(op, v, to, at, n - at, relative, quick);
}

static inline __attribute__((always_inline)) void NAME(thermal)(const kelvin_op *op, REAL *const *v, REAL *const *to,
                                                                long n, int quick) {
  if (op->c[5] != 0)
    NAME(atmc)(op, v, to, n, 1, quick);
  else
    NAME(atmc)(op, v, to, n, 0, quick);
}

// Does an operation on n elements of the registers v. What it makes goes to the registers `registers`, which may be v.
static void NAME(apply)(const kelvin_op *op, REAL *const *v, REAL *const *registers, long n) {
  REAL *to = registers[op->to];
  const REAL *a = v[op->from[0]], *b = v[op->from[1]], *c = v[op->from[2]], *d = v[op->from[3]];
  const REAL ca = (REAL)op->c[0], cb = (REAL)op->c[1], cc = (REAL)op->c[2], cd = (REAL)op->c[3];
  switch (op->code) {
  case KELVIN_COMBINE:
    switch (op->terms) {
    case 0:
      KELVIN_EACH to[i] = 0;
      break;
    case 1:
      KELVIN_EACH to[i] = ca * a[i];
      break;
    case 2:
      KELVIN_EACH to[i] = MULTIPLY_ADD(b[i], cb, ca * a[i]);
      break;
    case 3:
      KELVIN_EACH to[i] = MULTIPLY_ADD(c[i], cc, MULTIPLY_ADD(b[i], cb, ca * a[i]));
      break;
    default:
      KELVIN_EACH to[i] = MULTIPLY_ADD(d[i], cd, MULTIPLY_ADD(c[i], cc, MULTIPLY_ADD(b[i], cb, ca * a[i])));
    }
    break;
  case KELVIN_COMBINE_PRODUCT:
    if (op->terms == 3) {
      KELVIN_EACH to[i] = MULTIPLY_ADD(b[i] * c[i], cb, ca * a[i]);
    } else {
      KELVIN_EACH to[i] = MULTIPLY_ADD(c[i] * d[i], cc, MULTIPLY_ADD(b[i], cb, ca * a[i]));
    }
    break;
  case KELVIN_MULTIPLY:
    KELVIN_EACH to[i] = ca * (a[i] * b[i]);
    break;
  case KELVIN_DIVIDE:
    KELVIN_EACH to[i] = ca * (a[i] / b[i]);
    break;
  case KELVIN_ROOT:
#ifdef FAST_ROOTS
    if (NAME(usual)(a, n, 0, 1)) {
      KELVIN_EACH to[i] = ca * NAME(over_root)(a[i], a[i]) + cb;
      break;
    }
#endif
    KELVIN_EACH to[i] = a[i];
    NAME(roots)(to, n);
    KELVIN_EACH to[i] = ca * to[i] + cb;
    break;
  case KELVIN_INVERSE_ROOT:
#ifdef FAST_ROOTS
    if (NAME(usual)(a, n, cb, 0)) {
      KELVIN_EACH to[i] = ca * NAME(over_root)(1, a[i] + cb);
      break;
    }
#endif
    KELVIN_EACH to[i] = a[i] + cb;
    NAME(roots)(to, n);
    KELVIN_EACH to[i] = ca / to[i];
    break;
  case KELVIN_SHIFT:
    KELVIN_EACH to[i] = a[i] + ca;
    break;
  case KELVIN_CLAMP:
    KELVIN_EACH {
      const REAL x = a[i] < ca ? ca : a[i];
      to[i] = x > cb ? cb : x;
    }
    break;
  case KELVIN_BELOW:
    KELVIN_EACH to[i] = a[i] < 0 ? 1 : 0;
    break;
  case KELVIN_ATMC:
#ifdef FAST_ROOTS
    switch (NAME(gentle)(b, ca, cb, n)) {
    case 2:
      NAME(thermal)(op, v, registers, n, 2);
      break;
    case 1:
      NAME(thermal)(op, v, registers, n, 1);
      break;
    default:
      NAME(thermal)(op, v, registers, n, 0);
    }
#else
    NAME(thermal)(op, v, registers, n, 0);
#endif
    break;
  }
}
