#include "loop.h"

// The normal numbers of single precision are those of double precision, rounded.
static void normal_floats(float *out, uint64_t seed, uint64_t chain, uint64_t position) {
  double pair[2];
  kelvin_fuse_normal(seed, chain, position, 2, pair);
  out[0] = static_cast<float>(pair[0]);
  out[1] = static_cast<float>(pair[1]);
}

// Many pairs at a time, with the same bits, for two instruction sets.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KELVIN_LANES 1
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#endif
#define LANES 8
#define NAME lanes_avx512
#include "normal_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define LANES 4
#define NAME lanes_avx2
#include "normal_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

typedef int64_t (*lanes)(float *row, uint64_t seed, uint64_t chain, uint64_t position, int64_t pairs);

static lanes lanes_of(int width) {
  if (width >= 8 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return lanes_avx512;
  if (width >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return lanes_avx2;
  return nullptr;
}
#endif

void kelvin_fuse_normal_lanes(int width, uint64_t seed, uint64_t stream, uint64_t offset, long n, float *out) {
  long p = 0;
#ifdef KELVIN_LANES
  static const lanes best = lanes_of(8);
  const lanes many = width == 8 ? best : lanes_of(width);
  if (many != nullptr)
    p = many(out, seed, stream, offset, n / 2);
#endif
  for (; 2 * p < n; p++) {
    float pair[2];
    normal_floats(pair, seed, stream, offset + static_cast<uint64_t>(p));
    out[2 * p] = pair[0];
    if (2 * p + 1 < n)
      out[2 * p + 1] = pair[1];
  }
}

void kelvin_fuse_normal_single(uint64_t seed, uint64_t stream, uint64_t offset, long n, float *out) {
  kelvin_fuse_normal_lanes(8, seed, stream, offset, n, out);
}
