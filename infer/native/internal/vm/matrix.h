// Steps on matrices. Each is repeated over a space.
typedef struct {
  double *p;
  long row, col;
} view;
#define EL(v, i, j) ((v).p[(v).row * (i) + (v).col * (j)])

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
  const kelvin_call *call = (const kelvin_call *)bases[B_CALL];
  if (call->gemm && s->m * s->n * s->k > 8000) {
    call->gemm(s->m, s->n, s->k, a.p, a.row, a.col, b.p, b.row, b.col, out.p, out.row, out.col);
    return;
  }
  for (long i = 0; i < s->m; i++)
    for (long j = 0; j < s->n; j++) {
      double sum = 0;
      for (long k = 0; k < s->k; k++) sum += EL(a, i, k) * EL(b, k, j);
      EL(out, i, j) = sum;
    }
}
static void matmul(const kvm_step *s, char *const *bases) { repeat(s, bases, matmul1); }

// Where a pivot is not positive it is NaN, and so is what follows from it.
static void cholesky1(const kvm_step *s, view out, view a, view b, char *const *bases) {
  (void)b, (void)bases;
  long n = s->n;
  for (long i = 0; i < n; i++) {
    for (long j = 0; j <= i; j++) {
      double sum = EL(a, i, j);
      for (long k = 0; k < j; k++) sum -= EL(out, i, k) * EL(out, j, k);
      EL(out, i, j) = j < i ? sum / EL(out, j, j) : sum > 0 ? __builtin_sqrt(sum) : __builtin_nan("");
    }
    for (long j = i + 1; j < n; j++) EL(out, i, j) = 0;
  }
}
static void cholesky(const kvm_step *s, char *const *bases) { repeat(s, bases, cholesky1); }

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
