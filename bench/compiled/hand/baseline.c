// Hand-written gradients of five log posteriors: what C can do on this machine. The program reads numbers from its
// standard input and prints the microseconds of value and gradient, the value without constants, and the gradient.
//
//	baseline MODEL SECONDS
//	d, x_1 ... x_d, and arrays, each after its length; all float64
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The vector functions of glibc; elsewhere the compiler calls the scalar ones.
#if defined(__x86_64__) && defined(__GLIBC__)
__attribute__((simd("notinbranch"), const)) double exp(double);
__attribute__((simd("notinbranch"), const)) double log1p(double);
#endif

static long lengths[8];
static double *arrays[8];

// x = (mu, log tau, z): mu ~ N(0, 5), tau ~ half-Cauchy(5), z_j ~ N(0, 1), y_j ~ N(mu + tau z_j, sigma_j).
static double schools(const double *restrict x, double *restrict g, long d) {
  const double *restrict y = arrays[0], *restrict sigma = arrays[1];
  double tau = exp(x[1]), value = 0, to_mu = 0, to_tau = 0;
#pragma omp simd reduction(+ : value, to_mu, to_tau)
  for (long j = 0; j < d - 2; j++) {
    double z = x[2 + j], r = (y[j] - x[0] - tau * z) / sigma[j], s = r / sigma[j];
    value -= 0.5 * (r * r + z * z);
    to_mu += s;
    to_tau += s * z;
    g[2 + j] = s * tau - z;
  }
  double m = x[0] / 25, t = tau * tau / 25;
  g[0] = to_mu - m;
  g[1] = to_tau * tau - 2 * t / (1 + t) + 1;
  return value - 0.5 * m * x[0] - log1p(t) + x[1];
}

// Weights w ~ N(0, I), columns of features, signs s: sum of log sigmoid(s_i x_i w).
static double logistic(const double *restrict w, double *restrict g, long d) {
  const double *restrict columns = arrays[0], *restrict sign = arrays[1];
  const long n = lengths[1];
  static double residual[1 << 16];
  double value = 0, prior = 0;
  for (long i = 0; i < n; i++) residual[i] = w[0] * columns[i];
  for (long j = 1; j < d; j++) {
    const double *restrict c = columns + j * n;
#pragma omp simd
    for (long i = 0; i < n; i++) residual[i] += w[j] * c[i];
  }
#pragma omp simd reduction(+ : value)
  for (long i = 0; i < n; i++) {
    double eta = sign[i] * residual[i], e = exp(-fabs(eta));
    value += (eta < 0 ? eta : 0) - log1p(e);
    residual[i] = sign[i] * (eta > 0 ? e : 1) / (1 + e);
  }
  for (long j = 0; j < d; j++) {
    const double *restrict c = columns + j * n;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = 0; i < n; i++) sum += c[i] * residual[i];
    g[j] = sum - w[j];
    prior += w[j] * w[j];
  }
  return value - 0.5 * prior;
}

// x = (log sigma, theta): y ~ N(Q theta, sigma), four columns, flat priors.
static double regression(const double *restrict x, double *restrict g, long d) {
  const double *restrict q = arrays[0], *restrict y = arrays[1], *theta = x + 1;
  const long n = lengths[1];
  double a = 0, b = 0, c = 0, e = 0, squares = 0;
#pragma omp simd reduction(+ : a, b, c, e, squares)
  for (long i = 0; i < n; i++) {
    double r = y[i] - theta[0] * q[i] - theta[1] * q[n + i] - theta[2] * q[2 * n + i] - theta[3] * q[3 * n + i];
    a += r * q[i];
    b += r * q[n + i];
    c += r * q[2 * n + i];
    e += r * q[3 * n + i];
    squares += r * r;
  }
  double precision = exp(-2 * x[0]);
  g[0] = precision * squares - n + 1;
  g[1] = precision * a, g[2] = precision * b, g[3] = precision * c, g[4] = precision * e;
  return -0.5 * precision * squares - (n - 1) * x[0];
}

