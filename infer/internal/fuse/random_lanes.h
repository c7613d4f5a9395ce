// Normal numbers of float precision, LANES pairs at a time: a function NAME for one instruction set.
//
// They have the bits of normal_floats. Everything is computed in double precision, by formulas of other roundings than
// those of the C library: both are within a few units of 2^-53 of the true number, relatively. Where a change of 2^-46
// could change what it is rounded to, the pair is left to normal_floats; that is one number in two million.

#if LANES == 8
#define V __m512d
#define I __m512i
#define ALL(x) _mm512_set1_pd(x)
#define ALLI(x) _mm512_set1_epi64(static_cast<long long>(x))
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define FNMA(a, b, c) _mm512_fnmadd_pd(a, b, c)
#define ADD(a, b) _mm512_add_pd(a, b)
#define SUB(a, b) _mm512_sub_pd(a, b)
#define MUL(a, b) _mm512_mul_pd(a, b)
#define DIV(a, b) _mm512_div_pd(a, b)
#define SQRT(a) _mm512_sqrt_pd(a)
#define PRODUCT(a, b) _mm512_mul_epu32(a, b)
#define XOR(a, b) _mm512_xor_si512(a, b)
#define AND(a, b) _mm512_and_si512(a, b)
#define OR(a, b) _mm512_or_si512(a, b)
#define PLUS(a, b) _mm512_add_epi64(a, b)
#define UP(a, n) _mm512_slli_epi64(a, n)
#define DOWN(a, n) _mm512_srli_epi64(a, n)
#define REAL(a) _mm512_castsi512_pd(a)
#define BITS(a) _mm512_castpd_si512(a)
#define COUNT _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)
// x where the highest bit of m is 0, else y
#define CHOOSE(x, y, m) _mm512_mask_blend_pd(_mm512_movepi64_mask(m), x, y)
#define FLOATS(a) _mm512_cvtpd_ps(a)
#define SINGLE __m256
#define UNEQUAL(a, b) static_cast<int>(_mm256_cmp_ps_mask(a, b, _CMP_NEQ_UQ))
#define STORE(p, a, b)                                                                                              \
  do {                                                                                                              \
    const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);                                   \
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));                                                   \
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));                                               \
  } while (0)
#else
#define V __m256d
#define I __m256i
#define ALL(x) _mm256_set1_pd(x)
#define ALLI(x) _mm256_set1_epi64x(static_cast<long long>(x))
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define FNMA(a, b, c) _mm256_fnmadd_pd(a, b, c)
#define ADD(a, b) _mm256_add_pd(a, b)
#define SUB(a, b) _mm256_sub_pd(a, b)
#define MUL(a, b) _mm256_mul_pd(a, b)
#define DIV(a, b) _mm256_div_pd(a, b)
#define SQRT(a) _mm256_sqrt_pd(a)
#define PRODUCT(a, b) _mm256_mul_epu32(a, b)
#define XOR(a, b) _mm256_xor_si256(a, b)
#define AND(a, b) _mm256_and_si256(a, b)
#define OR(a, b) _mm256_or_si256(a, b)
#define PLUS(a, b) _mm256_add_epi64(a, b)
#define UP(a, n) _mm256_slli_epi64(a, n)
#define DOWN(a, n) _mm256_srli_epi64(a, n)
#define REAL(a) _mm256_castsi256_pd(a)
#define BITS(a) _mm256_castpd_si256(a)
#define COUNT _mm256_set_epi64x(3, 2, 1, 0)
#define CHOOSE(x, y, m) _mm256_blendv_pd(x, y, _mm256_castsi256_pd(m))
#define FLOATS(a) _mm256_cvtpd_ps(a)
#define SINGLE __m128
#define UNEQUAL(a, b) _mm_movemask_ps(_mm_cmpneq_ps(a, b))
#define STORE(p, a, b)                                                                                              \
  do {                                                                                                              \
    _mm_storeu_ps(p, _mm_unpacklo_ps(a, b));                                                                        \
    _mm_storeu_ps(p + 4, _mm_unpackhi_ps(a, b));                                                                    \
  } while (0)
#endif

