// Dense linear algebra: products, Cholesky factors and triangular systems of any strides, on one thread. All the work
// is done by tiles: TALL rows by up to VECTORS vectors of columns, whose sums stay in registers. What a tile reads of
// its right operand is packed into a slab, rows of WIDE numbers. The order of all sums depends on the sizes alone.
#if KVM_ISA == 2
#define TALL 8 // with 3 vectors, 24 sums in 32 registers
#define VECTORS 3
#elif KVM_ISA == 1
#define TALL 4 // 12 sums in 16 registers
#define VECTORS 3
#elif defined(__aarch64__)
#define TALL 4 // 16 sums in 32 registers
#define VECTORS 4
#else
#define TALL 4 // 8 sums in 16 registers
#define VECTORS 2
#endif
#define WIDE (VECTORS * W) // a multiple of TALL
#define CHUNK 256 // terms of a tile at most: the slab of 48 KB stays in the second cache

typedef double tile[TALL][WIDE];
enum { SET, ADD, SUBTRACT };

// to[r·step + c] = Σ_l a[r][col·l] slab[l][c], l < k, or with that added to it or taken from it, for so many columns c.
#define TILES(vectors)                                                                                                \
  static __attribute__((noinline)) void tiles##vectors(long k, const double *const *a, long col, const double *slab, \
                                                       double *to, long step, long columns, int how) {                \
    V s[TALL][vectors];                                                                                               \
    const double *p[TALL];                                                                                            \
    _Pragma("GCC unroll 8") for (int r = 0; r < TALL; r++) {                                                          \
      p[r] = a[r];                                                                                                    \
      _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) s[r][v] = splat(0);                                   \
    }                                                                                                                 \
    for (long l = 0, at = 0; l < k; l++, at += col, slab += WIDE) {                                                   \
      V x[vectors];                                                                                                   \
      _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) x[v] = ld(slab + v * W);                              \
      _Pragma("GCC unroll 8") for (int r = 0; r < TALL; r++) {                                                        \
        V f = splat(p[r][at]);                                                                                        \
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) s[r][v] = fma_(f, x[v], s[r][v]);                   \
      }                                                                                                               \
    }                                                                                                                 \
    M last = first(columns - (vectors - 1) * W);                                                                      \
    _Pragma("GCC unroll 8") for (int r = 0; r < TALL; r++, to += step)                                                \
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) {                                                   \
      double *at = to + v * W;                                                                                        \
      V value = s[r][v];                                                                                              \
      if (how != SET) {                                                                                               \
        V old = v < vectors - 1 ? ld(at) : ldm(last, at);                                                             \
        if (how == ADD)                                                                                               \
          value = old + value;                                                                                        \
        else                                                                                                          \
          value = old - value;                                                                                        \
      }                                                                                                               \
      if (v < vectors - 1)                                                                                            \
        st(at, value);                                                                                                \
      else                                                                                                            \
        stm(last, at, value);                                                                                         \
    }                                                                                                                 \
  }
TILES(1)
TILES(2)
#if VECTORS > 2
TILES(3)
#endif
#if VECTORS > 3
TILES(4)
#endif

// A tile of rows of a from row i on; where they are fewer than TALL the last one stands in for the rest.
static void tile_of(long k, view a, long i, long rows, const double *slab, double *to, long step, long columns,
                    int how) {
  const double *p[TALL];
  for (long r = 0; r < TALL; r++) p[r] = a.p + a.row * (i + (r < rows ? r : rows - 1));
  switch ((columns + W - 1) / W) {
  case 1:
    tiles1(k, p, a.col, slab, to, step, columns, how);
    return;
  case 2:
    tiles2(k, p, a.col, slab, to, step, columns, how);
    return;
#if VECTORS > 2
  case 3:
    tiles3(k, p, a.col, slab, to, step, columns, how);
    return;
#endif
#if VECTORS > 3
  case 4:
    tiles4(k, p, a.col, slab, to, step, columns, how);
#endif
  }
}

