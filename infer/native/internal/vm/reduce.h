// Reductions. Flag 8: the target gets its first terms, it is not read.
#define FRESH (in->flags >> 8 & 1)
FN double max1(double a, double b) { return a != a || b != b ? a + b : a < b ? b : a; }
FN V vplus(V a, V b) { return a + b; }
FN V vtimes(V a, V b) { return a * b; }
FN double plus1(double a, double b) { return a + b; }
FN double times1(double a, double b) { return a * b; }

// The reduction of n elements with four accumulators, whose order depends on n alone.
#define FOLD(name, f, f1, start, LAST)                                                                                \
  FN double fold_##name(const double *a, long n) {                                                                    \
    if (n == 2 && W > 2) return f1(f1(a[0], a[1]), start);                                                            \
    if (n < W) return LAST(sel(FIRST(n), ldn(n, a), splat(start)), f1);                                               \
    V s[4] = {splat(start), splat(start), splat(start), splat(start)};                                                \
    long i = 0;                                                                                                       \
    for (; i + 4 * W <= n; i += 4 * W)                                                                                \
      _Pragma("GCC unroll 4")                                                                                         \
      for (int k = 0; k < 4; k++) s[k] = f(s[k], ld(a + i + k * W));                                                  \
    for (; i + W <= n; i += W) s[0] = f(s[0], ld(a + i));                                                             \
    if (i < n) s[1] = f(s[1], sel(FIRST(n - i), ldn(n - i, a + i), splat(start)));                             \
    V t = f(f(s[0], s[1]), f(s[2], s[3]));                                                                            \
    return LAST(t, f1);                                                                                               \
  }
#define FIRST(k) first(k)
#define LAST_SUM(t, f1) hsum(t)
#define LAST_EACH(t, f1)                                                                                              \
  ({                                                                                                                  \
    double r_ = (t)[0];                                                                                               \
    _Pragma("GCC unroll 8") for (int k = 1; k < W; k++) r_ = f1(r_, (t)[k]);                                          \
    r_;                                                                                                               \
  })
FOLD(sum, vplus, plus1, 0, LAST_SUM)
FOLD(prod, vtimes, times1, 1, LAST_EACH)
FOLD(max, max_, max1, -__builtin_inf(), LAST_EACH)

#define REDUCE_KERNELS(name, f, f1)                                                                                   \
  KERNEL(k_##name) {                                                                                                  \
    double *d = AT(0), r = fold_##name(AT(1), n);                                                                     \
    *d = FRESH ? r : f1(*d, r);                                                                                       \
  }                                                                                                                   \
  KERNEL(k_rows_##name) { /* rows of q elements; that of row r goes to p·r */                                         \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1);                                                                                          \
    long q = in->q, p = in->p;                                                                                        \
    for (long r = 0; r * q < n; r++) {                                                                                \
      double v = 0;                                                                                                   \
      if (q < W) {                                                                                                    \
        v = a[r * q];                                                                                                 \
        for (long i = 1; i < q; i++) v = f1(v, a[r * q + i]);                                                         \
      } else                                                                                                          \
        v = fold_##name(a + r * q, q);                                                                                \
      d[p * r] = FRESH ? v : f1(d[p * r], v);                                                                         \
    }                                                                                                                 \
  }                                                                                                                   \
  KERNEL(k_each_##name) { /* rows of q elements go to the same q places */                                            \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1);                                                                                          \
    for (long r = 0; r < n; r += in->q) {                                                                             \
      long len = in->q < n - r ? in->q : n - r, i = 0;                                                                \
      for (; i + W <= len; i += W) st(d + i, f(ld(d + i), ld(a + r + i)));                                            \
      long left = len - i;                                                                                            \
      if (left > 0) stn(left, d + i, f(ldn(left, d + i), ldn(left, a + r + i)));                                      \
    }                                                                                                                 \
  }                                                                                                                   \
  KERNEL(k_at_##name) {                                                                                               \
    double *d = AT(0);                                                                                                \
    const double *a = AT(1);                                                                                          \
    for (long i = 0; i < n; i++) {                                                                                    \
      double *to = d + place(in, bases, i);                                                                           \
      *to = f1(*to, a[i]);                                                                                            \
    }                                                                                                                 \
  }
REDUCE_KERNELS(sum, vplus, plus1)
REDUCE_KERNELS(prod, vtimes, times1)
REDUCE_KERNELS(max, max_, max1)

KERNEL(k_dot) {
  double *d = AT(0);
  const double *a = AT(1), *b = AT(2);
  if (n < W) {
    double r = hsum(fma_(ldn(n, a), ldn(n, b), splat(0)));
    *d = FRESH ? r : *d + r;
    return;
  }
  V s[4] = {splat(0), splat(0), splat(0), splat(0)};
  long i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) s[k] = fma_(ld(a + i + k * W), ld(b + i + k * W), s[k]);
  for (; i + W <= n; i += W) s[0] = fma_(ld(a + i), ld(b + i), s[0]);
  if (i < n) s[1] = fma_(ldn(n - i, a + i), ldn(n - i, b + i), s[1]);
  double r = hsum((s[0] + s[1]) + (s[2] + s[3]));
  *d = FRESH ? r : *d + r;
}
