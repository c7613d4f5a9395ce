// The kernel that draws the numbers of random streams, once as code for the machine's compiler, which the tests run,
// and once as the text that NVRTC compiles. The two preludes say what the names in capitals mean. A position of a
// stream makes the four words of Philox 4x32-10 (Salmon et al. 2011), and these two numbers.
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

  KELVIN_FUNCTION void kelvin_pair(int normal, unsigned long long seed, unsigned long long chain,
                                   unsigned long long position, double *a, double *b) {
    const kelvin_words c = kelvin_philox(seed, chain, position);
    *a = kelvin_unit(c.w[0], c.w[1]);
    *b = kelvin_unit(c.w[2], c.w[3]);
    if (normal) {
      const double r = sqrt(-2.0 * log(*a));
      const double angle = 6.283185307179586476925286766559 * *b;
      *a = r * cos(angle);
      *b = r * sin(angle);
    }
  }

  KELVIN_FUNCTION void kelvin_pair(int normal, unsigned long long seed, unsigned long long chain,
                                   unsigned long long position, float *a, float *b) {
    if (normal) {
      double x;
      double y;
      kelvin_pair(1, seed, chain, position, &x, &y);
      *a = (float)x;
      *b = (float)y;
      return;
    }
    const kelvin_words c = kelvin_philox(seed, chain, position);
    *a = ((float)(c.w[0] >> 9) + 0.5f) * (1.0f / 8388608.0f);
    *b = ((float)(c.w[2] >> 9) + 0.5f) * (1.0f / 8388608.0f);
  }

  template <typename T>
  KELVIN_FUNCTION void kelvin_rows(T *out, const unsigned long long *chains, unsigned long long first,
                                   unsigned long long step, unsigned long long seed, unsigned long long offset,
                                   long long rows, long long n, int normal) {
    const long long pairs = (n + 1) / 2;
    for (long long i = KELVIN_FIRST; i < rows * pairs; i += KELVIN_STEP) {
      const long long row = i / pairs;
      const long long pair = i % pairs;
      T a;
      T b;
      const unsigned long long chain = chains ? chains[row] : first + (unsigned long long)row * step;
      kelvin_pair(normal, seed, chain, offset + (unsigned long long)pair, &a, &b);
      out[row * n + 2 * pair] = a;
      if (2 * pair + 1 < n)
        out[row * n + 2 * pair + 1] = b;
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
