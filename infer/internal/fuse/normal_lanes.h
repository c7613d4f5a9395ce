// Normal numbers of float precision, LANES pairs at a time: a function NAME for one instruction set.
//
// They have the bits of normal_floats: those of torch.Streams. The formulas here have relative errors of at most 2^-38
// together: polynomials of least error 2^-43, roots and quotients 2^-40, and angles 2^-39, of which those within 2^-12
// of a multiple of a right angle are left out, because there the rounding of the angle by normal_floats is more. Where
// a change of 2^-37 could change what a number is rounded to, the pair is left to normal_floats, as with such angles:
// one pair in a thousand.

#if LANES == 8
#define V __m512d
#define I __m512i
#define ALL(x) _mm512_set1_pd(x)
#define ALLI(x) _mm512_set1_epi64(static_cast<long long>(x))
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define FMS(a, b, c) _mm512_fmsub_pd(a, b, c)
#define ADD(a, b) _mm512_add_pd(a, b)
#define SUB(a, b) _mm512_sub_pd(a, b)
#define MUL(a, b) _mm512_mul_pd(a, b)
#define PRODUCT(a, b) _mm512_mul_epu32(a, b)
#define UPPER(a) _mm512_shuffle_epi32(a, _MM_PERM_DDBB)
#define XOR3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define AND(a, b) _mm512_and_si512(a, b)
#define OR(a, b) _mm512_or_si512(a, b)
#define PLUS(a, b) _mm512_add_epi64(a, b)
#define UP(a, n) _mm512_slli_epi64(a, n)
#define DOWN(a, n) _mm512_srli_epi64(a, n)
#define REAL(a) _mm512_castsi512_pd(a)
#define BITS(a) _mm512_castpd_si512(a)
#define COUNT _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
// The lower words of a above those of b.
#define JOIN(a, b) _mm512_mask_shuffle_epi32(b, 0xaaaa, a, _MM_PERM_CCAA)
// x where the highest bit of m is 0, else y; and x with its sign changed where that of m is 1.
#define CHOOSE(x, y, m) _mm512_mask_blend_pd(_mm512_movepi64_mask(m), x, y)
#define FLIP(x, m) REAL(_mm512_ternarylogic_epi64(BITS(x), m, ALLI(0x8000000000000000), 0x78))
#define ZERO(a, b) static_cast<int>(_mm512_testn_epi64_mask(a, b))
#define LESS(a, b) static_cast<int>(_mm512_cmp_pd_mask(a, b, _CMP_LT_OQ))
#define STORE(p, a, b)                                                                                              \
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(                                                                       \
                          _mm512_castps256_ps512(_mm512_cvtpd_ps(a)),                                               \
                          _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0),                 \
                          _mm512_castps256_ps512(_mm512_cvtpd_ps(b))))
#else
#define V __m256d
#define I __m256i
#define ALL(x) _mm256_set1_pd(x)
#define ALLI(x) _mm256_set1_epi64x(static_cast<long long>(x))
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define FMS(a, b, c) _mm256_fmsub_pd(a, b, c)
#define ADD(a, b) _mm256_add_pd(a, b)
#define SUB(a, b) _mm256_sub_pd(a, b)
#define MUL(a, b) _mm256_mul_pd(a, b)
#define PRODUCT(a, b) _mm256_mul_epu32(a, b)
#define UPPER(a) _mm256_shuffle_epi32(a, 0xf5)
#define XOR3(a, b, c) _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define AND(a, b) _mm256_and_si256(a, b)
#define OR(a, b) _mm256_or_si256(a, b)
#define PLUS(a, b) _mm256_add_epi64(a, b)
#define UP(a, n) _mm256_slli_epi64(a, n)
#define DOWN(a, n) _mm256_srli_epi64(a, n)
#define REAL(a) _mm256_castsi256_pd(a)
#define BITS(a) _mm256_castpd_si256(a)
#define COUNT _mm256_set_epi64x(3, 2, 1, 0)
#define JOIN(a, b) _mm256_blend_epi32(b, _mm256_shuffle_epi32(a, 0xa0), 0xaa)
#define CHOOSE(x, y, m) _mm256_blendv_pd(x, y, _mm256_castsi256_pd(m))
#define FLIP(x, m) REAL(XOR(BITS(x), AND(m, ALLI(0x8000000000000000))))
#define ZERO(a, b) _mm256_movemask_pd(REAL(_mm256_cmpeq_epi64(AND(a, b), _mm256_setzero_si256())))
#define LESS(a, b) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LT_OQ))
#define STORE(p, a, b)                                                                                              \
  do {                                                                                                              \
    const __m128 first = _mm256_cvtpd_ps(a), second = _mm256_cvtpd_ps(b);                                           \
    _mm_storeu_ps(p, _mm_unpacklo_ps(first, second));                                                               \
    _mm_storeu_ps(p + 4, _mm_unpackhi_ps(first, second));                                                           \
  } while (0)
