// Normal numbers of single precision, of LANES positions at a time: a function of one instruction set, with the bits of
// normal_four. NAME gives the names.
#if LANES == 16
#define BYTES 64
#define DO(name) _mm512_##name
#define LONGS(x) ((L)_mm512_set1_epi64(static_cast<long long>(x)))
#define LOAD(x) ((L)_mm512_load_si512(x))
#define M __m512
#define MI __m512i
#define MD __m512d
#define EVEN (L){0, 8, 1, 9, 2, 10, 3, 11}
#define ODD (L){4, 12, 5, 13, 6, 14, 7, 15}
// The lower words of b above those of a; and x where the highest bit of m is 0, else y.
#define JOIN(a, b) (W) _mm512_mask_blend_epi32(0xaaaa, (MI)(a), (MI)((b) << 32))
#define CHOOSE(x, y, m) (R) _mm512_mask_blend_ps(_mm512_movepi32_mask((MI)(m)), (M)(x), (M)(y))
#else
#define BYTES 32
#define DO(name) _mm256_##name
#define LONGS(x) ((L)_mm256_set1_epi64x(static_cast<long long>(x)))
#define LOAD(x) ((L)_mm256_load_si256((const MI *)(x)))
#define M __m256
#define MI __m256i
#define MD __m256d
#define EVEN (L){0, 4, 1, 5}
#define ODD (L){2, 6, 3, 7}
#define JOIN(a, b) (W) _mm256_blend_epi32((MI)(a), (MI)((b) << 32), 0xaa)
#define CHOOSE(x, y, m) (R) _mm256_blendv_ps((M)(x), (M)(y), (M)(m))
#endif
#define ALL(x) ((R)DO(set1_ps)(static_cast<float>(x)))
#define WORDS(x) ((W)DO(set1_epi32)(static_cast<int>(x)))
#define FMA(a, b, c) ((R)DO(fmadd_ps)((M)(a), (M)(b), (M)(c)))
#define REAL(a) ((R)DO(cvtepi32_ps)((MI)(a)))
#define PRODUCT(a, b) ((L)DO(mul_epu32)((MI)(a), (MI)(b)))

// Fills whole groups of positions and returns how many they are.
static int64_t NAME(normal)(float *row, const uint64_t *keys, uint64_t chain, uint64_t position, int64_t positions,
                            const char *const *ahead, int addresses) {
  typedef uint32_t W __attribute__((vector_size(BYTES)));
  typedef int32_t I __attribute__((vector_size(BYTES)));
  typedef uint64_t L __attribute__((vector_size(BYTES)));
  typedef float R __attribute__((vector_size(BYTES)));
  int64_t p = 0;
  for (; p + LANES <= positions; p += LANES) {
    for (int i = 0; i < addresses; ++i)
      for (int64_t line = 0; line < 4 * LANES; line += 16)
        __builtin_prefetch(ahead[i] + (4 * p + line) * static_cast<int64_t>(sizeof(float)));
    // Philox, the even lanes apart from the odd ones, because a product is twice as wide. Words are the lower halves;
    // the upper ones are of no use. Lane 4j + s has position LANES/4 s + j, which the stores want.
    const L first = LONGS(position + static_cast<uint64_t>(p)), m0 = LONGS(0xD2511F53u), m1 = LONGS(0xCD9E8D57u);
    L c0[2] = {first + EVEN, first + ODD}, c1[2] = {c0[0] >> 32, c0[1] >> 32};
    L c2[2] = {LONGS(chain), LONGS(chain)}, c3[2] = {LONGS(chain >> 32), LONGS(chain >> 32)};
    for (int round = 0; round < 10; ++round)
      for (int i = 0; i < 2; ++i) {
        const L a = PRODUCT(c0[i], m0), b = PRODUCT(c2[i], m1);
        c0[i] = (b >> 32) ^ c1[i] ^ LOAD(keys + 16 * round);
        c2[i] = (a >> 32) ^ c3[i] ^ LOAD(keys + 16 * round + 8);
        c1[i] = b;
        c3[i] = a;
      }
    const W w[4] = {JOIN(c0[0], c0[1]), JOIN(c1[0], c1[1]), JOIN(c2[0], c2[1]), JOIN(c3[0], c3[1])};
    R z[4];
    for (int h = 0; h < 4; h += 2) {
      const R u = REAL(w[h] >> 1) + ALL(0.5);
      const I shifted = (I)((W)u - WORDS(root_half));
      const R e = REAL((shifted >> 23) - (I)WORDS(31));
      const R f = (R)(((W)shifted & WORDS(0x7fffff)) + WORDS(root_half)) - ALL(1);
      R log = ALL(log_terms[7]);
      for (int k = 6; k >= 0; --k)
        log = FMA(log, f, ALL(log_terms[k]));
      const R r = (R)DO(sqrt_ps)((M)FMA(e, ALL(two_logs), FMA(f * f, log, ALL(-2) * f)));
      const W q = w[h + 1] + WORDS(1u << 29);
      const R y = (REAL((I)(w[h + 1] << 2) >> 2) + ALL(0.5)) * ALL(small_angle), y2 = y * y;
      const R s = FMA(y * y2, FMA(y2, FMA(y2, ALL(sine[2]), ALL(sine[1])), ALL(sine[0])), y);
      const R even = FMA(y2, FMA(y2, ALL(cosine[2]), ALL(cosine[1])), ALL(cosine[0]));
      const R c = FMA(y2, FMA(y2, even, ALL(-0.5)), ALL(1));
      const W swap = q << 1, sign = WORDS(1u << 31);
      z[h] = (R)((W)(r * CHOOSE(c, s, swap)) ^ ((q + WORDS(1u << 30)) & sign));
      z[h + 1] = (R)((W)(r * CHOOSE(s, c, swap)) ^ (q & sign));
    }
    const MD a = (MD)DO(unpacklo_ps)((M)z[0], (M)z[1]), b = (MD)DO(unpackhi_ps)((M)z[0], (M)z[1]);
    const MD c = (MD)DO(unpacklo_ps)((M)z[2], (M)z[3]), d = (MD)DO(unpackhi_ps)((M)z[2], (M)z[3]);
    const MD lines[4] = {DO(unpacklo_pd)(a, c), DO(unpackhi_pd)(a, c), DO(unpacklo_pd)(b, d), DO(unpackhi_pd)(b, d)};
    memcpy(row + 4 * p, lines, sizeof lines);
  }
  return p;
}

#undef LANES
#undef NAME
#undef BYTES
#undef DO
#undef M
#undef MI
#undef MD
#undef EVEN
#undef ODD
#undef JOIN
#undef CHOOSE
#undef ALL
#undef WORDS
#undef LONGS
#undef LOAD
#undef FMA
#undef REAL
#undef PRODUCT
