#include "solve.h"
#include <math.h>
#include <string.h>

// The pair of Dormand and Prince (1980), Journal of Computational and Applied Mathematics 6, 19-26, of order 5 with an
// error estimate of order 4; the last evaluation of a step is the first of the next. Outputs are those of its
// interpolation of order 4, and steps have the lengths of a PI controller (Hairer, Nørsett and Wanner 1993, sections
// II.4 to II.6).
static const double nodes[7] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
static const double weights[7][6] = {
    {0},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
};
static const double errors[7] = {71. / 57600,      0,           -71. / 16695, 71. / 1920,
                                 -17253. / 339200, 22. / 525, -1. / 40};
static const double between[7] = {-12715105075. / 11282082432, 0, 87487479700. / 32700410799,
                                  -10690763975. / 1880347072,  701980252875. / 199316789632,
                                  -1453857185. / 822651844,    69997945. / 29380423};

// sum is z + h Σ weights·k over the first stages, and without z where that is NULL. The compiler makes vectors of it
// where it knows the number of stages.
static inline __attribute__((always_inline)) void sum_of(double *restrict to, const double *restrict z, double h,
                                                         const double *weights, double *const *k, int stages, long n) {
  for (long i = 0; i < n; i++) {
    double s = 0;
    for (int l = 0; l < stages; l++) s += weights[l] * k[l][i];
    to[i] = (z ? z[i] : 0) + h * s;
  }
}

static void sum(double *to, const double *z, double h, const double *weights, double *const *k, int stages, long n) {
  switch (stages) {
  case 1: sum_of(to, z, h, weights, k, 1, n); break;
  case 2: sum_of(to, z, h, weights, k, 2, n); break;
  case 3: sum_of(to, z, h, weights, k, 3, n); break;
  case 4: sum_of(to, z, h, weights, k, 4, n); break;
  case 5: sum_of(to, z, h, weights, k, 5, n); break;
  case 6: sum_of(to, z, h, weights, k, 6, n); break;
  default: sum_of(to, NULL, h, weights, k, 7, n);
  }
}

// outputs writes the solution at the times in (t, stop], where a step of length h stops.
static void outputs(ode_run *r, double t, double h, double stop, const double *z, const double *after,
                    double *const *k, double *bend, double *to) {
  int made = 0;
  while (r->written < r->p->times && r->times[r->written] <= stop) {
    double at = r->times[r->written];
    if (at == stop) {
      ode_write(r, after);
      continue;
    }
    if (!made) sum(bend, NULL, h, between, k, 7, r->size);
    made = 1;
    double u = (at - t) / h, v = 1 - u;
    for (long i = 0; i < r->size; i++) {
      double rise = after[i] - z[i], left = h * k[0][i] - rise, right = rise - h * k[6][i] - left;
      to[i] = z[i] + u * (rise + v * (left + u * (right + v * bend[i])));
    }
    ode_write(r, to);
  }
}

int ode_dopri5(ode_run *r, double *z, double *scratch) {
  const kelvin_ode *p = r->p;
  const long size = r->size;
  double *k[7], *next = scratch + 7 * size, *error = next + size, *bend = error + size, *to = bend + size,
                *last = to + size;
  for (int l = 0; l < 7; l++) k[l] = scratch + l * size;
  double t = r->start, end = r->times[p->times - 1];
  ode_evaluate(r, t, z);
  ode_slopes(r, z, k[0]);
  double h = ode_first_step(r, t, end, z, k[0], next, 5);
  double before = log(1e-4); // the logarithm of the error of the last step
  int stiff = 0, again = 0;
  for (long step = 0; step < p->most; step++) {
    int final = t + 1.01 * h >= end;
    if (final) h = end - t;
    if (!(h > ODE_SHORTEST * fmax(fabs(t), fabs(end)))) return ODE_BLOWUP;
    for (int l = 1; l < 7; l++) {
      if (l == 6) memcpy(last, next, sizeof(double) * p->n); // the point of the sixth stage
      sum(next, z, h, weights[l], k, l, size);
      ode_evaluate(r, t + nodes[l] * h, next);
      ode_slopes(r, next, k[l]);
    }
    sum(error, NULL, h, errors, k, 7, size);
    double e = ode_norm(r, error, z, next);
    if (!isfinite(e)) {
      h *= 0.1, again = 1, r->refused++;
      continue;
    }
    double logarithm = log(e);
    if (e > 1) {
      h /= fmin(5, exp((0.2 - 0.75 * 0.04) * logarithm) / 0.9), again = 1, r->refused++;
      continue;
    }
    // Hairer and Wanner (1996), section IV.2: a step that reaches past the region of stability sees slopes that change
    // as fast as the points of the last two stages.
    double slope = 0, move = 0;
    for (long i = 0; i < p->n; i++) {
      slope += (k[6][i] - k[5][i]) * (k[6][i] - k[5][i]);
      move += (next[i] - last[i]) * (next[i] - last[i]);
    }
    if (move > 0 && h * sqrt(slope / move) > 3.25) stiff++;
    ode_accept(r, next);
    outputs(r, t, h, final ? end : t + h, z, next, k, bend, to); // t + (end - t) may round to less than end
    if (r->written == p->times) return ODE_DONE;
    double scale = fmax(0.1, fmin(5, exp((0.2 - 0.75 * 0.04) * logarithm - 0.04 * before) / 0.9)), longer = h / scale;
    before = fmax(logarithm, log(1e-4));
    t += h;
    memcpy(z, next, sizeof(double) * size);
    memcpy(k[0], k[6], sizeof(double) * size);
    h = again ? fmin(longer, h) : longer;
    if (p->longest > 0) h = fmin(h, p->longest);
    again = 0;
  }
  return 10 * stiff > p->most ? ODE_STIFF : ODE_STEPS;
}