#endif

// NAME fills whole groups of pairs, two at a time, and returns how many pairs these are.
static int64_t NAME(float *row, uint64_t seed, uint64_t chain, uint64_t position, int64_t pairs) {
  const I magic = ALLI(0x4330000000000000); // 2^52 as a double
  I keys[20]; // of the rounds, in memory: registers are short
  for (uint32_t i = 0; i < 10; ++i) {
    keys[2 * i] = ALLI(static_cast<uint32_t>(seed) + i * 0x9E3779B9u);
    keys[2 * i + 1] = ALLI(static_cast<uint32_t>(seed >> 32) + i * 0xBB67AE85u);
  }
  int64_t p = 0;
  for (; p + 2 * LANES <= pairs; p += 2 * LANES) {
    // Philox 4x32-10 (Salmon et al. 2011), of two groups in turns, because each round waits for the last. The words are
    // the lower halves of the lanes; the upper ones are of no use, and never read.
    I c0[2], c1[2], c2[2], c3[2];
    for (int i = 0; i < 2; ++i) {
      c0[i] = PLUS(ALLI(position + static_cast<uint64_t>(p + i * LANES)), COUNT);
      c1[i] = UPPER(c0[i]), c2[i] = ALLI(chain), c3[i] = ALLI(chain >> 32);
    }
    for (int round = 0; round < 10; ++round)
      for (int i = 0; i < 2; ++i) {
        const I a = PRODUCT(c0[i], ALLI(0xD2511F53u)), b = PRODUCT(c2[i], ALLI(0xCD9E8D57u));
        c0[i] = XOR3(UPPER(b), c1[i], keys[2 * round]);
        c2[i] = XOR3(UPPER(a), c3[i], keys[2 * round + 1]);
        c1[i] = b;
        c3[i] = a;
      }
    for (int i = 0; i < 2; ++i) {
      // A number of 52 bits is the fraction of a double between 2^52 and 2^53. These are 2^52 u and 2^52 v.
      const V whole = ALL(4503599627370496.0), less = ALL(4503599627370495.5);
      const V u = SUB(REAL(OR(DOWN(JOIN(c0[i], c1[i]), 12), magic)), less);
      const V v = SUB(REAL(OR(DOWN(JOIN(c2[i], c3[i]), 12), magic)), less);

      // 2^52 u = 2^e m with m from √½ to √2, and log m = 2 artanh s with s = (m - 1)/(m + 1). x is -2 log u.
      const I shifted = PLUS(BITS(u), ALLI(0x3ff0000000000000 - 0x3fe6a09e667f3bcd));
      const V m = REAL(PLUS(AND(shifted, ALLI(0x000fffffffffffff)), ALLI(0x3fe6a09e667f3bcd)));
      const V e = SUB(REAL(OR(DOWN(shifted, 52), magic)), ALL(4503599627370496.0 + 1023.0 + 52.0)); // of u
      const V f = SUB(m, ALL(1.0)), g = ADD(m, ALL(1.0));
#if LANES == 8
      // 1/(1 - d) is 1 + d + d².
      const V inverse = _mm512_rcp14_pd(g), d = _mm512_fnmadd_pd(g, inverse, ALL(1.0)), near = MUL(f, inverse);
      const V s = FMA(near, FMA(d, d, d), near);
#else
      const V s = _mm256_div_pd(f, g);
#endif
      const V z = MUL(s, s);
      V log = FMA(z, ALL(-0.3921619127950611), ALL(-0.4434849982015498));
      log = FMA(log, z, ALL(-0.5714433229175145));
      log = FMA(log, z, ALL(-0.7999998978366476));
      log = FMA(log, z, ALL(-1.3333333335915851));
      log = FMA(log, z, ALL(-3.9999999999998943));
      const V x = FMA(s, log, MUL(e, ALL(-1.3862943611198906)));
#if LANES == 8
      // 1/√(1 - h) is 1 + h/2 + 3h²/8.
      const V root = _mm512_rsqrt14_pd(x), t = MUL(x, root), h = _mm512_fnmadd_pd(t, root, ALL(1.0));
      const V r = FMA(MUL(t, h), FMA(h, ALL(0.375), ALL(0.5)), t);
#else
      const V r = _mm256_sqrt_pd(x);
#endif

      // 4v is q right angles and y of one, which is at most a half.
      const V nearest = FMA(v, ALL(0x1p-50), whole); // its last bits are q
      const V y = FMS(v, ALL(0x1p-50), SUB(nearest, whole)), y2 = MUL(y, y);
      V odd = FMA(y2, ALL(-3.556386260704784e-06), ALL(0.00016042926504495616));
      V even = FMA(y2, ALL(-2.4850963357813638e-05), ALL(0.0009191617369539572));
      odd = FMA(odd, y2, ALL(-0.004681752591458209));
      even = FMA(even, y2, ALL(-0.020863468002244645));
      odd = FMA(odd, y2, ALL(0.07969262615574603));
      even = FMA(even, y2, ALL(0.25366950715370434));
      odd = FMA(odd, y2, ALL(-0.645964097504309));
      even = FMA(even, y2, ALL(-1.2337005501201592));
      odd = FMA(odd, y2, ALL(1.57079632679489));
      even = FMA(even, y2, ALL(0.9999999999999444));
      const V sine = MUL(MUL(r, y), odd), cosine = MUL(r, even);
      const I half = UP(BITS(nearest), 62), swap = UP(half, 1);
      const V a = FLIP(CHOOSE(cosine, sine, swap), XOR(half, swap)), b = FLIP(CHOOSE(sine, cosine, swap), half);

      const int64_t first = p + i * LANES;
      float *out = row + 2 * first;
      STORE(out, a, b);
      // 29 bits are rounded away. They are half of the last bit that stays, to 2^16.
      const I middle = ALLI((1 << 28) + (1 << 16)), far = ALLI((1 << 29) - (1 << 17));
      int open = ZERO(PLUS(BITS(a), middle), far) | ZERO(PLUS(BITS(b), middle), far) | LESS(y2, ALL(0x1p-24));
      for (int lane = 0; open != 0; ++lane, open >>= 1)
        if (open & 1)
          normal_floats(out + 2 * lane, seed, chain, position + static_cast<uint64_t>(first + lane));
    }
  }
  return p;
}

#undef LANES
#undef NAME
#undef V
#undef I
#undef ALL
#undef ALLI
#undef FMA
#undef FMS
#undef ADD
#undef SUB
#undef MUL
#undef PRODUCT
#undef UPPER
#undef XOR3
#undef XOR
#undef AND
#undef OR
#undef PLUS
#undef UP
#undef DOWN
#undef REAL
#undef BITS
#undef COUNT
#undef JOIN
#undef CHOOSE
#undef FLIP
#undef ZERO
#undef LESS
#undef STORE
