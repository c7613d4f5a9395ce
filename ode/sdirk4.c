#include "solve.h"
#include <math.h>
#include <string.h>

// The singly diagonally implicit method SDIRK4 of Hairer and Wanner (1996), Solving Ordinary Differential Equations II,
// table IV.6.5: five stages, order 4, L-stable, with an error estimate of order 3. Each stage is solved by Newton's
// method with the Jacobian of the right-hand side; its derivatives then follow from one more linear system.
enum { STAGES = 5, ITERATIONS = 10 };
static const double diagonal = 0.25;
static const double nodes[STAGES] = {1. / 4, 3. / 4, 11. / 20, 1. / 2, 1};
static const double weights[STAGES][STAGES] = {
    {1. / 4},
    {1. / 2, 1. / 4},
    {17. / 50, -1. / 25, 1. / 4},
    {371. / 1360, -137. / 2720, 15. / 544, 1. / 4},
    {25. / 24, -49. / 48, 125. / 16, -85. / 12, 1. / 4},
};
static const double errors[STAGES] = {-3. / 16, -27. / 32, 25. / 32, 0, 1. / 4};

// factor makes I − g J a product of triangles in lu, with pivots; 0 where it is singular.
static int factor(const ode_run *r, double g, double *lu, double *pivots) {
  const long n = r->p->n;
  for (long i = 0; i < n; i++)
    for (long k = 0; k < n; k++) lu[n * i + k] = (i == k) - g * r->j[r->width * i + k];
  for (long c = 0; c < n; c++) {
    long best = c;
    for (long i = c + 1; i < n; i++)
      if (fabs(lu[n * i + c]) > fabs(lu[n * best + c])) best = i;
    pivots[c] = best;
    if (!(fabs(lu[n * best + c]) > 0)) return 0;
    for (long k = 0; best != c && k < n; k++) {
      double swap = lu[n * c + k];
      lu[n * c + k] = lu[n * best + k];
      lu[n * best + k] = swap;
    }
    for (long i = c + 1; i < n; i++) {
      double by = lu[n * i + c] /= lu[n * c + c];
      for (long k = c + 1; k < n; k++) lu[n * i + k] -= by * lu[n * c + k];
    }
  }
  return 1;
}

static void backward(long n, const double *lu, const double *pivots, double *b) {
  for (long c = 0; c < n; c++) {
    long best = (long)pivots[c];
    double swap = b[c];
    b[c] = b[best];
    b[best] = swap;
  }
  for (long i = 0; i < n; i++)
    for (long k = 0; k < i; k++) b[i] -= lu[n * i + k] * b[k];
  for (long i = n - 1; i >= 0; i--) {
    for (long k = i + 1; k < n; k++) b[i] -= lu[n * i + k] * b[k];
    b[i] /= lu[n * i + i];
  }
}

// stage finds the slopes k of y and the columns at z = base + h γ k; 0 where Newton's method fails. next starts near
// the solution.
static int stage(ode_run *r, double t, double h, const double *base, double *next, double *k, double *lu,
                 double *pivots) {
  const kelvin_ode *p = r->p;
  const long n = p->n;
  const double g = h * diagonal;
  double before = INFINITY;
  int found = 0;
  for (int i = 0; i < ITERATIONS && !found; i++) {
    ode_evaluate(r, t, next);
    if (!factor(r, g, lu, pivots)) return 0;
    for (long l = 0; l < n; l++) k[l] = base[l] + g * r->f[l] - next[l];
    backward(n, lu, pivots, k);
    double sum = 0, top = 0;
    for (long l = 0; l < n; l++) top = fmax(top, fabs(next[l]));
    for (long l = 0; l < n; l++) {
      // The rounding of the linear system is that of its largest number.
      double e = k[l] / (ode_least(r, l, fabs(next[l]), 1e3 * top) + p->rtol * fabs(next[l]));
      sum += e * e;
      next[l] += k[l];
    }
    double norm = sqrt(sum / n);
    // Newton's method squares the error: what follows a small correction is smaller still.
    if (!isfinite(norm) || i > 1 && norm > 2 * before) return 0;
    found = norm < 1e-3;
    before = norm;
  }
  if (!found) return 0;
  ode_evaluate(r, t, next);
  if (!factor(r, g, lu, pivots)) return 0;
  for (long l = 0; l < n; l++) k[l] = (next[l] - base[l]) / g;
  for (long q = 0; q < p->columns; q++) {
    const double *s = base + n * (1 + q);
    double *slope = k + n * (1 + q);
    for (long i = 0; i < n; i++) {
      const double *row = r->j + r->width * i;
      double v = q < p->outer ? 0 : row[n + q - p->outer];
      for (long l = 0; l < n; l++) v += row[l] * s[l];
      slope[i] = v;
    }
    backward(n, lu, pivots, slope);
    for (long i = 0; i < n; i++) next[n * (1 + q) + i] = s[i] + g * slope[i];
  }
  return 1;
}