// slab[l][c] = b(l, j + c), and 0 for c beyond the columns.
static void pack(long k, view b, long j, long columns, double *slab) {
  double *p = b.p + b.col * j;
  if (b.col == 1) {
    M last = first(columns - (columns - 1) / W * W);
    for (long l = 0; l < k; l++) {
      long c = 0;
      for (; c + W < columns; c += W) st(slab + l * WIDE + c, ld(p + b.row * l + c));
      st(slab + l * WIDE + c, ldm(last, p + b.row * l + c));
    }
    return;
  }
  for (long l = 0; l < k; l++)
    for (long c = 0; c < WIDE; c++) slab[l * WIDE + c] = c < columns ? p[b.row * l + b.col * c] : 0;
}

FN double updated(int how, double old, double by) { return how == SET ? by : how == ADD ? old + by : old - by; }

static void put(view out, long i, long j, long rows, long columns, int how, tile s) {
  for (long r = 0; r < rows; r++) {
    double *p = out.p + out.row * (i + r) + out.col * j;
    if (out.col != 1) {
      for (long c = 0; c < columns; c++) p[out.col * c] = updated(how, p[out.col * c], s[r][c]);
      continue;
    }
    for (long c = 0; c < columns; c += W) {
      V v = ld(s[r] + c);
      M m = first(columns - c < W ? columns - c : W);
      if (how != SET) {
        V old = ldm(m, p + c);
        v = how == ADD ? old + v : old - v;
      }
      stm(m, p + c, v);
    }
  }
}

// Upper says that a is 0 below its diagonal. Lower asks for the elements on and below the diagonal alone; others may
// have any value.
static void dense_product(long m, long n, long k, view out, view a, view b, int how, int upper, int lower) {
  if (out.col != 1 && out.row == 1 && !upper && !lower) { // outᵀ = bᵀ·aᵀ
    long t = m;
    m = n, n = t;
    view v = turned(a);
    a = turned(b), b = v, out = turned(out);
  }
  double slabs[CHUNK * WIDE] __attribute__((aligned(64)));
  tile s __attribute__((aligned(64)));
  for (long l = 0; l < k; l += CHUNK) {
    long terms = k - l < CHUNK ? k - l : CHUNK, group = CHUNK / terms * WIDE; // columns that are packed at once
    view left = {a.p + a.col * l, a.row, a.col}, right = {b.p + b.row * l, b.row, b.col};
    for (long from = 0; from < n; from += group) {
      long to = n - from < group ? n : from + group;
      for (long j = from; j < to; j += WIDE)
        pack(terms, right, j, to - j < WIDE ? to - j : WIDE, slabs + terms * (j - from));
      for (long i = lower ? from / TALL * TALL : 0; i < m && !(upper && i >= l + terms); i += TALL) {
        long rows = m - i < TALL ? m - i : TALL, none = upper && i > l ? i - l : 0; // leading terms that are 0
        int as = how == SET && l != (upper ? i / CHUNK * CHUNK : 0) ? ADD : how;
        view at = {left.p + a.col * none, a.row, a.col};
        for (long j = from; j < to && !(lower && j >= i + TALL); j += WIDE) {
          const double *slab = slabs + terms * (j - from) + none * WIDE;
          long columns = to - j < WIDE ? to - j : WIDE;
          if (out.col == 1 && rows == TALL) {
            tile_of(terms - none, at, i, rows, slab, &EL(out, i, j), out.row, columns, as);
            continue;
          }
          tile_of(terms - none, at, i, rows, slab, s[0], WIDE, columns, SET);
          put(out, i, j, rows, columns, as, s);
        }
      }
    }
  }
}

static void zero_above(long n, view a) {
  for (long i = 0; i < n; i++)
    for (long j = i + 1; j < n; j++) EL(a, i, j) = 0;
}

