// KELVIN_PORTABLE is for objects that are linked into programs: the flags that cgo does not take stand here, and each
// function is there for several processors, of which the right one is chosen when the program starts.
#define KELVIN_CLONES
#ifndef KELVIN_PORTABLE
#define KELVIN_LINKAGE visibility("default")
#else
#define KELVIN_LINKAGE weak // two packages of a program may hold the same function
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0
#error "Densities need infinities and NaN: take -ffast-math and -ffinite-math-only out of CGO_CFLAGS."
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#if __GNUC__ >= 12
#define KELVIN_BARRIER
#pragma GCC optimize("associative-math", "no-signed-zeros", "no-tree-reassoc")
#endif
#if defined(__x86_64__) && defined(__GLIBC__)
#if __GNUC__ >= 12
#undef KELVIN_CLONES
#define KELVIN_CLONES , target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")
#endif
#if !defined(KELVIN_LIBMVEC) && __GLIBC_PREREQ(2, 35)
#define KELVIN_LIBMVEC 235
#elif !defined(KELVIN_LIBMVEC) && __GLIBC_PREREQ(2, 22)
#define KELVIN_LIBMVEC 222
#endif
#endif
#endif
#endif

#define KELVIN_INF __builtin_inf()
#define KELVIN_NAN __builtin_nan("")
#define KELVIN_PI 3.14159265358979323846
#define KELVIN_ALIGNED __attribute__((aligned(64)))
#define KELVIN_AT(type, block, offset) ((type *)__builtin_assume_aligned((block) + (offset), 64))
#define KELVIN_BODY __attribute__((noinline KELVIN_CLONES))
#define KELVIN_EXPORT __attribute__((KELVIN_LINKAGE))
#define KELVIN_INLINE static inline __attribute__((always_inline, unused))

// With KELVIN_BARRIER the compiler may reorder sums and products, as reductions need; it may not look into what is
// kept.
#ifdef KELVIN_BARRIER
#define KELVIN_KEEP(x) __builtin_assoc_barrier(x)
#else
#define KELVIN_KEEP(x) (x)
#endif

// A number that the compiler does not know to be 0, and another one with its bits exchanged by it, which is the same.
KELVIN_INLINE int64_t kelvin_nothing(void) {
  int64_t none = 0;
#ifdef KELVIN_BARRIER
  __asm__("" : "+r"(none));
#endif
  return none;
}
KELVIN_INLINE double kelvin_hide(double a, int64_t none) {
  union {
    double d;
    int64_t i;
  } x = {a};
  x.i ^= none;
  return x.d;
}

// KELVIN_LIBMVEC is the version of glibc whose vector library is at hand: 222 or 235.
#if KELVIN_LIBMVEC >= 222
#define KELVIN_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define KELVIN_VECTOR
#endif
#if KELVIN_LIBMVEC >= 235
#define KELVIN_VECTOR_NEW __attribute__((simd("notinbranch"), const))
#else
#define KELVIN_VECTOR_NEW
#endif
double exp(double) KELVIN_VECTOR;
double log(double) KELVIN_VECTOR;
double sin(double) KELVIN_VECTOR;
double cos(double) KELVIN_VECTOR;
double pow(double, double) KELVIN_VECTOR;
double expm1(double) KELVIN_VECTOR_NEW;
double log1p(double) KELVIN_VECTOR_NEW;
double tan(double) KELVIN_VECTOR_NEW;
double asin(double) KELVIN_VECTOR_NEW;
double acos(double) KELVIN_VECTOR_NEW;
double atan(double) KELVIN_VECTOR_NEW;
double sinh(double) KELVIN_VECTOR_NEW;
double cosh(double) KELVIN_VECTOR_NEW;
double tanh(double) KELVIN_VECTOR_NEW;
double erf(double) KELVIN_VECTOR_NEW;
double erfc(double) KELVIN_VECTOR_NEW;
double atan2(double, double) KELVIN_VECTOR_NEW;
double fmod(double, double);

// NaN wins over numbers.
KELVIN_INLINE double kelvin_max(double a, double b) { return (a > b) | (a != a) ? a : b; }
KELVIN_INLINE double kelvin_min(double a, double b) { return (a < b) | (a != a) ? a : b; }
#pragma omp declare reduction(kelvin_max : double : omp_out = kelvin_max(omp_out, omp_in)) \
    initializer(omp_priv = -KELVIN_INF)

// a where the mask is -1, b where it is 0. Compilers cannot vectorise a choice that is the same for all iterations.
KELVIN_INLINE double kelvin_pick(int64_t mask, double a, double b) {
  union {
    double d;
    int64_t i;
  } x = {a}, y = {b};
  x.i = (x.i & mask) | (y.i & ~mask);
  return x.d;
}

KELVIN_INLINE double kelvin_sign(double a) { return (a > 0 ? 1.0 : 0.0) - (a < 0 ? 1.0 : 0.0); }

// The remainder has the sign of b.
KELVIN_INLINE double kelvin_rem(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// A power of two that takes a number away from where its reciprocal overflows or loses bits.
KELVIN_INLINE double kelvin_scale(double y) {
  double m = __builtin_fabs(y);
  return m < 0x1p-1000 ? 0x1p60 : m > 0x1p1000 ? 0x1p-60 : 1.0;
}

// Scaled by a power of two, so that no square overflows or vanishes.
KELVIN_INLINE double kelvin_hypot(double a, double b) {
  double p = __builtin_fabs(a), q = __builtin_fabs(b);
  double m = p > q ? p : q;
  double s = m > 0x1p500 ? 0x1p-600 : m < 0x1p-450 ? 0x1p600 : 1.0;
  double t = m > 0x1p500 ? 0x1p600 : m < 0x1p-450 ? 0x1p-600 : 1.0;
  p *= s;
  q *= s;
  return __builtin_sqrt(p * p + q * q) * t;
}

// The same where a branch costs nothing.
KELVIN_INLINE double kelvin_hypot_one(double a, double b) {
  double s = a * a + b * b;
  return (s > 0x1p-900) & (s < 0x1p1000) ? __builtin_sqrt(s) : kelvin_hypot(a, b);
}
