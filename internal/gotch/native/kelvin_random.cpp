#include "torch_api.h"
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/record_function.h>
#include <cmath>
#include <cstring>

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

// Four normal numbers of single precision, the two pairs of a position. Every operation is one of IEEE 754, fused
// multiply-adds among them, so that vectors, and any machine, make the same bits.
//
// The first word of a pair gives the radius r = sqrt(-2 log u), with u = (k + 1/2)/2^31 of its upper 31 bits k: 2^31 u
// is 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and -2 log(1 + f) = -2f + f² q(f) to 3e-8 of it. The second word
// gives the angle: q right angles, to the nearest, and y. sin y and cos y are polynomials, to 4e-9 and 2e-10 of them.
static const uint32_t root_half = 0x3f3504f3; // sqrt(1/2), as the bits of a float
static const float two_logs = -1.3862943611198906f; // -2 log 2
static const float small_angle = 1.4629180792671596e-09f; // a right angle / 2^30
static const float log_terms[] = {0.99999983212761516f, -0.66667900442982042f, 0.50003510515032928f,
                                  -0.3992414427733123f, 0.33141016131520732f,  -0.29835946922127638f,
                                  0.28615045028694194f, -0.17469688975211556f};
static const float sine[] = {-0.16666654943702126f, 0.0083321781461751987f, -0.00019517298984195782f};
static const float cosine[] = {0.041666645682978279f, -0.0013887316254480118f, 2.4433157070351213e-05f};

static inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static void normal_floats(uint32_t radius, uint32_t turn, float *out) {
  const float u = static_cast<float>(static_cast<int32_t>(radius >> 1)) + 0.5f;
  const int32_t shifted = static_cast<int32_t>(bits_of(u) - root_half);
  const float e = static_cast<float>((shifted >> 23) - 31);
  const float f = float_of((static_cast<uint32_t>(shifted) & 0x7fffff) + root_half) - 1.0f;
  float log = log_terms[7];
  for (int k = 6; k >= 0; --k)
    log = std::fma(log, f, log_terms[k]);
  const float r = std::sqrt(std::fma(e, two_logs, std::fma(f * f, log, -2.0f * f)));
  const uint32_t q = turn + (1u << 29);
  const float y = (static_cast<float>(static_cast<int32_t>(turn << 2) >> 2) + 0.5f) * small_angle, y2 = y * y;
  const float s = std::fma(y * y2, std::fma(y2, std::fma(y2, sine[2], sine[1]), sine[0]), y);
  const float even = std::fma(y2, std::fma(y2, cosine[2], cosine[1]), cosine[0]);
  const float c = std::fma(y2, std::fma(y2, even, -0.5f), 1.0f);
  const bool swap = (q & (1u << 30)) != 0;
  out[0] = float_of(bits_of(r * (swap ? s : c)) ^ ((q + (1u << 30)) & (1u << 31)));
  out[1] = float_of(bits_of(r * (swap ? c : s)) ^ (q & (1u << 31)));
}

static void normal_four(float *out, uint64_t seed, uint64_t chain, uint64_t position) {
  at::Philox4_32 engine(seed, chain, position);
  uint32_t w[4];
  for (uint32_t &word : w)
    word = engine();
  normal_floats(w[0], w[1], out);
  normal_floats(w[2], w[3], out + 2);
}

// Many positions at a time.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KELVIN_LANES 1
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#pragma GCC optimize("O3")
#endif
#define LANES 16
#define NAME(x) x##_avx512
#include "normal_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O3")
#endif
#define LANES 8
#define NAME(x) x##_avx2
#include "normal_lanes.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

struct lanes {
  int64_t width; // positions of a group
  int64_t (*fill)(float *row, const uint64_t *keys, uint64_t chain, uint64_t position, int64_t positions,
                  const char *const *ahead, int addresses);
};

static lanes lanes_of(int width) {
  if (width >= 16 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return {16, normal_avx512};
  if (width >= 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {8, normal_avx2};
  return {0, nullptr};
}
#endif

void kelvin_normal_keys(uint64_t seed, uint64_t *keys) {
  for (uint32_t i = 0; i < 10; ++i)
    for (uint32_t l = 0; l < 8; ++l) {
      keys[16 * i + l] = static_cast<uint32_t>(seed) + i * 0x9E3779B9u;
      keys[16 * i + 8 + l] = static_cast<uint32_t>(seed >> 32) + i * 0xBB67AE85u;
    }
}

void kelvin_normal_floats(int width, const uint64_t *keys, uint64_t seed, uint64_t chain, uint64_t position, int64_t n,
                          float *out, const char *const *ahead, int addresses) {
  int64_t p = 0;
#ifdef KELVIN_LANES
  static const lanes best = lanes_of(16);
  const lanes many = width == 16 ? best : lanes_of(width);
  if (many.fill != nullptr) {
    p = many.fill(out, keys, chain, position, n / 4, ahead, addresses);
    if (n - 4 * p > 8) { // a group costs as much as two or three positions
      alignas(64) float rest[4 * 16];
      many.fill(rest, keys, chain, position + static_cast<uint64_t>(p), many.width, nullptr, 0);
      memcpy(out + 4 * p, rest, static_cast<size_t>(n - 4 * p) * sizeof(float));
      return;
    }
  }
#endif
  for (; 4 * p < n; ++p) {
    float four[4];
    normal_four(four, seed, chain, position + static_cast<uint64_t>(p));
    memcpy(out + 4 * p, four, static_cast<size_t>(std::min<int64_t>(n - 4 * p, 4)) * sizeof(float));
  }
}

// How many numbers a position makes. One position per counter value, so that any part of a row can be filled by any
// thread.
template <typename T> static int64_t made(int kind) { return kind == 0 && sizeof(T) == sizeof(float) ? 4 : 2; }

// Fills a row of n numbers at the positions from and after, before to.
template <typename T>
static void fill_row(int kind, T *row, int64_t n, const uint64_t *keys, uint64_t seed, uint64_t chain, uint64_t offset,
                     int64_t from, int64_t to) {
  if (kind == 0 && sizeof(T) == sizeof(float)) {
    kelvin_normal_floats(16, keys, seed, chain, offset + static_cast<uint64_t>(from), std::min(4 * to, n) - 4 * from,
                         reinterpret_cast<float *>(row) + 4 * from, nullptr, 0);
    return;
  }
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
  const int64_t positions = (n + made<T>(kind) - 1) / made<T>(kind);
  const int64_t grain = 4096 / made<T>(kind); // below 4096 numbers a thread costs more than it saves
  alignas(64) uint64_t keys[KELVIN_KEYS];
  if (kind == 0 && sizeof(T) == sizeof(float))
    kelvin_normal_keys(seed, keys);
  at::parallel_for(0, rows * positions, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t k = begin / positions;
      const int64_t from = begin % positions;
      const int64_t to = std::min(positions, from + (end - begin));
      fill_row(kind, data + k * n, n, keys, seed, chains[k], offset, from, to);
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
