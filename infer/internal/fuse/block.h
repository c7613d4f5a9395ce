// A block of a pass, see elements.h for what is to be defined. NORMAL draws normal numbers, FOUR(x) is the value of a
// vector of four numbers in double precision, those from x on.
#include "elements.h"

// Adds numbers to 32 sums in double precision, the i-th to the one of i mod 32: an order that no instruction set
// changes.
static void NAME(add)(double *sums, const REAL *x, long n) {
  typedef double four __attribute__((vector_size(32), aligned(8)));
  four part[8];
  memcpy(part, sums, sizeof part);
  long i = 0;
  for (; i + 32 <= n; i += 32)
    for (int l = 0; l < 8; l++)
      part[l] += (four)FOUR(x + i + 4 * l);
  memcpy(sums, part, sizeof part);
  for (int l = 0; i < n; i++, l++)
    sums[l] += (double)x[i];
}

// Makes block b of a chain, a tile after the other. A register is what the update began with until an operation writes
// to it.
static void NAME(block)(const void *of, long chain, long b) {
  const job *j = of;
  const kelvin_pass *p = j->pass;
  const long at = b * BLOCK, n = p->dim - at < BLOCK ? p->dim - at : BLOCK;
  REAL scratch[KELVIN_REGISTERS][TILE] __attribute__((aligned(64))), noise[BLOCK] __attribute__((aligned(64)));
  double sums[KELVIN_REGISTERS][32];
  memset(sums, 0, (size_t)p->means * sizeof *sums);
  const REAL *from[KELVIN_REGISTERS];
  REAL *to[KELVIN_REGISTERS];
  const char *rows[2 * KELVIN_REGISTERS]; // what comes from far and goes there
  int far = 0;
  for (int r = 0; r < KELVIN_REGISTERS; r++) {
    from[r] = 0;
    to[r] = 0;
    if (p->kinds[r] == KELVIN_ROWS || p->kinds[r] == KELVIN_ALIKE)
      from[r] = (const REAL *)p->from[r] + (p->kinds[r] == KELVIN_ROWS ? chain * p->dim : 0) + at;
    if (p->kinds[r] == KELVIN_ROWS && p->to[r])
      to[r] = (REAL *)p->to[r] + chain * p->dim + at;
    if (p->kinds[r] == KELVIN_SINGLE)
      for (long i = 0; i < TILE; i++)
        scratch[r][i] = ((const REAL *)p->from[r])[chain];
    if (j->far && p->kinds[r] == KELVIN_ROWS) {
      rows[far++] = (const char *)from[r];
      if (to[r] && to[r] != from[r])
        rows[far++] = (const char *)to[r];
    }
  }
  const int held = j->held && j->held[chain];
  for (long t = 0; t < n; t += TILE) {
    const long some = n - t < TILE ? n - t : TILE;
    REAL *v[KELVIN_REGISTERS], *out[KELVIN_REGISTERS];
    for (int r = 0; r < KELVIN_REGISTERS; r++) {
      v[r] = from[r] ? (REAL *)from[r] + t : scratch[r];
      out[r] = to[r] ? to[r] + t : scratch[r];
    }
    const char *ahead[2 * KELVIN_REGISTERS];
    for (int r = 0; r < far; r++)
      ahead[r] = rows[r] + (t + DISTANCE) * (long)sizeof(REAL);
    // Of a near update the noise of the block is made at once, which takes a little less.
    if (p->noise && (j->far || t == 0))
      NORMAL(j, j->streams[chain], (uint64_t)(at + t), j->far ? some : n, noise + t, ahead, far);
    v[KELVIN_NOISE] = noise + t;
    for (int o = 0; o < p->count; o++) {
      const kelvin_op *op = &j->ops[o];
      if (op->code == KELVIN_MEAN) {
        if (p->kinds[op->from[0]] != KELVIN_SINGLE)
          NAME(add)(sums[op->to], v[op->from[0]], some);
      } else if (op->code != KELVIN_DRIFT) {
        NAME(apply)(op, v, out, some);
        v[op->to] = out[op->to];
        if (op->code == KELVIN_ATMC) {
          v[KELVIN_THETA] = out[KELVIN_THETA];
          v[op->from[1]] = out[op->from[1]];
        }
      }
    }
    for (int r = 0; r < KELVIN_REGISTERS; r++)
      if (to[r] && (held || v[r] != out[r]))
        memcpy(out[r], from[r] + t, (size_t)some * sizeof(REAL));
  }
  for (int m = 0; m < p->means; m++) {
    double *part = sums[m];
    for (int half = 16; half > 0; half /= 2)
      for (int l = 0; l < half; l++)
        part[l] += part[l + half];
    j->partial[(chain * j->blocks + b) * p->means + m] = part[0];
  }
}

// Makes the numbers of a chain that are not elements, from the means; the mean of such a number is the number.
static inline void NAME(numbers)(const job *j, long chain, double *means) {
  const kelvin_pass *p = j->pass;
  for (int r = 0; r < KELVIN_REGISTERS; r++)
    if (p->kinds[r] == KELVIN_SINGLE && p->to[r])
      ((REAL *)p->to[r])[chain] = ((const REAL *)p->from[r])[chain];
  for (int o = 0; o < p->count; o++) {
    const kelvin_op *op = &j->ops[o];
    if (op->code == KELVIN_MEAN && p->kinds[op->from[0]] == KELVIN_SINGLE)
      means[op->to] = (double)((const REAL *)p->from[op->from[0]])[chain];
    if (op->code == KELVIN_DRIFT && !(j->held && j->held[chain])) {
      REAL *x = (REAL *)p->to[op->to] + chain;
      *x = MULTIPLY_ADD((REAL)means[op->from[0]], (REAL)op->c[0], *x) + (REAL)op->c[1];
    }
  }
}
#undef REAL
#undef WORD
#undef NAME
#undef MULTIPLY_ADD
#undef NORMAL
#undef FAST_ROOTS
#undef VECTOR
#undef ROOTS
#undef FOUR
