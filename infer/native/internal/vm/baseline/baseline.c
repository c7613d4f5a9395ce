#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define VEC __attribute__((simd("notinbranch"), const))
extern double exp(double) VEC;
extern double log(double) VEC;
extern double log1p(double) VEC;
#else
#include <math.h>
#endif
double sqrt(double);
double fabs(double);
#include "baseline.h"

#define AGAIN __asm__ volatile("" : : "r"(x), "r"(grad) : "memory")

static double eight_schools(const double *restrict x, double *restrict grad) {
  static const double y[8] = {28, 8, -3, 7, -1, 1, 18, 12}, sigma[8] = {15, 10, 16, 11, 9, 11, 10, 18};
  double mu = x[0], tau = exp(x[1]), zz = 0, tt = 0, gm = 0, gt = 0;
  for (int i = 0; i < 8; i++) {
    double z = (y[i] - (tau * x[2 + i] + mu)) / sigma[i], g = z / sigma[i];
    zz += z * z;
    tt += x[2 + i] * x[2 + i];
    gm += g;
    gt += g * x[2 + i];
    grad[2 + i] = g * tau - x[2 + i];
  }
  double r = tau / 5, h = sqrt(r * r + 1);
  grad[0] = gm - 0.04 * mu;
  grad[1] = 1 + (gt - 2 * r / (h * h) / 5) * tau;
  return -0.02 * mu * mu - 2 * log(h) + x[1] - 0.5 * tt - 0.5 * zz - 39.26;
}

double baseline_eight_schools(long repeat, const double *x, double *grad) {
  double v = 0;
  for (long r = 0; r < repeat; r++) {
    v = eight_schools(x, grad);
    AGAIN;
  }
  return v;
}

double baseline_logistic(long repeat, long n, long d, const double *x, double *grad, const double *data,
                         const double *label, double *residual) {
  double v = 0;
  for (long r = 0; r < repeat; r++) {
    for (long i = 0; i < n; i++) {
      double e = 0;
      for (long j = 0; j < d; j++) e += data[i * d + j] * x[j];
      residual[i] = e;
    }
    v = 0;
    for (long i = 0; i < n; i++) {
      double e = residual[i], p = exp(-fabs(e));
      v += label[i] * e - ((e > 0 ? e : 0) + log1p(p));
      residual[i] = label[i] - (e < 0 ? p : 1) / (1 + p);
    }
    for (long j = 0; j < d; j++) {
      v -= 0.5 * x[j] * x[j];
      grad[j] = -x[j];
    }
    for (long i = 0; i < n; i++)
      for (long j = 0; j < d; j++) grad[j] += data[i * d + j] * residual[i];
    AGAIN;
  }
  return v;
}

double baseline_log_linear(long repeat, long n, const double *x, double *grad, const double *u, const double *v,
                           const double *both, const double *y) {
  double value = 0;
  for (long r = 0; r < repeat; r++) {
    double s = exp(x[4]), zz = 0, g0 = 0, g1 = 0, g2 = 0, g3 = 0;
    for (long i = 0; i < n; i++) {
      double z = (y[i] - (x[0] + u[i] * x[1] + v[i] * x[2] + both[i] * x[3])) / s, g = z / s;
      zz += z * z;
      g0 += g;
      g1 += g * u[i];
      g2 += g * v[i];
      g3 += g * both[i];
    }
    grad[0] = g0, grad[1] = g1, grad[2] = g2, grad[3] = g3, grad[4] = zz - n;
    value = -0.5 * zz - n * x[4];
    AGAIN;
  }
  return value;
}
