// Vectors of doubles, for the instruction set that the file which includes this was compiled for: W lanes of type V,
// masks of type M, whole numbers of type I. Arithmetic uses the operators of the compiler's vector extension.
// Products and sums are fused only where the source says so: ISO mode of gcc has it so, clang is told.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#include <math.h>
#include <string.h>

#if KVM_ISA > 0 || defined(KVM_NARROW) || defined(__aarch64__)
#define KVM_FMA 1 // fma_ rounds once
#endif
#define FN static inline __attribute__((always_inline))

#if KVM_ISA == 2
#include <immintrin.h>
#define W 8
typedef __m512d V;
typedef __mmask8 M;
typedef long long I __attribute__((vector_size(64)));
FN V splat(double x) { return _mm512_set1_pd(x); }
FN V ld(const double *p) { return _mm512_loadu_pd(p); }
FN void st(double *p, V x) { _mm512_storeu_pd(p, x); }
FN M first(long n) { return (M)((1u << n) - 1); }
FN V ldm(M m, const double *p) { return _mm512_maskz_loadu_pd(m, p); }
FN void stm(M m, double *p, V x) { _mm512_mask_storeu_pd(p, m, x); }
#define KVM_HALF 1 // vectors have parts that are vectors too
FN V ld2(const double *p) { return _mm512_zextpd128_pd512(_mm_loadu_pd(p)); }
FN V ld4(const double *p) { return _mm512_zextpd256_pd512(_mm256_loadu_pd(p)); }
FN void st2(double *p, V x) { _mm_storeu_pd(p, _mm512_castpd512_pd128(x)); }
FN void st4(double *p, V x) { _mm256_storeu_pd(p, _mm512_castpd512_pd256(x)); }
FN V fma_(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
FN V fms_(V a, V b, V c) { return _mm512_fmsub_pd(a, b, c); }
FN V fnma_(V a, V b, V c) { return _mm512_fnmadd_pd(a, b, c); }
FN V sqrt_(V x) { return _mm512_sqrt_pd(x); }
FN V floor_(V x) { return _mm512_roundscale_pd(x, 9); }
FN V ceil_(V x) { return _mm512_roundscale_pd(x, 10); }
FN V trunc_(V x) { return _mm512_roundscale_pd(x, 11); }
FN V rint_(V x) { return _mm512_roundscale_pd(x, 8); }
FN M lt(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
FN M le(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
FN M eq(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
FN M ne(V a, V b) { return _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ); }
FN V sel(M m, V a, V b) { return _mm512_mask_blend_pd(m, b, a); }
FN M mand(M a, M b) { return a & b; }
FN M mor(M a, M b) { return a | b; }
FN M mnot(M a) { return (M)~a; }
FN int any(M m) { return m != 0; }
FN I bits(V x) { return (I)_mm512_castpd_si512(x); }
FN V real(I x) { return _mm512_castsi512_pd((__m512i)x); }
FN V gather(const double *p, const int64_t *at) { return _mm512_i64gather_pd(_mm512_loadu_si512(at), p, 8); }
FN double hsum(V x) { return _mm512_reduce_add_pd(x); }
FN V scale_(V x, V k) { return _mm512_scalef_pd(x, k); }
FN V hsums(const V *v) { // lane r is the sum of v[r]
  V a[4], b[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) // lanes of 128 bits hold sums of pairs of v[2i] and v[2i+1]
    a[i] = _mm512_unpacklo_pd(v[2 * i], v[2 * i + 1]) + _mm512_unpackhi_pd(v[2 * i], v[2 * i + 1]);
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++)
    b[i] = _mm512_shuffle_f64x2(a[2 * i], a[2 * i + 1], 0x88) + _mm512_shuffle_f64x2(a[2 * i], a[2 * i + 1], 0xdd);
  return _mm512_shuffle_f64x2(b[0], b[1], 0x88) + _mm512_shuffle_f64x2(b[0], b[1], 0xdd);
}
#elif KVM_ISA == 1
#include <immintrin.h>
#define W 4
typedef __m256d V;
typedef __m256d M;
typedef long long I __attribute__((vector_size(32)));
FN V splat(double x) { return _mm256_set1_pd(x); }
FN V ld(const double *p) { return _mm256_loadu_pd(p); }
FN void st(double *p, V x) { _mm256_storeu_pd(p, x); }
FN M first(long n) { return (M)(I){n > 0 ? -1 : 0, n > 1 ? -1 : 0, n > 2 ? -1 : 0, n > 3 ? -1 : 0}; }
FN V ldm(M m, const double *p) { return _mm256_maskload_pd(p, (__m256i)m); }
FN void stm(M m, double *p, V x) { _mm256_maskstore_pd(p, (__m256i)m, x); }
#define KVM_HALF 1 // vectors have parts that are vectors too
FN V ld2(const double *p) { return _mm256_zextpd128_pd256(_mm_loadu_pd(p)); }
FN V ld4(const double *p) { return ld(p); }
FN void st2(double *p, V x) { _mm_storeu_pd(p, _mm256_castpd256_pd128(x)); }
FN void st4(double *p, V x) { st(p, x); }
FN V fma_(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
FN V fms_(V a, V b, V c) { return _mm256_fmsub_pd(a, b, c); }
FN V fnma_(V a, V b, V c) { return _mm256_fnmadd_pd(a, b, c); }
FN V sqrt_(V x) { return _mm256_sqrt_pd(x); }
FN V floor_(V x) { return _mm256_round_pd(x, 9); }
FN V ceil_(V x) { return _mm256_round_pd(x, 10); }
FN V trunc_(V x) { return _mm256_round_pd(x, 11); }
FN V rint_(V x) { return _mm256_round_pd(x, 8); }
FN M lt(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
FN M le(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_LE_OQ); }
FN M eq(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_EQ_OQ); }
FN M ne(V a, V b) { return _mm256_cmp_pd(a, b, _CMP_NEQ_UQ); }
FN V sel(M m, V a, V b) { return _mm256_blendv_pd(b, a, m); }
FN M mand(M a, M b) { return _mm256_and_pd(a, b); }
FN M mor(M a, M b) { return _mm256_or_pd(a, b); }
FN M mnot(M a) { return (M)~(I)a; }
FN int any(M m) { return _mm256_movemask_pd(m) != 0; }
FN I bits(V x) { return (I)x; }
FN V real(I x) { return (V)x; }
FN V gather(const double *p, const int64_t *at) { return (V){p[at[0]], p[at[1]], p[at[2]], p[at[3]]}; }
FN double hsum(V x) { return (x[0] + x[2]) + (x[1] + x[3]); }
FN V hsums(const V *v) {
  V a = _mm256_hadd_pd(v[0], v[1]), b = _mm256_hadd_pd(v[2], v[3]);
  return _mm256_permute2f128_pd(a, b, 0x20) + _mm256_permute2f128_pd(a, b, 0x31);
}
#else
#define W 2
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif
typedef double V __attribute__((vector_size(16)));
typedef long long I __attribute__((vector_size(16)));
typedef I M;
FN V splat(double x) { return (V){x, x}; }
FN V ld(const double *p) {
  V v;
  memcpy(&v, p, sizeof v);
  return v;
}
FN void st(double *p, V x) { memcpy(p, &x, sizeof x); }
FN M first(long n) { return (M){n > 0 ? -1 : 0, n > 1 ? -1 : 0}; }
FN V ldm(M m, const double *p) { return (V){m[0] ? p[0] : 0, m[1] ? p[1] : 0}; }
FN void stm(M m, double *p, V x) {
  if (m[0]) p[0] = x[0];
  if (m[1]) p[1] = x[1];
}
#if defined(__aarch64__)
FN V fma_(V a, V b, V c) { return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
FN V fnma_(V a, V b, V c) { return (V)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
FN V fms_(V a, V b, V c) { return fma_(a, b, -c); }
FN V sqrt_(V x) { return (V)vsqrtq_f64((float64x2_t)x); }
FN V floor_(V x) { return (V)vrndmq_f64((float64x2_t)x); }
FN V ceil_(V x) { return (V)vrndpq_f64((float64x2_t)x); }
FN V trunc_(V x) { return (V)vrndq_f64((float64x2_t)x); }
FN V rint_(V x) { return (V)vrndnq_f64((float64x2_t)x); }
#else
#if defined(__x86_64__)
FN V sqrt_(V x) { return (V)_mm_sqrt_pd((__m128d)x); }
#else
FN V sqrt_(V x) { return (V){__builtin_sqrt(x[0]), __builtin_sqrt(x[1])}; }
#endif
FN V floor_(V x) { return (V){__builtin_floor(x[0]), __builtin_floor(x[1])}; }
FN V ceil_(V x) { return (V){__builtin_ceil(x[0]), __builtin_ceil(x[1])}; }
FN V trunc_(V x) { return (V){__builtin_trunc(x[0]), __builtin_trunc(x[1])}; }
FN V rint_(V x) { return (V){__builtin_rint(x[0]), __builtin_rint(x[1])}; }
#if defined(KVM_NARROW)
FN V fma_(V a, V b, V c) { return (V)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c); }
FN V fms_(V a, V b, V c) { return (V)_mm_fmsub_pd((__m128d)a, (__m128d)b, (__m128d)c); }
FN V fnma_(V a, V b, V c) { return (V)_mm_fnmadd_pd((__m128d)a, (__m128d)b, (__m128d)c); }
#else
FN V fma_(V a, V b, V c) { return a * b + c; }
FN V fms_(V a, V b, V c) { return a * b - c; }
FN V fnma_(V a, V b, V c) { return c - a * b; }
#endif
#endif
FN M lt(V a, V b) { return (M)(a < b); }
FN M le(V a, V b) { return (M)(a <= b); }
FN M eq(V a, V b) { return (M)(a == b); }
FN M ne(V a, V b) { return (M)(a != b); }
FN V sel(M m, V a, V b) { return (V)((m & (I)a) | (~m & (I)b)); }
FN M mand(M a, M b) { return a & b; }
FN M mor(M a, M b) { return a | b; }
FN M mnot(M a) { return ~a; }
FN int any(M m) { return (m[0] | m[1]) != 0; }
FN I bits(V x) { return (I)x; }
FN V real(I x) { return (V)x; }
FN V gather(const double *p, const int64_t *at) { return (V){p[at[0]], p[at[1]]}; }
FN double hsum(V x) { return x[0] + x[1]; }
FN V hsums(const V *v) { return (V){hsum(v[0]), hsum(v[1])}; }
#endif

// The first k < W elements, and zeros. What was stored under a mask reaches memory before a processor loads it again,
// which takes it as long as several operations: arrays of two and four are most of the small ones, and need no mask.
FN V ldn(long k, const double *p) {
#ifdef KVM_HALF
  if (k == 2) return ld2(p);
  if (k == 4) return ld4(p);
#endif
  return ldm(first(k), p);
}
FN void stn(long k, double *p, V x) {
#ifdef KVM_HALF
  if (k == 2) {
    st2(p, x);
    return;
  }
  if (k == 4) {
    st4(p, x);
    return;
  }
#endif
  stm(first(k), p, x);
}

typedef unsigned long long U __attribute__((vector_size(8 * W)));

FN V abs_(V x) { return real(bits(x) & 0x7fffffffffffffffLL); }
FN V neg_(V x) { return real(bits(x) ^ (-0x7fffffffffffffffLL - 1)); }
FN V sign_of(V x, V s) { // |x| with the sign of s
  return real((bits(x) & 0x7fffffffffffffffLL) | (bits(s) & (-0x7fffffffffffffffLL - 1)));
}

// 2^k for a whole k from -1022 to 1023: a sum with 1.5·2^52 has k in its low bits.
#define MAGIC 0x1.8p52
FN I low(V k) { return bits(k + splat(MAGIC)); }
FN V two_to(V k) { return real((low(k) + 1023) << 52); }
#if KVM_ISA < 2
FN V scale_(V x, V k) { // x·2^k
  V half = floor_(k * splat(0.5));
  return x * two_to(half) * two_to(k - half);
}
#endif

FN V truth(M m) { return sel(m, splat(1), splat(0)); }
FN M nan_(V x) { return ne(x, x); }
FN V min_(V a, V b) { return sel(mor(nan_(a), nan_(b)), a + b, sel(lt(b, a), b, a)); }
FN V max_(V a, V b) { return sel(mor(nan_(a), nan_(b)), a + b, sel(lt(a, b), b, a)); }

// The value of a function of one number in each lane.
#define LANES(f, x)                                                                                                   \
  ({                                                                                                                  \
    V lanes_ = (x);                                                                                                   \
    for (int lane_ = 0; lane_ < W; lane_++) lanes_[lane_] = f(lanes_[lane_]);                                         \
    lanes_;                                                                                                           \
  })
