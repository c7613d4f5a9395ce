// The kernel that draws the numbers of random streams, once as code for the machine's compiler, which the tests run,
// and once as the text that NVRTC compiles. The two preludes say what the names in capitals mean. A position of a
// stream makes the four words of Philox 4x32-10 (Salmon et al. 2011), and these two numbers, or four normal ones of
// single precision.
#ifndef KELVIN_CUDA_KERNEL_H
#define KELVIN_CUDA_KERNEL_H
#include <cmath>

#define KELVIN_BOTH(...) \
  namespace {            \
  __VA_ARGS__            \
  }                      \
  static const char kelvin_source[] = #__VA_ARGS__;

// On the CPU one call fills everything.
#define KELVIN_FUNCTION inline
#define KELVIN_KERNEL void
#define KELVIN_FIRST 0LL
#define KELVIN_STEP 1LL

static const char kelvin_prelude[] =
    "#define KELVIN_FUNCTION __device__ inline\n"
    "#define KELVIN_KERNEL extern \"C\" __global__ void\n"
    "#define KELVIN_FIRST (blockIdx.x * (long long)blockDim.x + threadIdx.x)\n"
    "#define KELVIN_STEP (gridDim.x * (long long)blockDim.x)\n";

KELVIN_BOTH(
  struct kelvin_words { unsigned int w[4]; };

  KELVIN_FUNCTION kelvin_words kelvin_philox(unsigned long long seed, unsigned long long chain,
                                             unsigned long long position) {
    unsigned int k0 = (unsigned int)seed;
    unsigned int k1 = (unsigned int)(seed >> 32);
    kelvin_words c = {{(unsigned int)position, (unsigned int)(position >> 32), (unsigned int)chain,
                       (unsigned int)(chain >> 32)}};
    for (int round = 0; round < 10; ++round) {
      const unsigned long long one = 0xD2511F53ULL * c.w[0];
      const unsigned long long two = 0xCD9E8D57ULL * c.w[2];
      const kelvin_words next = {{(unsigned int)(two >> 32) ^ c.w[1] ^ k0, (unsigned int)two,
                                  (unsigned int)(one >> 32) ^ c.w[3] ^ k1, (unsigned int)one}};
      c = next;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    return c;
  }

  KELVIN_FUNCTION double kelvin_unit(unsigned int hi, unsigned int lo) {
    const unsigned long long bits = ((unsigned long long)hi << 20) | ((unsigned long long)lo >> 12);
    return ((double)bits + 0.5) * (1.0 / 4503599627370496.0);
  }

  // Two numbers of a position.
  KELVIN_FUNCTION void kelvin_numbers(int normal, const kelvin_words &c, double *z) {
    z[0] = kelvin_unit(c.w[0], c.w[1]);
    z[1] = kelvin_unit(c.w[2], c.w[3]);
    if (normal) {
      const double r = sqrt(-2.0 * log(z[0]));
      const double angle = 6.283185307179586476925286766559 * z[1];
      z[0] = r * cos(angle);
      z[1] = r * sin(angle);
    }
  }

  // A pair of normal numbers of single precision: the operations of kelvin_random.cpp one by one, which explains them.
  KELVIN_FUNCTION void kelvin_pair(unsigned int radius, unsigned int turn, float *z) {
    union { float x; unsigned int bits; } m;
    m.x = (float)(int)(radius >> 1) + 0.5f;
    const int shifted = (int)(m.bits - 0x3f3504f3U);
    const float e = (float)((shifted >> 23) - 31);
    m.bits = ((unsigned int)shifted & 0x7fffffU) + 0x3f3504f3U;
    const float f = m.x - 1.0f;
    float l = fmaf(-0.17469688975211556f, f, 0.28615045028694194f);
    l = fmaf(l, f, -0.29835946922127638f);
    l = fmaf(l, f, 0.33141016131520732f);
    l = fmaf(l, f, -0.3992414427733123f);
    l = fmaf(l, f, 0.50003510515032928f);
    l = fmaf(l, f, -0.66667900442982042f);
    l = fmaf(l, f, 0.99999983212761516f);
    const float r = sqrtf(fmaf(e, -1.3862943611198906f, fmaf(f * f, l, -2.0f * f)));
    const unsigned int q = turn + 0x20000000U;
    const float y = ((float)((int)(turn << 2) >> 2) + 0.5f) * 1.4629180792671596e-09f;
    const float y2 = y * y;
    const float odd = fmaf(y2, fmaf(y2, -0.00019517298984195782f, 0.0083321781461751987f), -0.16666654943702126f);
    const float even = fmaf(y2, fmaf(y2, 2.4433157070351213e-05f, -0.0013887316254480118f), 0.041666645682978279f);
    const float s = fmaf(y * y2, odd, y);
    const float c = fmaf(y2, fmaf(y2, even, -0.5f), 1.0f);
    const int swap = (q >> 30) & 1U;
    z[0] = r * (swap ? s : c);
    z[1] = r * (swap ? c : s);
    if ((q + 0x40000000U) >> 31)
      z[0] = -z[0];
    if (q >> 31)
      z[1] = -z[1];
  }

  KELVIN_FUNCTION void kelvin_numbers(int normal, const kelvin_words &c, float *z) {
    if (normal) {
      kelvin_pair(c.w[0], c.w[1], z);
      kelvin_pair(c.w[2], c.w[3], z + 2);
      return;
    }
    z[0] = ((float)(c.w[0] >> 9) + 0.5f) * (1.0f / 8388608.0f);
    z[1] = ((float)(c.w[2] >> 9) + 0.5f) * (1.0f / 8388608.0f);
  }

  template <typename T>
  KELVIN_FUNCTION void kelvin_rows(T *out, const unsigned long long *chains, unsigned long long first,
                                   unsigned long long step, unsigned long long seed, unsigned long long offset,
                                   long long rows, long long n, int normal) {
    const long long made = normal && sizeof(T) == 4 ? 4 : 2;
    const long long positions = (n + made - 1) / made;
    for (long long i = KELVIN_FIRST; i < rows * positions; i += KELVIN_STEP) {
      const long long row = i / positions;
      const long long at = i % positions;
      const unsigned long long chain = chains ? chains[row] : first + (unsigned long long)row * step;
      T z[4];
      kelvin_numbers(normal, kelvin_philox(seed, chain, offset + (unsigned long long)at), z);
      for (int k = 0; k < made && made * at + k < n; ++k)
        out[row * n + made * at + k] = z[k];
    }
  }

  KELVIN_KERNEL kelvin_doubles(double *out, const unsigned long long *chains, unsigned long long first,
                               unsigned long long step, unsigned long long seed, unsigned long long offset,
                               long long rows, long long n, int normal) {
    kelvin_rows(out, chains, first, step, seed, offset, rows, n, normal);
  }

  KELVIN_KERNEL kelvin_floats(float *out, const unsigned long long *chains, unsigned long long first,
                              unsigned long long step, unsigned long long seed, unsigned long long offset,
                              long long rows, long long n, int normal) {
    kelvin_rows(out, chains, first, step, seed, offset, rows, n, normal);
  }
)
#endif
