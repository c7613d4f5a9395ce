// Kernels: one instruction on n elements. An operand is an array, or one number where its flag says so. Operands may be
// the same array, element by element.
typedef void (*kernel)(const kvm_instr *in, char **bases, long n);
#define KERNEL(name) static void name(const kvm_instr *in, char **bases, long n)
#define AT(k) ((double *)(bases[in->base[k]] + in->off[k]))
#define SINGLE(k) (in->flags >> (k) & 1)

#define UNARY_KERNEL(f)                                                                                               \
  KERNEL(k_##f) {                                                                                                     \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1);                                                                                          \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, v##f(ld(a + i)));                                                            \
    if (i < n) stn(n - i, d + i, v##f(ldn(n - i, a + i)));                                                            \
  }
UNARY(UNARY_KERNEL)

#define BINARY_KERNEL(f)                                                                                              \
  KERNEL(k_##f##_vv) {                                                                                                \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1), *b = AT(2);                                                                              \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, v##f(ld(a + i), ld(b + i)));                                                 \
    if (i < n) stn(n - i, d + i, v##f(ldn(n - i, a + i), ldn(n - i, b + i)));                                         \
  }                                                                                                                   \
  KERNEL(k_##f##_vs) {                                                                                                \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1);                                                                                          \
    V b = splat(*AT(2));                                                                                              \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, v##f(ld(a + i), b));                                                         \
    if (i < n) stn(n - i, d + i, v##f(ldn(n - i, a + i), b));                                                         \
  }                                                                                                                   \
  KERNEL(k_##f##_sv) {                                                                                                \
    double *d = AT(0);                                                                                                \
    const double *b = AT(2);                                                                                          \
    V a = splat(*AT(1));                                                                                              \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, v##f(a, ld(b + i)));                                                         \
    if (i < n) stn(n - i, d + i, v##f(a, ldn(n - i, b + i)));                                                         \
  }
BINARY(BINARY_KERNEL)

// A division of an array by one number is a product with the reciprocal, whose error is at most 1.5 ulp, unless the
// reciprocal is subnormal or infinite.
KERNEL(k_quotient) {
  double b = *AT(2), r = 1 / b;
  if (!(__builtin_fabs(r) >= 0x1p-1022 && __builtin_fabs(r) < INF)) {
    k_div_vs(in, bases, n);
    return;
  }
  double *d = AT(0);
  const double *a = AT(1);
  V v = splat(r);
  long i = 0;
  for (; i + W <= n; i += W) st(d + i, ld(a + i) * v);
  if (i < n) stn(n - i, d + i, ldn(n - i, a + i) * v);
}

// Forms of fused sums of products: the first factor is an array; the second and the summand are arrays or numbers.
#define TERNARY_KERNEL(name, f, LOAD_B, LOAD_C)                                                                       \
  KERNEL(name) {                                                                                                      \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1), *b = AT(2), *c = AT(3);                                                                  \
    V sb = splat(*b), sc = splat(*c);                                                                                 \
    (void)sb, (void)sc;                                                                                               \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, f(ld(a + i), LOAD_B(b, ld(b + i)), LOAD_C(c, ld(c + i))));                   \
    if (i < n) stn(n - i, d + i, f(ldn(n - i, a + i), LOAD_B(b, ldn(n - i, b + i)), LOAD_C(c, ldn(n - i, c + i))));   \
  }
#define ARRAY(name, load) (load)
#define NUMBER(name, load) (s##name)
#define TERNARY_FORMS(name, f)                                                                                        \
  TERNARY_KERNEL(k_##name##_vvv, f, ARRAY, ARRAY)                                                                     \
  TERNARY_KERNEL(k_##name##_vvs, f, ARRAY, NUMBER)                                                                    \
  TERNARY_KERNEL(k_##name##_vsv, f, NUMBER, ARRAY)                                                                    \
  TERNARY_KERNEL(k_##name##_vss, f, NUMBER, NUMBER)
TERNARY_FORMS(fma, fma_)
TERNARY_FORMS(fms, fms_)
TERNARY_FORMS(fnma, fnma_)

// An operand of either form, for kernels without functions of their own for each.
#define ANY(k, i) (SINGLE(k) ? single[k] : ld(AT(k) + (i)))
#define ANYM(k, i) (SINGLE(k) ? single[k] : ldn(n - (i), AT(k) + (i)))
#define SINGLES(count)                                                                                                \
  V single[5];                                                                                                        \
  for (int k_ = 1; k_ <= (count); k_++) single[k_] = splat(*AT(k_));

KERNEL(k_move) {
  double *d = AT(0);
  SINGLES(1)
  long i = 0;
  for (; i + W <= n; i += W) st(d + i, ANY(1, i));
  if (i < n) stn(n - i, d + i, ANYM(1, i));
}

KERNEL(k_select) {
  double *d = AT(0);
  SINGLES(3)
  long i = 0;
  for (; i + W <= n; i += W) st(d + i, sel(ne(ANY(1, i), splat(0)), ANY(2, i), ANY(3, i)));
  if (i < n) stn(n - i, d + i, sel(ne(ANYM(1, i), splat(0)), ANYM(2, i), ANYM(3, i)));
}

#define IF_KERNEL(compare)                                                                                            \
  KERNEL(k_if_##compare) {                                                                                            \
    double *d = AT(0);                                                                                                \
    SINGLES(4)                                                                                                        \
    long i = 0;                                                                                                       \
    for (; i + W <= n; i += W) st(d + i, sel(compare(ANY(1, i), ANY(2, i)), ANY(3, i), ANY(4, i)));                   \
    if (i < n) stn(n - i, d + i, sel(compare(ANYM(1, i), ANYM(2, i)), ANYM(3, i), ANYM(4, i)));                       \
  }
IF_KERNEL(lt)
IF_KERNEL(le)
IF_KERNEL(eq)
IF_KERNEL(ne)
#include "memory.h"
#include "reduce.h"
#include "linear.h"
