// The densities of irtest's models as a careful programmer writes them: what compiled plans are measured against.
#include "../abi.h"
#include <math.h>

#define VECTOR __attribute__((simd("notinbranch"), const))
#ifdef KELVIN_LIBMVEC
double exp(double) VECTOR;
double log1p(double) VECTOR;
#endif

const int kelvin_abi = KELVIN_ABI;
int kelvin_prologue(const kelvin_call *c) { return 0; }
int kelvin_main(const kelvin_call *c) { return 0; }

static int schools(const double *restrict x, double *restrict grad, double *restrict value, const double *restrict y,
                   const double *restrict sigma) {
  double mu = x[0], tau = exp(x[1]), r = tau / 5, h = r * r + 1;
  double squares = 0, prior = 0, sum = 0, cross = 0;
#pragma omp simd reduction(+ : squares, prior, sum, cross)
  for (int j = 0; j < 8; j++) {
    double theta = x[2 + j], z = (y[j] - mu - tau * theta) / sigma[j], g = z / sigma[j];
    squares += z * z;
    prior += theta * theta;
    sum += g;
    cross += g * theta;
    grad[2 + j] = g * tau - theta;
  }
  *value = -0.02 * mu * mu - log(h) + x[1] - 0.5 * (squares + prior) - 39.26;
  grad[0] = sum - 0.04 * mu;
  grad[1] = 1 + (cross - 2 * r / (5 * h)) * tau;
  return 0;
}

int baseline_schools(const kelvin_call *c) {
  return schools(c->x, c->grad, c->value, (const double *)c->consts, (const double *)c->consts + 8);
}

// The columns lie one after the other, as whoever writes for speed lays them out.
static int logistic(const double *restrict x, double *restrict grad, double *restrict value, const double *restrict a,
                    const double *restrict y) {
  enum { n = 768 };
  double g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0, v = 0;
#pragma omp simd reduction(+ : g0, g1, g2, g3, g4, g5, g6, g7, v)
  for (int i = 0; i < n; i++) {
    const double *p = a + i;
    double e = x[0] * p[0] + x[1] * p[n] + x[2] * p[2 * n] + x[3] * p[3 * n] + x[4] * p[4 * n] + x[5] * p[5 * n] +
               x[6] * p[6 * n] + x[7] * p[7 * n];
    double q = exp(-fabs(e));
    v += y[i] * e - (e > 0 ? e : 0) - log1p(q);
    double r = y[i] - (e < 0 ? q : 1) / (1 + q);
    g0 += r * p[0], g1 += r * p[n], g2 += r * p[2 * n], g3 += r * p[3 * n];
    g4 += r * p[4 * n], g5 += r * p[5 * n], g6 += r * p[6 * n], g7 += r * p[7 * n];
  }
  double g[8] = {g0, g1, g2, g3, g4, g5, g6, g7}, s = 0;
  for (int j = 0; j < 8; j++) {
    grad[j] = g[j] - x[j];
    s += x[j] * x[j];
  }
  *value = v - 0.5 * s;
  return 0;
}

int baseline_logistic(const kelvin_call *c) {
  return logistic(c->x, c->grad, c->value, (const double *)c->consts, (const double *)c->consts + 8 * 768);
}

static int loglinear(const double *restrict x, double *restrict grad, double *restrict value, const double *restrict d) {
  enum { n = 1192 };
  const double *u = d, *v = d + n, *y = d + 2 * n, *w = d + 3 * n;
  double r = exp(-x[4]), s = 0, g0 = 0, g1 = 0, g2 = 0, g3 = 0;
#pragma omp simd reduction(+ : s, g0, g1, g2, g3)
  for (int i = 0; i < n; i++) {
    double z = (y[i] - x[0] - x[1] * u[i] - x[2] * v[i] - x[3] * w[i]) * r;
    s += z * z, g0 += z, g1 += z * u[i], g2 += z * v[i], g3 += z * w[i];
  }
  *value = -0.5 * s - n * x[4];
  grad[0] = g0 * r, grad[1] = g1 * r, grad[2] = g2 * r, grad[3] = g3 * r, grad[4] = s - n;
  return 0;
}

int baseline_loglinear(const kelvin_call *c) { return loglinear(c->x, c->grad, c->value, (const double *)c->consts); }