// Solves for the unknowns of a tile, t[r] = Σ_{q<=r} a(r, q) x[q], where a is the corner that belongs to them.
static void corner(long rows, view a, int unit, tile t) {
  for (long r = 0; r < rows; r++) {
    V x[VECTORS];
    for (int v = 0; v < VECTORS; v++) x[v] = ld(t[r] + v * W);
    for (long q = 0; q < r; q++) {
      V f = splat(EL(a, r, q));
      for (int v = 0; v < VECTORS; v++) x[v] = fnma_(f, ld(t[q] + v * W), x[v]);
    }
    if (!unit) { // the divisor is scaled so that its reciprocal has all its bits
      double d = EL(a, r, r), size = __builtin_fabs(d), by = size < 0x1p-1000 ? 0x1p60 : size > 0x1p1000 ? 0x1p-60 : 1;
      V up = splat(by), down = splat(1 / (d * by));
      for (int v = 0; v < VECTORS; v++) x[v] = x[v] * up * down;
    }
    for (int v = 0; v < VECTORS; v++) st(t[r] + v * W, x[v]);
  }
}

// a·out = b for the lower triangle a of n unknowns, for all lines. Chunks of unknowns are solved for one after the
// other, and what they give is taken from later ones.
static void dense_solve(long n, long lines, int upper, int unit, view out, view a, view b) {
  if (upper) { // from the last unknown to the first
    a = (view){a.p + (a.row + a.col) * (n - 1), -a.row, -a.col};
    b = (view){b.p + b.row * (n - 1), -b.row, b.col};
    out = (view){out.p + out.row * (n - 1), -out.row, out.col};
  }
  double slab[CHUNK * WIDE] __attribute__((aligned(64)));
  tile s __attribute__((aligned(64)));
  for (long c = 0; c < n; c += CHUNK) {
    long unknowns = n - c < CHUNK ? n - c : CHUNK;
    view from = c == 0 ? b : out;
    view at = {a.p + (a.row + a.col) * c, a.row, a.col}, to = {out.p + out.row * c, out.row, out.col};
    for (long j = 0; j < lines; j += WIDE) {
      long columns = lines - j < WIDE ? lines - j : WIDE;
      pack(unknowns, (view){from.p + from.row * c, from.row, from.col}, j, columns, slab);
      for (long i = 0; i < unknowns; i += TALL) {
        long rows = unknowns - i < TALL ? unknowns - i : TALL;
        tile_of(i, at, i, rows, slab, s[0], WIDE, columns, SET);
        for (long r = 0; r < rows; r++)
          for (long v = 0; v < columns; v += W) st(s[r] + v, ld(slab + (i + r) * WIDE + v) - ld(s[r] + v));
        for (long r = 0; r < rows; r++)
          for (long v = (columns + W - 1) / W * W; v < WIDE; v += W) st(s[r] + v, splat(0));
        corner(rows, (view){at.p + (at.row + at.col) * i, at.row, at.col}, unit, s);
        memcpy(slab + i * WIDE, s, sizeof(double) * WIDE * rows);
        put(to, i, j, rows, columns, SET, s);
      }
    }
    long rest = n - c - unknowns;
    if (!rest) return;
    view later = {out.p + out.row * (c + unknowns), out.row, out.col};
    if (c == 0)
      for (long i = 0; i < rest; i++)
        for (long j = 0; j < lines; j++) EL(later, i, j) = EL(b, unknowns + i, j);
    dense_product(rest, lines, unknowns, later, (view){at.p + at.row * unknowns, at.row, at.col}, to, SUBTRACT, 0, 0);
  }
}

// The factor of a tile on the diagonal, in place: t[r][i] is element (i, r), i < rows. Where a pivot is not positive it
// is NaN, and so is what follows from it.
static void pivots(long rows, tile t) {
  for (long r = 0; r < rows; r++) {
    for (long q = 0; q < r; q++)
      for (long i = r; i < rows; i++) t[r][i] -= t[q][r] * t[q][i];
    double d = t[r][r] > 0 ? __builtin_sqrt(t[r][r]) : __builtin_nan("");
    t[r][r] = d;
    for (long i = r + 1; i < rows; i++) t[r][i] /= d;
  }
}