// x = (mu_1, log(mu_2 - mu_1), log sigma_1, log sigma_2, logit theta): a mixture of two normal distributions with mu ~
// N(0, 2), sigma ~ N(0, 2), theta ~ Beta(5, 5).
static double mixture(const double *restrict x, double *restrict g, long d) {
  const double *restrict y = arrays[0];
  const long n = lengths[0];
  double apart = exp(x[1]), m1 = x[0], m2 = x[0] + apart, s1 = exp(x[2]), s2 = exp(x[3]);
  double theta = 1 / (1 + exp(-x[4])), log_theta = -log1p(exp(-x[4])), log_rest = -log1p(exp(x[4]));
  double a1 = log_theta - x[2], a2 = log_rest - x[3], i1 = 1 / s1, i2 = 1 / s2;
  double value = 0, p1 = 0, z1 = 0, z2 = 0, q1 = 0, q2 = 0;
#pragma omp simd reduction(+ : value, p1, z1, z2, q1, q2)
  for (long i = 0; i < n; i++) {
    double u = (y[i] - m1) * i1, v = (y[i] - m2) * i2;
    double l1 = a1 - 0.5 * u * u, l2 = a2 - 0.5 * v * v, away = l2 - l1;
    double e = exp(-fabs(away));
    double w2 = (away > 0 ? 1 : e) / (1 + e), w1 = 1 - w2;
    value += (away > 0 ? l2 : l1) + log1p(e);
    p1 += w1;
    z1 += w1 * u;
    z2 += w2 * v;
    q1 += w1 * u * u;
    q2 += w2 * v * v;
  }
  double p2 = n - p1;
  g[1] = (z2 * i2 - 0.25 * m2) * apart + 1;
  g[0] = z1 * i1 + z2 * i2 - 0.25 * (m1 + m2);
  g[2] = q1 - p1 - 0.25 * s1 * s1 + 1;
  g[3] = q2 - p2 - 0.25 * s2 * s2 + 1;
  g[4] = p1 - n * theta + 5 - 10 * theta;
  return value - 0.125 * (m1 * m1 + m2 * m2 + s1 * s1 + s2 * s2) + 5 * (log_theta + log_rest) + x[1] + x[2] + x[3];
}

// x = (log noise, log scale): a level that steps by N(0, scale) from N(0, 1) on, seen with noise; both half-normal. The
// derivatives of the Kalman filter in both variances go along with it.
static double level(const double *restrict x, double *restrict g, long d) {
  const double *restrict y = arrays[0];
  const double h = exp(2 * x[0]), q = exp(2 * x[1]);
  double a = 0, p = 1, a0 = 0, a1 = 0, p0 = 0, p1 = 0, to_h = 0, to_q = 0, squares = 0, logs = 0;
  for (long t = 0; t < lengths[0]; t++) {
    double i = 1 / (p + h), v = y[t] - a, k = p * i, u = v * i;
    double k0 = (p0 - k * (p0 + 1)) * i, k1 = (p1 - k * p1) * i;
    squares += v * u;
    logs += log(p + h);
    to_h -= 0.5 * (p0 + 1) * (i - u * u) - u * a0;
    to_q -= 0.5 * p1 * (i - u * u) - u * a1;
    a += k * v;
    a0 += k0 * v - k * a0;
    a1 += k1 * v - k * a1;
    p0 = p0 * (1 - k) - p * k0;
    p1 = p1 * (1 - k) - p * k1 + 1;
    p = p * (1 - k) + q;
  }
  g[0] = 2 * h * to_h - h + 1;
  g[1] = 2 * q * to_q - q + 1;
  return -0.5 * (squares + logs + h + q) + x[0] + x[1];
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double *read_numbers(long *n) {
  double count;
  if (fread(&count, sizeof count, 1, stdin) != 1) return NULL;
  *n = count;
  // Room for a vector beyond the end, on a boundary of vectors.
  double *v = aligned_alloc(64, (*n * sizeof *v + 127) / 64 * 64);
  if (v == NULL || fread(v, sizeof *v, *n, stdin) != (size_t)*n) exit(1);
  return v;
}

int main(int argc, char **argv) {
  static const struct { const char *name; double (*f)(const double *, double *, long); } models[] = {
      {"schools", schools}, {"logistic", logistic}, {"regression", regression}, {"mixture", mixture},
      {"level", level}};
  double (*f)(const double *, double *, long) = NULL;
  for (int i = 0; argc == 3 && i < 5; i++)
    if (strcmp(argv[1], models[i].name) == 0) f = models[i].f;
  long d;
  double *x = read_numbers(&d);
  if (f == NULL || x == NULL || d > 64) return 1;
  for (int i = 0; i < 8 && (arrays[i] = read_numbers(&lengths[i])) != NULL; i++)
    if (lengths[i] > 8 << 16) return 1;
  double g[64], value = f(x, g, d), best = INFINITY, end = now() + atof(argv[2]);
  for (long n = 1; now() < end;) {
    double start = now(), sum = 0;
    for (long i = 0; i < n; i++) {
      x[0] += 1e-300; // not to be taken out of the loop
      sum += f(x, g, d);
    }
    double took = now() - start;
    if (took / n < best && sum == sum) best = took / n;
    if (took < 2e-4) n *= 2;
  }
  printf("%.9g %.17g", 1e6 * best, value);
  f(x, g, d);
  for (long i = 0; i < d; i++) printf(" %.17g", g[i]);
  printf("\n");
  return 0;
}