// NAME fills whole groups of pairs and returns how many pairs these are.
static int64_t NAME(float *row, uint64_t seed, uint64_t chain, uint64_t position, int64_t pairs) {
  const I word = ALLI(0xffffffffu), magic = ALLI(0x4330000000000000);
  int64_t p = 0;
  for (; p + LANES <= pairs; p += LANES) {
    // Philox 4x32-10 (Salmon et al. 2011): the words are the lower halves of the lanes.
    const I at = PLUS(ALLI(position + static_cast<uint64_t>(p)), COUNT);
    I c0 = AND(at, word), c1 = DOWN(at, 32), c2 = ALLI(chain & 0xffffffffu), c3 = ALLI(chain >> 32);
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const I a = PRODUCT(c0, ALLI(0xD2511F53u)), b = PRODUCT(c2, ALLI(0xCD9E8D57u));
      c0 = XOR(XOR(DOWN(b, 32), c1), ALLI(k0));
      c2 = XOR(XOR(DOWN(a, 32), c3), ALLI(k1));
      c1 = AND(b, word);
      c3 = AND(a, word);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    // A number of 52 bits is the fraction of a double between 2^52 and 2^53.
    const V tiny = ALL(1.0 / 4503599627370496.0), whole = ALL(4503599627370496.0), half = ALL(0.5);
    const V u = MUL(ADD(SUB(REAL(OR(OR(UP(c0, 20), DOWN(c1, 12)), magic)), whole), half), tiny);
    const V v = MUL(ADD(SUB(REAL(OR(OR(UP(c2, 20), DOWN(c3, 12)), magic)), whole), half), tiny);

    // log u = e log 2 + log m with m from √½ to √2, and log m = 2 artanh s with s = (m - 1)/(m + 1).
    const I root = ALLI(0x3fe6a09e667f3bcd); // √½
    const I shifted = PLUS(PLUS(BITS(u), ALLI(0x3ff0000000000000)), ALLI(0ull - 0x3fe6a09e667f3bcd));
    const I e = DOWN(shifted, 52); // the exponent, plus 1023
    const V m = REAL(PLUS(AND(shifted, ALLI(0x000fffffffffffff)), root));
    const V exponent = SUB(REAL(OR(e, magic)), ALL(4503599627370496.0 + 1023.0));
    const V f = SUB(m, ALL(1.0)), s = DIV(f, ADD(m, ALL(1.0))), z = MUL(s, s);
    V series = ALL(2.0 / 21);
    for (int k = 19; k >= 3; k -= 2)
      series = FMA(series, z, ALL(2.0 / k));
    const V log2high = ALL(0.69314718055994528623), log2low = ALL(2.3190468138462995584e-17);
    const V rest = FMA(exponent, log2low, FMA(MUL(s, z), series, ADD(s, s)));
    const V logarithm = FMA(exponent, log2high, rest);
    const V r = SQRT(MUL(ALL(-2.0), logarithm));

    // The angle is q right angles and y, which is at most half of one.
    const V angle = MUL(ALL(6.283185307179586476925286766559), v);
    const V nearest = ADD(MUL(angle, ALL(0.63661977236758134308)), whole); // its last bits are q
    const I q = BITS(nearest);
    const V turns = SUB(nearest, whole);
    const V y = FNMA(turns, ALL(6.123233995736766036e-17), FNMA(turns, ALL(1.5707963267948965580), angle));
    const V y2 = MUL(y, y);
    V odd = ALL(1.0 / 355687428096000), even = ALL(1.0 / 20922789888000); // 1/17!, 1/16!
    odd = FMA(odd, y2, ALL(-1.0 / 1307674368000));
    odd = FMA(odd, y2, ALL(1.0 / 6227020800));
    odd = FMA(odd, y2, ALL(-1.0 / 39916800));
    odd = FMA(odd, y2, ALL(1.0 / 362880));
    odd = FMA(odd, y2, ALL(-1.0 / 5040));
    odd = FMA(odd, y2, ALL(1.0 / 120));
    odd = FMA(odd, y2, ALL(-1.0 / 6));
    even = FMA(even, y2, ALL(-1.0 / 87178291200));
    even = FMA(even, y2, ALL(1.0 / 479001600));
    even = FMA(even, y2, ALL(-1.0 / 3628800));
    even = FMA(even, y2, ALL(1.0 / 40320));
    even = FMA(even, y2, ALL(-1.0 / 720));
    even = FMA(even, y2, ALL(1.0 / 24));
    even = FMA(even, y2, ALL(-0.5));
    const V sine = FMA(MUL(y, y2), odd, y), cosine = FMA(even, y2, ALL(1.0));
    const I swap = UP(q, 63), top = ALLI(0x8000000000000000);
    const V a = REAL(XOR(BITS(CHOOSE(cosine, sine, swap)), AND(UP(PLUS(q, ALLI(1)), 62), top)));
    const V b = REAL(XOR(BITS(CHOOSE(sine, cosine, swap)), AND(UP(q, 62), top)));

    const V x0 = MUL(r, a), x1 = MUL(r, b), less = ALL(1.0 - 0x1p-46), more = ALL(1.0 + 0x1p-46);
    const SINGLE f0 = FLOATS(x0), f1 = FLOATS(x1);
    float *out = row + 2 * p;
    STORE(out, f0, f1);
    int open = UNEQUAL(FLOATS(MUL(x0, less)), FLOATS(MUL(x0, more))) |
               UNEQUAL(FLOATS(MUL(x1, less)), FLOATS(MUL(x1, more)));
    for (int lane = 0; open != 0; ++lane, open >>= 1)
      if (open & 1)
        normal_floats(out + 2 * lane, seed, chain, position + static_cast<uint64_t>(p + lane));
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
#undef FNMA
#undef ADD
#undef SUB
#undef MUL
#undef DIV
#undef SQRT
#undef PRODUCT
#undef XOR
#undef AND
#undef OR
#undef PLUS
#undef UP
#undef DOWN
#undef REAL
#undef BITS
#undef COUNT
#undef CHOOSE
#undef FLOATS
#undef SINGLE
#undef UNEQUAL
#undef STORE
