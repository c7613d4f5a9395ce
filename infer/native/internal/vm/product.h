// Matrix products.
typedef struct {
  double *p;
  long row, col;
} view;
#define EL(v, i, j) ((v).p[(v).row * (i) + (v).col * (j)])

FN view turned(view v) { return (view){v.p, v.col, v.row}; }

// The inner product of contiguous arrays.
static double inner(const double *a, const double *b, long n) {
  V s = splat(0), t = splat(0);
  long i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    s = fma_(ld(a + i), ld(b + i), s);
    t = fma_(ld(a + i + W), ld(b + i + W), t);
  }
  for (; i + W <= n; i += W) s = fma_(ld(a + i), ld(b + i), s);
  if (i < n) t = fma_(ldm(first(n - i), a + i), ldm(first(n - i), b + i), t);
  return hsum(s + t);
}

// out = a·b for one column b, which is contiguous, and contiguous rows of a: as many rows at a time as a vector has
// lanes, so that their sums come out as one vector.
static void rows_times(long m, long k, double *out, long step, const double *a, long row, const double *b) {
  for (long i = 0; i < m; i += W) {
    V s[W];
    int here = m - i < W ? (int)(m - i) : W;
#pragma GCC unroll 8
    for (int r = 0; r < W; r++) s[r] = splat(0);
    const double *p = a + row * i;
    long l = 0;
    if (here == W) {
      for (; l + W <= k; l += W) {
        V v = ld(b + l);
#pragma GCC unroll 8
        for (int r = 0; r < W; r++) s[r] = fma_(ld(p + row * r + l), v, s[r]);
      }
      if (l < k) {
        M t = first(k - l);
        V v = ldm(t, b + l);
#pragma GCC unroll 8
        for (int r = 0; r < W; r++) s[r] = fma_(ldm(t, p + row * r + l), v, s[r]);
      }
    } else
      for (int r = 0; r < here; r++)
        for (l = 0; l < k; l += W) {
          M t = first(k - l < W ? k - l : W);
          s[r] = fma_(ldm(t, p + row * r + l), ldm(t, b + l), s[r]);
        }
    V sums = hsums(s);
    if (step == 1)
      stm(first(here), out + i, sums);
    else
      for (int r = 0; r < here; r++) out[step * (i + r)] = sums[r];
  }
}

// Likewise for contiguous columns of a.
static void columns_times(long m, long k, double *out, long step, const double *a, long col, const double *b,
                          long gap) {
  long i = 0;
  for (; i + 4 * W <= m; i += 4 * W) { // four vectors of rows: what lies side by side is read at once
    V s[2][4];
    for (int u = 0; u < 4; u++) s[0][u] = s[1][u] = splat(0);
    long l = 0;
    for (; l + 2 <= k; l += 2)
#pragma GCC unroll 2
      for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
        for (int u = 0; u < 4; u++)
          s[h][u] = fma_(ld(a + i + u * W + col * (l + h)), splat(b[gap * (l + h)]), s[h][u]);
    for (; l < k; l++)
      for (int u = 0; u < 4; u++) s[0][u] = fma_(ld(a + i + u * W + col * l), splat(b[gap * l]), s[0][u]);
    for (int u = 0; u < 4; u++) {
      V sums = s[0][u] + s[1][u];
      if (step == 1)
        st(out + i + u * W, sums);
      else
        for (int r = 0; r < W; r++) out[step * (i + u * W + r)] = sums[r];
    }
  }
  for (; i < m; i += W) {
    M t = first(m - i < W ? m - i : W);
    V s[4] = {splat(0), splat(0), splat(0), splat(0)};
    const double *p = a + i;
    long l = 0;
    for (; l + 4 <= k; l += 4)
#pragma GCC unroll 4
      for (int u = 0; u < 4; u++) s[u] = fma_(ldm(t, p + col * (l + u)), splat(b[gap * (l + u)]), s[u]);
    for (; l < k; l++) s[0] = fma_(ldm(t, p + col * l), splat(b[gap * l]), s[0]);
    V sums = (s[0] + s[1]) + (s[2] + s[3]);
    if (step == 1)
      stm(t, out + i, sums);
    else
      for (long r = 0; r < W && i + r < m; r++) out[step * (i + r)] = sums[r];
  }
}

// A tile of R rows and up to two vectors of columns. The rows of b are contiguous.
#define TILE(R)                                                                                                       \
  FN void tile##R(long k, view a, const double *b, long row, M left, M right, V (*to)[2]) {                           \
    V s[R][2];                                                                                                        \
    _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) s[r][0] = s[r][1] = splat(0);                                 \
    for (long l = 0; l < k; l++) {                                                                                    \
      V x = ldm(left, b + row * l), y = ldm(right, b + row * l + W);                                                  \
      _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) {                                                           \
        V f = splat(EL(a, r, l));                                                                                     \
        s[r][0] = fma_(f, x, s[r][0]);                                                                                \
        s[r][1] = fma_(f, y, s[r][1]);                                                                                \
      }                                                                                                               \
    }                                                                                                                 \
    _Pragma("GCC unroll 4") for (int r = 0; r < R; r++) to[r][0] = s[r][0], to[r][1] = s[r][1];                       \
  }
TILE(1)
TILE(4)

static void product(long m, long n, long k, view out, view a, view b, double *scratch) {
  if (n > 1 && (m == 1 || (out.col != 1 && out.row == 1))) { // outᵀ = bᵀ·aᵀ
    long t = m;
    m = n, n = t;
    view v = turned(a);
    a = turned(b), b = v, out = turned(out);
  }
  if (n == 1 && a.row == 1 && a.col != 1) {
    columns_times(m, k, out.p, out.row, a.p, a.col, b.p, b.row);
    return;
  }
  if (n == 1 && a.col == 1) {
    const double *column = b.p;
    if (b.row != 1) {
      for (long l = 0; l < k; l++) scratch[l] = EL(b, l, 0);
      column = scratch;
    }
    rows_times(m, k, out.p, out.row, a.p, a.row, column);
    return;
  }
  if (b.col != 1 && n > 1) {
    for (long l = 0; l < k; l++)
      for (long j = 0; j < n; j++) scratch[l * n + j] = EL(b, l, j);
    b = (view){scratch, n, 1};
  }
  for (long j = 0; j < n; j += 2 * W) {
    long wide = n - j < 2 * W ? n - j : 2 * W;
    M left = first(wide < W ? wide : W), right = first(wide > W ? wide - W : 0);
    for (long i = 0; i < m;) {
      V s[4][2];
      int rows = m - i < 4 ? 1 : 4;
      view from = {a.p + a.row * i, a.row, a.col};
      if (rows == 4)
        tile4(k, from, b.p + j, b.row, left, right, s);
      else
        tile1(k, from, b.p + j, b.row, left, right, s);
      for (int r = 0; r < rows; r++, i++) {
        double *p = out.p + out.row * i + out.col * j;
        if (out.col == 1) {
          stm(left, p, s[r][0]);
          if (wide > W) stm(right, p + W, s[r][1]);
        } else
          for (long c = 0; c < wide; c++) p[out.col * c] = c < W ? s[r][0][c] : s[r][1][c - W];
      }
    }
  }
}
