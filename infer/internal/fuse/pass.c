#define _GNU_SOURCE
#include "pass.h"
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-trapping-math")
#endif

// Elements of a block. Sums are made of those of blocks, so that this number is part of their roundings.
#define BLOCK 1024

// Elements of a block that go through all operations at a time: their registers stay in the cache nearest to the
// processor.
#define TILE 256

// How many elements later those are needed that come from memory while noise is made; and how many of double precision
// are made at a time.
#define DISTANCE 128
#define AHEAD 64

// The functions of torch.Streams and of libtorch's threads: a thread that has not asked libtorch yet has OpenMP's own
// number of threads, which is another. They are weak because the package that has them is linked later than this one.
#define KEYS (10 * 2 * 8)
__attribute__((weak)) void kelvin_normal_keys(uint64_t seed, uint64_t *keys);
__attribute__((weak)) void kelvin_normal_floats(int width, const uint64_t *keys, uint64_t seed, uint64_t chain,
                                                uint64_t position, int64_t n, float *out, const char *const *ahead,
                                                int addresses);
__attribute__((weak)) int kelvin_max_threads(void);

// Of a position the noise has two numbers of double precision, or four of single. n numbers at the addresses `ahead`
// come from memory meanwhile, which takes longer than to make as many of noise.
#define NORMAL_DOUBLE(j, stream, at, n, out, ahead, addresses) normal_doubles(j, stream, at, n, out, ahead, addresses)
#define NORMAL_SINGLE(j, stream, at, n, out, ahead, addresses)                                                         \
  kelvin_normal_floats(16, (j)->keys, (j)->pass->seed, stream, (j)->pass->offset + (at) / 4, n, out, ahead, addresses)

// Elements below which a second thread costs more than it saves, as for torch.Streams.
#define GRAIN 4096

// Bytes of an update that a second-level cache has room for, beside those of the gradient.
#define NEAR (1 << 19)

typedef struct {
  const kelvin_pass *pass;
  const kelvin_op *ops;
  const uint64_t *streams, *keys; // of the noise, of single precision
  const unsigned char *held;
  double *partial;
  void (*block)(const void *job, long chain, long b);
  long blocks, next; // of a chain; and the next of all that no thread has taken yet
  int far;           // whether the update is larger than NEAR
} job;

static void normal_doubles(const job *j, uint64_t stream, uint64_t at, long n, double *out, const char *const *ahead,
                           int addresses) {
  for (long i = 0; i < n; i += AHEAD) {
    for (int r = 0; r < addresses; r++)
      for (long l = 0; l < AHEAD; l += 8)
        __builtin_prefetch(ahead[r] + (i + l) * (long)sizeof(double));
    kelvin_fuse_normal(j->pass->seed, stream, j->pass->offset + (at + (uint64_t)i) / 2, n - i < AHEAD ? n - i : AHEAD,
                       out + i);
  }
}

// Each instruction set rounds alike, but the last: without a fused multiply-add a sum of products has more roundings,
// as in libtorch.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KELVIN_WIDE 1
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#endif
#define REAL float
#define WORD int32_t
#define NAME(x) x##_single_avx512
#define VECTOR 64
#define ROOTS(x) _mm512_storeu_ps(x, _mm512_sqrt_ps(_mm512_loadu_ps(x)))
#define FOUR(x) _mm256_cvtps_pd(_mm_loadu_ps(x))
#define FAST_ROOTS
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#define NORMAL NORMAL_SINGLE
#include "block.h"
#define REAL double
#define WORD int64_t
#define NAME(x) x##_double_avx512
#define VECTOR 64
#define ROOTS(x) _mm512_storeu_pd(x, _mm512_sqrt_pd(_mm512_loadu_pd(x)))
#define FOUR(x) _mm256_loadu_pd(x)
#define MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#define NORMAL NORMAL_DOUBLE
#include "block.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define REAL float
#define WORD int32_t
#define NAME(x) x##_single_avx2
#define VECTOR 32
#define ROOTS(x) _mm256_storeu_ps(x, _mm256_sqrt_ps(_mm256_loadu_ps(x)))
#define FOUR(x) _mm256_cvtps_pd(_mm_loadu_ps(x))
#define FAST_ROOTS
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#define NORMAL NORMAL_SINGLE
#include "block.h"
#define REAL double
#define WORD int64_t
#define NAME(x) x##_double_avx2
#define VECTOR 32
#define ROOTS(x) _mm256_storeu_pd(x, _mm256_sqrt_pd(_mm256_loadu_pd(x)))
#define FOUR(x) _mm256_loadu_pd(x)
#define MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#define NORMAL NORMAL_DOUBLE
#include "block.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
#define FMA(a, b, c) __builtin_fma(a, b, c)
#define FMAF(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define FMAF(a, b, c) ((a) * (b) + (c))
#endif
#define REAL float
#define WORD int32_t
#define FOUR(x) {(x)[0], (x)[1], (x)[2], (x)[3]}
#define NAME(x) x##_single
#define MULTIPLY_ADD(a, b, c) FMAF(a, b, c)
#define NORMAL NORMAL_SINGLE
#include "block.h"
#define REAL double
#define WORD int64_t
#define FOUR(x) {(x)[0], (x)[1], (x)[2], (x)[3]}
#define NAME(x) x##_double
#define MULTIPLY_ADD(a, b, c) FMA(a, b, c)
#define NORMAL NORMAL_DOUBLE
#include "block.h"

