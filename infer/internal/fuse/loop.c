#include "loop.h"
#include <math.h>
#include <string.h>

// No fused multiply-add: the same numbers on every processor, and those of torch.Streams.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-trapping-math")
#endif

// Two words make one number of the open unit interval: 52 bits and a half.
static inline double unit(uint32_t hi, uint32_t lo) {
  const uint64_t bits = ((uint64_t)hi << 20) | ((uint64_t)lo >> 12);
  return ((double)bits + 0.5) * (1.0 / 4503599627370496.0);
}

// Philox 4x32-10 (Salmon et al. 2011), with the stream in the upper half of the counter.
static inline void philox(uint64_t seed, uint64_t stream, uint64_t at, uint32_t w[4]) {
  uint32_t c0 = (uint32_t)at, c1 = (uint32_t)(at >> 32), c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)b;
    c3 = (uint32_t)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  w[0] = c0, w[1] = c1, w[2] = c2, w[3] = c3;
}

// The Box-Muller transform of one position gives two numbers: the same operations in the same order as torch.Streams,
// with the same library's log, cos and sin, so that the bits are the same.
void kelvin_fuse_normal(uint64_t seed, uint64_t stream, uint64_t offset, long n, double *out) {
  for (long p = 0; 2 * p < n; p++) {
    uint32_t w[4];
    philox(seed, stream, offset + (uint64_t)p, w);
    const double r = sqrt(-2.0 * log(unit(w[0], w[1])));
    const double angle = 6.283185307179586476925286766559 * unit(w[2], w[3]);
    out[2 * p] = r * cos(angle);
    if (2 * p + 1 < n)
      out[2 * p + 1] = r * sin(angle);
  }
}

// The operations, in double precision and for every processor.
#define REAL double
#define WORD int64_t
#define NAME(x) x
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "elements.h"

// The Euclidean norm, which does not overflow where the numbers do not.
static double norm(const double *x, long n) {
  double sum = 0;
  for (long i = 0; i < n; i++)
    sum += x[i] * x[i];
  if (isfinite(sum) && sum > 1e-280)
    return sqrt(sum);
  double largest = 0;
  for (long i = 0; i < n; i++) {
    if (isnan(x[i]))
      return x[i];
    largest = fmax(largest, fabs(x[i]));
  }
  if (largest == 0 || isinf(largest))
    return largest;
  sum = 0;
  for (long i = 0; i < n; i++)
    sum += (x[i] / largest) * (x[i] / largest);
  return largest * sqrt(sum);
}

long kelvin_fuse_run(kelvin_chains *f, long n, const kelvin_move *moves, const kelvin_op *ops, double *rows,
                     long gathers, const kelvin_gather *gather, long size, const int64_t *index) {
  const long d = f->dim;
  f->total = f->undefined = 0;
  for (long i = 0; i < n; i++) {
    const kelvin_move *m = &moves[i];
    // A chain that was held is where the value may be the reason.
    int values = m->value, grads = 0;
    for (long k = 0; k < f->chains && !m->value; k++)
      *(f->held[k] ? &values : &grads) = 1;
    if (index) {
      for (long t = 0; t < gathers; t++)
        for (long j = 0; j < size; j++)
          memcpy(gather[t].to + j * gather[t].bytes, gather[t].from + index[i * size + j] * gather[t].bytes,
                 gather[t].bytes);
      if (values && f->value.prologue && f->value.prologue(f->value.call))
        return i + 1;
      if (grads && f->grad.prologue && f->grad.prologue(f->grad.call))
        return i + 1;
    }
    kelvin_call calls[2] = {*f->grad.call, *f->value.call};
    for (long k = 0; k < f->chains; k++) {
      double *v[KELVIN_REGISTERS];
      for (int r = 0; r < KELVIN_REGISTERS; r++)
        v[r] = r == KELVIN_THETA || r >= KELVIN_PARTS ? f->registers[r] + k * f->stride : f->registers[r];
      const int full = m->value || f->held[k];
      kelvin_call *call = &calls[full];
      call->x = v[KELVIN_THETA];
      call->weight = m->weight;
      call->value = &f->values[k];
      call->grad = v[KELVIN_GRAD];
      call->aux = f->aux;
      if ((full ? f->value.main : f->grad.main)(call))
        f->values[k] = NAN, v[KELVIN_GRAD][0] = NAN;
      if (!full)
        f->values[k] = NAN;
      const double length = norm(v[KELVIN_GRAD], d);
      f->norms[k] = length;
      if (m->record) {
        memcpy(rows, v[KELVIN_THETA], d * sizeof(double));
        rows[d] = f->values[k], rows[d + 1] = length, rows[d + 2] = f->held[k];
        rows += d + 3;
      }
      f->held[k] = !isfinite(length) || (full && !isfinite(f->values[k]));
      if (f->held[k]) {
        f->total++;
        f->undefined += full && isfinite(f->values[k]) && isnan(length);
        continue;
      }
      if (m->noise)
        kelvin_fuse_normal(f->seed, f->streams[k], f->offset, d, v[KELVIN_NOISE]);
      for (int32_t o = 0; o < m->count; o++)
        apply(&ops[m->first + o], v, v, d);
    }
    if (m->noise)
      f->offset += (uint64_t)((d + 1) / 2);
  }
  return 0;
}
