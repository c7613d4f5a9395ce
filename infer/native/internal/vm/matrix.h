// Steps on matrices. Each is repeated over a space.
typedef void (*matrix_step)(const kvm_step *s, view out, view a, view b, char *const *bases);

FN void repeat(const kvm_step *s, char *const *bases, matrix_step f) {
  int64_t at[8] = {0};
  const kvm_matrix *m[3] = {&s->out, &s->a, &s->b};
  for (;;) {
    view v[3];
    for (int k = 0; k < 3; k++) {
      double *p = (double *)(bases[m[k]->base] + m[k]->off);
      for (int d = 0; d < s->dims; d++) p += s->strides[k][d] * at[d];
      v[k] = (view){p, m[k]->row, m[k]->col};
    }
    f(s, v[0], v[1], v[2], bases);
    int d = s->dims - 1;
    for (; d >= 0; d--) {
      if (++at[d] < s->sizes[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

static void matmul1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  if (s->upper || s->lower || (s->m > 1 && s->n > 1 && s->m * s->n * s->k >= 512)) {
    dense_product(s->m, s->n, s->k, out, a, b, SET, s->upper, s->lower);
    if (s->lower) zero_above(s->n, out);
    return;
  }
  product(s->m, s->n, s->k, out, a, b, (double *)(bases[B_WORK] + s->scratch));
}
static void matmul(const kvm_step *s, char *const *bases) { repeat(s, bases, matmul1); }

// Where a pivot is not positive it is NaN, and so is what follows from it. The rows are computed in out itself where
// they are contiguous there, else in scratch.
static void cholesky1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  (void)b;
  long n = s->n;
  if (n >= 16 && out.col == 1) {
    dense_cholesky(n, out, a);
    return;
  }
  view l = out;
  if (out.col != 1) l = (view){(double *)(bases[B_WORK] + s->scratch), n, 1};
  for (long i = 0; i < n; i++) {
    double *row = l.p + l.row * i;
    for (long j = 0; j < i; j++) row[j] = (EL(a, i, j) - inner(row, l.p + l.row * j, j)) / EL(l, j, j);
    double pivot = EL(a, i, i) - inner(row, row, i);
    row[i] = pivot > 0 ? __builtin_sqrt(pivot) : __builtin_nan("");
    for (long j = i + 1; j < n; j++) row[j] = 0;
  }
  for (long i = 0; l.p != out.p && i < n; i++)
    for (long j = 0; j < n; j++) EL(out, i, j) = EL(l, i, j);
}
static void cholesky(const kvm_step *s, char *const *bases) { repeat(s, bases, cholesky1); }

// Rows of the unknowns, many at a time: the vector runs along the lines.
static void solve_wide(long n, long lines, int upper, int unit, view out, view a, view b) {
  for (long j = 0; j < lines; j += W) {
    M m = first(lines - j < W ? lines - j : W);
    for (long q = 0; q < n; q++) {
      long i = upper ? n - 1 - q : q;
      V sum = splat(0);
      for (long r = 0; r < q; r++) {
        long k = upper ? n - 1 - r : r;
        sum = fma_(splat(EL(a, i, k)), ldm(m, out.p + out.row * k + j), sum);
      }
      V right;
      if (b.col == 1)
        right = ldm(m, b.p + b.row * i + j);
      else {
        double lane[W] = {0};
        for (long l = 0; l < W && j + l < lines; l++) lane[l] = EL(b, i, j + l);
        right = ld(lane);
      }
      right = right - sum;
      if (!unit) right = right / splat(EL(a, i, i));
      stm(m, out.p + out.row * i + j, right);
    }
  }
}

// One line after the other, with contiguous unknowns: by inner products with the rows of a, or where its columns are
// contiguous by subtracting them from what is left.
static void solve_line(long n, int upper, int unit, double *x, view a, const double *b, long step) {
  if (a.col == 1) {
    for (long q = 0; q < n; q++) {
      long i = upper ? n - 1 - q : q, from = upper ? i + 1 : 0;
      double v = b[step * i] - inner(a.p + a.row * i + from, x + from, q);
      x[i] = unit ? v : v / EL(a, i, i);
    }
    return;
  }
  for (long i = 0; i < n; i++) x[i] = b[step * i];
  for (long q = 0; q < n; q++) {
    long k = upper ? n - 1 - q : q, from = upper ? 0 : k + 1, left = n - 1 - q;
    if (!unit) x[k] /= EL(a, k, k);
    const double *column = a.p + a.col * k + from;
    double *to = x + from;
    V v = splat(x[k]);
    long i = 0;
    for (; i + W <= left; i += W) st(to + i, fnma_(ld(column + i), v, ld(to + i)));
    M m = first(left - i);
    if (i < left) stm(m, to + i, fnma_(ldm(m, column + i), v, ldm(m, to + i)));
  }
}

// Out·A = B is Aᵀ·Outᵀ = Bᵀ, so one form is enough.
static void solve1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  (void)bases;
  long n = s->m, lines = s->n;
  int upper = s->upper;
  if (s->right) {
    n = s->n, lines = s->m, upper = !upper;
    out = (view){out.p, out.col, out.row};
    a = (view){a.p, a.col, a.row};
    b = (view){b.p, b.col, b.row};
  }
  if (n >= 8 && lines >= W) {
    dense_solve(n, lines, upper, s->unit, out, a, b);
    return;
  }
  if (out.col == 1 && lines > 1) {
    solve_wide(n, lines, upper, s->unit, out, a, b);
    return;
  }
  if (out.row == 1 && (a.col == 1 || a.row == 1)) {
    for (long j = 0; j < lines; j++) solve_line(n, upper, s->unit, out.p + out.col * j, a, b.p + b.col * j, b.row);
    return;
  }
  for (long q = 0; q < n; q++) {
    long i = upper ? n - 1 - q : q;
    for (long j = 0; j < lines; j++) {
      double sum = EL(b, i, j);
      for (long r = 0; r < q; r++) {
        long k = upper ? n - 1 - r : r;
        sum -= EL(a, i, k) * EL(out, k, j);
      }
      EL(out, i, j) = s->unit ? sum : sum / EL(a, i, i);
    }
  }
}
static void solve(const kvm_step *s, char *const *bases) { repeat(s, bases, solve1); }

static void scan1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  (void)b, (void)bases;
  double v = s->product ? 1 : 0;
  for (long k = 0; k < s->n; k++) {
    v = s->product ? v * EL(a, 0, k) : v + EL(a, 0, k);
    EL(out, 0, k) = v;
  }
}
static void scan(const kvm_step *s, char *const *bases) { repeat(s, bases, scan1); }

static void foreign1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  (void)s, (void)bases;
  kelvin_foreign(b.p, a.p, out.p);
}
static void foreign(const kvm_step *s, char *const *bases) { repeat(s, bases, foreign1); }
