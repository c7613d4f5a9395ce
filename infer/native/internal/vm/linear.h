// Kernels of several terms each. Operand 1 is read once for all of them, and the results stay in registers. The terms
// are in the pool at p; there are q of them, at least 2 and at most 4.

static void addresses(const kvm_instr *in, char *const *bases, int k, double **to) {
  const kvm_term *t = (const kvm_term *)(bases[B_POOL] + in->p);
  for (long i = 0; i < in->q; i++) to[i] = (double *)(bases[t[i].base[k]] + t[i].off[k]);
}

// d = c + Σ a_k·b_k for arrays a_k and numbers b_k, in this order. Flag 8: c is subtracted.
FN void linear(int terms, int form, double *d, const double *c, V start, double *const *a, const V *b, long n) {
  long i = 0;
  for (; i + W <= n; i += W) {
    V s = form == 0 ? ld(c + i) : form == 1 ? neg_(ld(c + i)) : start;
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) s = fma_(ld(a[k] + i), b[k], s);
    st(d + i, s);
  }
  if (i < n) {
    V s = form == 0 ? ldn(n - i, c + i) : form == 1 ? neg_(ldn(n - i, c + i)) : start;
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) s = fma_(ldn(n - i, a[k] + i), b[k], s);
    stn(n - i, d + i, s);
  }
}

KERNEL(k_linear) {
  const kvm_term *t = (const kvm_term *)(bases[B_POOL] + in->p);
  double *d = AT(0), *a[4], *f[4];
  const double *c = AT(1);
  addresses(in, bases, 0, a);
  addresses(in, bases, 1, f);
  V b[4], start = splat(in->flags >> 8 & 1 ? -*c : *c);
  for (long k = 0; k < in->q; k++) b[k] = splat(t[k].minus ? -*f[k] : *f[k]);
  int form = SINGLE(1) ? 2 : in->flags >> 8 & 1;
#define LINEAR(terms)                                                                                                 \
  case 3 * (terms): linear(terms, 0, d, c, start, a, b, n); break;                                                    \
  case 3 * (terms) + 1: linear(terms, 1, d, c, start, a, b, n); break;                                                \
  case 3 * (terms) + 2: linear(terms, 2, d, c, start, a, b, n); break;
  switch (3 * in->q + form) { LINEAR(2) LINEAR(3) LINEAR(4) }
}

// Σ c·a_k for each k, to the second place of the term. Two accumulators for each; their order depends on n alone.
FN void dots(int terms, const double *c, double *const *a, double *sums, long n) {
  V s[4], u[4];
#pragma GCC unroll 4
  for (int k = 0; k < terms; k++) s[k] = u[k] = splat(0);
  long i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    V x = ld(c + i), y = ld(c + i + W);
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) {
      s[k] = fma_(x, ld(a[k] + i), s[k]);
      u[k] = fma_(y, ld(a[k] + i + W), u[k]);
    }
  }
  for (; i + W <= n; i += W) {
    V x = ld(c + i);
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) s[k] = fma_(x, ld(a[k] + i), s[k]);
  }
  if (i < n) {
    M m = first(n - i);
    V x = ldm(m, c + i);
#pragma GCC unroll 4
    for (int k = 0; k < terms; k++) u[k] = fma_(x, ldm(m, a[k] + i), u[k]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < terms; k++) sums[k] = hsum(s[k] + u[k]);
}

KERNEL(k_dots) {
  double *a[4], *to[4], sums[4];
  addresses(in, bases, 0, a);
  addresses(in, bases, 1, to);
  switch (in->q) {
  case 2: dots(2, AT(1), a, sums, n); break;
  case 3: dots(3, AT(1), a, sums, n); break;
  case 4: dots(4, AT(1), a, sums, n); break;
  }
  for (long k = 0; k < in->q; k++) *to[k] = FRESH ? sums[k] : *to[k] + sums[k];
}