typedef void (*function)(const void *job, long chain, long b);

static function best(int single) {
#ifdef KELVIN_WIDE
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return single ? block_single_avx512 : block_double_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return single ? block_single_avx2 : block_double_avx2;
#endif
  return single ? block_single : block_double;
}

void kelvin_pass_normal(int width, uint64_t seed, uint64_t stream, uint64_t offset, long n, float *out) {
  uint64_t keys[KEYS] __attribute__((aligned(64)));
  kelvin_normal_keys(seed, keys);
  kelvin_normal_floats(width, keys, seed, stream, offset, n, out, 0, 0);
}

long kelvin_pass_blocks(long dim) { return (dim + BLOCK - 1) / BLOCK; }

// One thread's share: whoever is free takes the next blocks. No number depends on who makes it.
static void share(void *of) {
  job *j = of;
  const long all = j->blocks * j->pass->chains, some = GRAIN / BLOCK;
  for (;;) {
    const long from = __atomic_fetch_add(&j->next, some, __ATOMIC_RELAXED);
    if (from >= all)
      return;
    for (long b = from; b < from + some && b < all; b++)
      j->block(j, b / j->blocks, b % j->blocks);
  }
}

// libtorch's threads, where they are those of OpenMP: threads of another kind would wait for processors on which its
// own are waiting for work.
static void (*parallel)(void (*)(void *), void *, unsigned, unsigned);

__attribute__((constructor)) static void find_threads(void) {
  *(void **)&parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
}

// Bytes that an update reads and writes.
static long memory(const kelvin_pass *p) {
  long rows = 0;
  for (int r = 0; r < KELVIN_REGISTERS; r++)
    if (p->kinds[r] == KELVIN_ROWS)
      rows += p->to[r] && p->to[r] != p->from[r] ? 2 : 1;
  return rows * p->chains * p->dim * (p->single ? 4 : 8);
}

void kelvin_pass_run(const kelvin_pass *p, const kelvin_op *ops, const uint64_t *streams, const unsigned char *held,
                     double *means, double *partial) {
  uint64_t keys[KEYS] __attribute__((aligned(64)));
  if (p->noise && p->single)
    kelvin_normal_keys(p->seed, keys);
  job j = {p, ops, streams, keys, held, partial, best(p->single), kelvin_pass_blocks(p->dim), 0, memory(p) > NEAR};
  long threads = p->threads;
  if (threads == 0 && p->chains * p->dim >= 2 * GRAIN && kelvin_max_threads)
    threads = kelvin_max_threads();
  if (threads > p->chains * p->dim / GRAIN)
    threads = p->chains * p->dim / GRAIN;
  if (threads > 1 && parallel)
    parallel(share, &j, (unsigned)threads, 0);
  else
    share(&j);
  for (long k = 0; k < p->chains; k++) {
    for (int m = 0; m < p->means; m++) {
      double sum = 0;
      for (long b = 0; b < j.blocks; b++)
        sum += partial[(k * j.blocks + b) * p->means + m];
      means[k * p->means + m] = sum / (double)p->dim;
    }
    if (p->single)
      numbers_single(&j, k, means + k * p->means);
    else
      numbers_double(&j, k, means + k * p->means);
  }
}
