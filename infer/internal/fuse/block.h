// A block of a pass, see elements.h for what is to be defined. NORMAL draws normal numbers.
#include "elements.h"

// The sum in double precision, in an order that no instruction set changes.
static double NAME(sum)(const REAL *x, long n) {
  double part[32] = {0};
  long i = 0;
  for (; i + 32 <= n; i += 32)
    for (int l = 0; l < 32; l++)
      part[l] += (double)x[i + l];
  for (int l = 0; i < n; i++, l++)
    part[l] += (double)x[i];
  for (int half = 16; half > 0; half /= 2)
    for (int l = 0; l < half; l++)
      part[l] += part[l + half];
  return part[0];
}

// Makes block b of a chain. A register is what the update began with until an operation writes to it.
static void NAME(block)(const void *of, long chain, long b) {
  const job *j = of;
  const kelvin_pass *p = j->pass;
  const long at = b * BLOCK, n = p->dim - at < BLOCK ? p->dim - at : BLOCK;
  REAL scratch[KELVIN_REGISTERS][BLOCK] __attribute__((aligned(64)));
  REAL *v[KELVIN_REGISTERS], *to[KELVIN_REGISTERS];
  for (int r = 0; r < KELVIN_REGISTERS; r++) {
    const REAL *from = p->from[r];
    v[r] = to[r] = scratch[r];
    if (p->kinds[r] == KELVIN_ROWS || p->kinds[r] == KELVIN_ALIKE)
      v[r] = (REAL *)from + (p->kinds[r] == KELVIN_ROWS ? chain * p->dim : 0) + at;
    if (p->kinds[r] == KELVIN_ROWS && p->to[r])
      to[r] = (REAL *)p->to[r] + chain * p->dim + at;
    if (p->kinds[r] == KELVIN_SINGLE)
      for (long i = 0; i < n; i++)
        scratch[r][i] = from[chain];
  }
  // What the block reads and writes comes into the cache while its noise is made, unless it is there from the last
  // update.
  const REAL *lines[2 * KELVIN_REGISTERS];
  int rows = 0;
  for (int r = 0; r < KELVIN_REGISTERS; r++)
    if (j->far && p->kinds[r] == KELVIN_ROWS) {
      lines[rows++] = v[r];
      if (p->to[r])
        lines[rows++] = to[r];
    }
  const long ahead = j->far ? AHEAD : BLOCK;
  for (long i = 0; p->noise && i < n; i += ahead) {
    const long some = n - i < ahead ? n - i : ahead;
    for (int r = 0; r < rows; r++)
      for (long l = i; l < i + some; l += 64 / (long)sizeof(REAL))
        __builtin_prefetch(lines[r] + l);
    NORMAL(p->seed, j->streams[chain], p->offset, (uint64_t)(at + i), some, v[KELVIN_NOISE] + i);
  }
  for (int o = 0; o < p->count; o++) {
    const kelvin_op *op = &j->ops[o];
    if (op->code == KELVIN_MEAN) {
      if (p->kinds[op->from[0]] != KELVIN_SINGLE)
        j->partial[(chain * j->blocks + b) * p->means + op->to] = NAME(sum)(v[op->from[0]], n);
    } else if (op->code != KELVIN_DRIFT) {
      NAME(apply)(op, v, to[op->to], n);
      v[op->to] = to[op->to];
    }
  }
  const int held = j->held && j->held[chain];
  for (int r = 0; r < KELVIN_REGISTERS; r++)
    if (p->kinds[r] == KELVIN_ROWS && p->to[r] && (held || v[r] != to[r]))
      memcpy(to[r], (const REAL *)p->from[r] + chain * p->dim + at, (size_t)n * sizeof(REAL));
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
#undef LANES
#undef ROOTS