int ode_sdirk4(ode_run *r, double *z, double *scratch) {
  const kelvin_ode *p = r->p;
  const long n = p->n, size = r->size;
  double *k[STAGES], *base = scratch + STAGES * size, *next = base + size, *error = next + size, *lu = error + size,
                     *pivots = lu + n * n;
  for (int l = 0; l < STAGES; l++) k[l] = scratch + l * size;
  double t = r->start, end = r->times[p->times - 1];
  ode_evaluate(r, t, z);
  ode_slopes(r, z, k[4]);
  double h = ode_first_step(r, t, end, z, k[4], next, 4);
  int again = 0;
  for (long step = 0; step < p->most; step++) {
    // A step ends at the next output at the latest; the length without that is remembered.
    double wanted = h, to = r->times[r->written];
    int hit = t + 1.01 * h >= to;
    if (hit) h = to - t;
    if (!(h > ODE_SHORTEST * fmax(fabs(t), fabs(end)))) return ODE_BLOWUP;
    int solved = 1;
    for (int s = 0; s < STAGES && solved; s++) {
      const double *guess = k[s == 0 ? 4 : s - 1];
      for (long i = 0; i < size; i++) {
        double sum = 0;
        for (int l = 0; l < s; l++) sum += weights[s][l] * k[l][i];
        base[i] = z[i] + h * sum;
        if (i < n) next[i] = base[i] + h * diagonal * (isfinite(guess[i]) ? guess[i] : 0);
      }
      solved = stage(r, t + nodes[s] * h, h, base, next, k[s], lu, pivots);
    }
    double e = INFINITY;
    if (solved) {
      for (long i = 0; i < size; i++) {
        double sum = 0;
        for (int l = 0; l < STAGES; l++) sum += errors[l] * k[l][i];
        error[i] = h * sum;
      }
      // As the stiff components of the estimate are far too large, it goes through the inverse of I − h γ J.
      for (long q = 0; q <= p->columns; q++) backward(n, lu, pivots, error + n * q);
      e = ode_norm(r, error, z, next);
    }
    if (!(e <= 1)) {
      memcpy(k[4], k[0], sizeof(double) * n);
      h *= isfinite(e) ? fmax(0.2, 0.9 * pow(e, -0.25)) : 0.25;
      again = 1, r->refused++;
      continue;
    }
    ode_accept(r, next);
    memcpy(z, next, sizeof(double) * size);
    double longer = h * fmin(5, fmax(0.2, 0.9 * pow(fmax(e, 1e-10), -0.25)));
    if (again) longer = fmin(longer, h);
    t = hit ? to : t + h;
    h = hit && !again ? fmax(longer, wanted) : longer;
    if (p->longest > 0) h = fmin(h, p->longest);
    again = 0;
    while (ode_reached(r, t)) ode_write(r, z);
    if (r->written == p->times) return ODE_DONE;
  }
  return ODE_STEPS;
}
