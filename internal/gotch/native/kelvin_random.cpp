#include "torch_api.h"
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/record_function.h>
#include <cmath>

// Two words make one number of the open unit interval: 52 bits and a half, so that the sum is exact and never 1.
static inline double unit(uint32_t hi, uint32_t lo) {
  const uint64_t bits = (static_cast<uint64_t>(hi) << 20) | (static_cast<uint64_t>(lo) >> 12);
  return (static_cast<double>(bits) + 0.5) * (1.0 / 4503599627370496.0);
}

// The Box-Muller transform.
static inline void normal_pair(double &a, double &b) {
  const double r = std::sqrt(-2.0 * std::log(a));
  const double angle = 6.283185307179586476925286766559 * b;
  a = r * std::cos(angle);
  b = r * std::sin(angle);
}

// One pair of normal numbers of float precision.
static void normal_floats(float *out, uint64_t seed, uint64_t chain, uint64_t position) {
  at::Philox4_32 engine(seed, chain, position);
  uint32_t w0 = engine(), w1 = engine(), w2 = engine(), w3 = engine();
  double a = unit(w0, w1), b = unit(w2, w3);
  normal_pair(a, b);
  out[0] = static_cast<float>(a);
  out[1] = static_cast<float>(b);
}

// Many pairs at a time, with the same bits.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KELVIN_LANES 1
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#pragma GCC optimize("O2")
#endif
#define LANES 8
#define NAME normal_floats_avx512
#include "random_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O2")
#endif
#define LANES 4
#define NAME normal_floats_avx2
#include "random_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

typedef int64_t (*lanes)(float *row, uint64_t seed, uint64_t chain, uint64_t position, int64_t pairs);

static lanes best_lanes() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return normal_floats_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return normal_floats_avx2;
  return nullptr;
}
#endif

// Numbers come in pairs, one pair per counter value, so that any part of a row can be filled by any thread.
template <typename T>
static void fill_pairs(int kind, T *row, int64_t n, uint64_t seed, uint64_t chain, uint64_t offset, int64_t from,
                       int64_t to) {
#ifdef KELVIN_LANES
  static const lanes many = best_lanes();
  if (kind == 0 && sizeof(T) == sizeof(float) && many != nullptr)
    from += many(reinterpret_cast<float *>(row) + 2 * from, seed, chain, offset + static_cast<uint64_t>(from),
                 std::min(to, n / 2) - from);
#endif
  at::Philox4_32 engine(seed, chain, offset + static_cast<uint64_t>(from));
  for (int64_t p = from; p < to; ++p) {
    uint32_t w0 = engine();
    uint32_t w1 = engine();
    uint32_t w2 = engine();
    uint32_t w3 = engine();
    if (kind == 1 && sizeof(T) == sizeof(float)) {
      // 23 bits and a half, from one word each: a double rounded to float could be 1.
      row[2 * p] = static_cast<T>((static_cast<float>(w0 >> 9) + 0.5f) * (1.0f / 8388608.0f));
      if (2 * p + 1 < n)
        row[2 * p + 1] = static_cast<T>((static_cast<float>(w2 >> 9) + 0.5f) * (1.0f / 8388608.0f));
      continue;
    }
    double a = unit(w0, w1);
    double b = unit(w2, w3);
    if (kind == 0)
      normal_pair(a, b);
    row[2 * p] = static_cast<T>(a);
    if (2 * p + 1 < n)
      row[2 * p + 1] = static_cast<T>(b);
  }
}

template <typename T>
static void fill(int kind, T *data, uint64_t seed, const uint64_t *chains, int64_t rows, int64_t n, uint64_t offset) {
  const int64_t pairs = (n + 1) / 2;
  const int64_t grain = 2048; // pairs per task: below this a thread costs more than it saves
  at::parallel_for(0, rows * pairs, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t k = begin / pairs;
      const int64_t from = begin % pairs;
      const int64_t to = std::min(pairs, from + (end - begin));
      fill_pairs(kind, data + k * n, n, seed, chains[k], offset, from, to);
      begin += to - from;
    }
  });
}

void kelvin_random(tensor *out__, int kind, uint64_t seed, uint64_t *chains, int64_t rows, uint64_t offset,
                   int64_t *dims, int rank, int dtype, int device) {
  KELVIN_OP(
      1, RECORD_FUNCTION("kelvin::random", std::vector<c10::IValue>{});
      auto type = kelvin_type(dtype); auto on_host = type == at::kFloat ? at::kFloat : at::kDouble;
      at::Tensor t = at::empty(at::IntArrayRef(dims, rank), at::TensorOptions().dtype(on_host));
      const int64_t n = rows > 0 ? t.numel() / rows : 0;
      if (on_host == at::kFloat) fill(kind, t.data_ptr<float>(), seed, chains, rows, n, offset);
      else fill(kind, t.data_ptr<double>(), seed, chains, rows, n, offset);
      out__[0] = new torch::Tensor(t.to(kelvin_device(device), type));)
}