// The factor of columns c to c + columns, of which out has what earlier columns have left, and all rows below. WIDE
// rows at a time are transposed into a slab.
static void panel(long n, long c, long columns, view out) {
  double slab[CHUNK * WIDE] __attribute__((aligned(64)));
  tile s __attribute__((aligned(64)));
  view l = {out.p + (out.row + 1) * c, out.row, 1};
  for (long i = 0; i < n - c; i += WIDE) {
    long rows = n - c - i < WIDE ? n - c - i : WIDE, end = columns < i + rows ? columns : i + rows;
    pack(end, turned(l), i, rows, slab);
    for (long j = 0; j < end; j += TALL) {
      long wide = end - j < TALL ? end - j : TALL;
      tile_of(j, l, j, wide, slab, s[0], WIDE, rows, SET);
      for (long r = 0; r < wide; r++)
        for (long v = 0; v < rows; v += W) st(s[r] + v, ld(slab + (j + r) * WIDE + v) - ld(s[r] + v));
      for (long r = 0; r < wide; r++)
        for (long v = (rows + W - 1) / W * W; v < WIDE; v += W) st(s[r] + v, splat(0));
      long above = j > i ? j - i : 0; // rows of the slab whose elements of these columns are 0
      if (j >= i) {
        tile d;
        for (long r = 0; r < wide; r++)
          for (long q = 0; q < wide; q++) d[r][q] = s[r][above + q];
        pivots(wide, d);
        for (long r = 0; r < wide; r++)
          for (long q = 0; q <= r; q++) EL(l, j + r, j + q) = d[q][r];
      }
      corner(wide, (view){&EL(l, j, j), out.row, 1}, 0, s);
      if (j >= i) // from the factor itself, whose rounding the corner does not repeat
        for (long r = 0; r < wide; r++)
          for (long q = 0; q < wide; q++) s[r][above + q] = q < r ? 0 : EL(l, j + q, j + r);
      memcpy(slab + j * WIDE, s, sizeof(double) * WIDE * wide);
      for (long q = above; q < rows; q++)
        for (long r = 0; r < wide && j + r <= i + q; r++) EL(l, i + q, j + r) = s[r][q];
    }
  }
}

// out·outᵀ = a for a lower triangle out with contiguous rows, whose upper triangle is 0. Of a the lower one is read.
static void dense_cholesky(long n, view out, view a) {
  for (long i = 0; i < n; i++) {
    for (long j = 0; j <= i; j++) EL(out, i, j) = EL(a, i, j);
    for (long j = i + 1; j < n; j++) EL(out, i, j) = 0;
  }
  for (long c = 0; c < n; c += CHUNK) {
    long columns = n - c < CHUNK ? n - c : CHUNK, end = c + columns;
    panel(n, c, columns, out);
    if (end == n) return;
    view below = {&EL(out, end, c), out.row, 1};
    dense_product(n - end, n - end, columns, (view){&EL(out, end, end), out.row, 1}, below, turned(below), SUBTRACT, 0,
                  1);
    for (long i = end; i < n; i++) // what the tiles on the diagonal have above it
      for (long j = i + 1; j < n && j < i + WIDE + TALL; j++) EL(out, i, j) = 0;
  }
}

// The same with the arguments of kelvin_dense, which only reads what is const.
FN view matrix(const double *p, long row, long col) { return (view){(double *)(uintptr_t)p, row, col}; }

static void product_of(long m, long n, long k, int upper, int lower, const double *a, long ar, long ac, const double *b,
                       long br, long bc, double *c, long cr, long cc) {
  dense_product(m, n, k, matrix(c, cr, cc), matrix(a, ar, ac), matrix(b, br, bc), SET, upper, lower);
  if (lower) zero_above(n, matrix(c, cr, cc));
}
static void cholesky_of(long n, const double *a, long ar, long ac, double *c, long cr) {
  dense_cholesky(n, matrix(c, cr, 1), matrix(a, ar, ac));
}
static void solve_of(long n, long columns, int upper, int unit, const double *a, long ar, long ac, const double *b,
                     long br, long bc, double *c, long cr, long cc) {
  dense_solve(n, columns, upper, unit, matrix(c, cr, cc), matrix(a, ar, ac), matrix(b, br, bc));
}
