#include "solve.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void ode_evaluate(ode_run *r, double t, const double *y) {
  r->x[0] = t;
  memcpy(r->x + 1, y, sizeof(double) * r->p->n);
  r->evaluations++;
  r->p->rhs(&r->call);
}

// slopes_of is ode_slopes, inlined where the compiler knows n.
static inline __attribute__((always_inline)) void slopes_of(const ode_run *r, const double *restrict z,
                                                            double *restrict d, long n) {
  const long outer = r->p->outer, columns = r->p->columns, width = r->width;
  const double *j = r->j;
  for (long i = 0; i < n; i++) d[i] = r->f[i];
  for (long q = 0; q < columns; q++) {
    for (long i = 0; i < n; i++) {
      double sum = q < outer ? 0 : j[width * i + n + q - outer];
      for (long k = 0; k < n; k++) sum += j[width * i + k] * z[n * (1 + q) + k];
      d[n * (1 + q) + i] = sum;
    }
  }
}

void ode_slopes(const ode_run *r, const double *z, double *d) {
  switch (r->p->n) {
  case 1: slopes_of(r, z, d, 1); break;
  case 2: slopes_of(r, z, d, 2); break;
  case 3: slopes_of(r, z, d, 3); break;
  case 4: slopes_of(r, z, d, 4); break;
  default: slopes_of(r, z, d, r->p->n);
  }
}

// Inside loops a call of fmax costs more than what is compared.
static inline double greater(double a, double b) { return a > b ? a : b; }

// ROUNDING is the part of the largest number of a vector below which rounding decides.
#define ROUNDING 1e-15

double ode_least(const ode_run *r, long i, double size, double top) {
  const kelvin_ode *p = r->p;
  double own = p->atol > 0 ? p->atol : 0.01 * p->rtol * greater(size, r->largest[i]);
  return own + ROUNDING * top + DBL_MIN;
}

double ode_norm(const ode_run *r, const double *error, const double *a, const double *b) {
  const long n = r->p->n;
  const double atol = r->p->atol, rtol = r->p->rtol;
  double most = 0;
  for (long q = 0; q <= r->p->columns; q++) {
    const double *largest = r->largest + n * q, unit = q > 0 ? r->units[q - 1] : 1;
    double top = 0, sum = 0;
    for (long i = 0; i < n; i++) top = greater(top, greater(fabs(b[n * q + i]), largest[i]));
    for (long i = 0; i < n; i++) {
      double size = greater(fabs(a[n * q + i]), fabs(b[n * q + i])), least;
      if (q > 0) {
        least = unit * r->whole[i] + ROUNDING * top;
      } else {
        least = ode_least(r, i, size, top);
        r->whole[i] = atol + rtol * greater(size, largest[i]) + DBL_MIN;
      }
      double e = error[n * q + i] / (least + rtol * size);
      sum += e * e;
    }
    if (!(sum <= most)) most = sum;
    if (isnan(sum)) return sum;
  }
  return sqrt(most / n);
}

void ode_accept(ode_run *r, const double *z) {
  for (long i = 0; i < r->size; i++) r->largest[i] = greater(fabs(z[i]), r->largest[i]);
  r->taken++;
}

int ode_reached(const ode_run *r, double t) {
  if (r->written == r->p->times) return 0;
  return r->times[r->written] - t <= ODE_SHORTEST * fmax(fabs(t), fabs(r->times[r->p->times - 1]));
}

void ode_write(ode_run *r, const double *z) {
  const long n = r->p->n, columns = r->p->columns;
  memcpy(r->out + n * r->written, z, sizeof(double) * n);
  double *to = r->out + n * r->p->times + n * columns * r->written;
  for (long i = 0; i < n; i++)
    for (long q = 0; q < columns; q++) to[columns * i + q] = z[n * (1 + q) + i];
  r->written++;
}

double ode_first_step(ode_run *r, double t, double end, const double *z, const double *d, double *scratch, int order) {
  const kelvin_ode *p = r->p;
  double limit = p->longest > 0 ? fmin(p->longest, end - t) : end - t;
  if (p->first > 0) return fmin(p->first, limit);
  double size = 0, slope = 0, bend = 0, top = 0, steep = 0;
  for (long i = 0; i < p->n; i++) top = fmax(top, fabs(z[i])), steep = fmax(steep, fabs(d[i]));
  if (top == 0) top = steep * limit; // as far as the slope leads
  top *= 1e-2 * p->rtol / ROUNDING;
  for (long i = 0; i < p->n; i++) {
    double scale = ode_least(r, i, fabs(z[i]), top) + p->rtol * fabs(z[i]);
    size += z[i] / scale * (z[i] / scale);
    slope += d[i] / scale * (d[i] / scale);
  }
  double h = size < 1e-10 || slope < 1e-10 ? 1e-6 : 0.01 * sqrt(size / slope);
  h = fmin(h, limit);
  for (long i = 0; i < p->n; i++) scratch[i] = z[i] + h * d[i];
  ode_evaluate(r, t + h, scratch);
  for (long i = 0; i < p->n; i++) {
    double scale = ode_least(r, i, fabs(z[i]), top) + p->rtol * fabs(z[i]);
    double e = (r->f[i] - d[i]) / scale;
    bend += e * e;
  }
  double steepest = fmax(sqrt(bend) / h, sqrt(slope));
  double other = steepest <= 1e-15 ? fmax(1e-6, h * 1e-3) : pow(0.01 / steepest, 1.0 / order);
  h = fmin(fmin(100 * h, other), limit);
  return h > 0 ? h : limit; // NaN too
}

// begin makes the state vector at the start.
static void begin(ode_run *r, const double *y0, double *z) {
  const long n = r->p->n;
  memcpy(z, y0, sizeof(double) * n);
  memset(z + n, 0, sizeof(double) * (r->size - n));
  ode_evaluate(r, r->start, z);
  for (long q = 0; q < r->p->columns; q++) {
    long column = r->p->column[q];
    double *s = z + n * (1 + q);
    if (column == 0)
      for (long i = 0; i < n; i++) s[i] = -r->f[i]; // a later start is as far behind
    else if (column <= n)
      s[column - 1] = 1;
    double x = fabs(column == 0 ? r->start : column <= n ? y0[column - 1] : r->theta[column - 1 - n]);
    r->units[q] = x > 1 ? 1 / x : 1;
  }
  for (long i = 0; i < r->size; i++) r->largest[i] = fabs(z[i]);
}

static int solve(kelvin_ode *p, const double *in, double *out, long outs) {
  ode_run r = {.p = p, .size = p->n * (1 + p->columns), .width = p->n + p->columns - p->outer, .times = in,
               .start = in[p->times], .out = out};
  double before = r.start;
  for (long k = 0; k < p->times; k++) {
    if (!(in[k] >= before && in[k] < INFINITY)) return ODE_TIMES;
    before = in[k];
  }
  const long n = p->n, inputs = 1 + n + p->m;
  long vectors = p->method == ODE_SDIRK4 ? ODE_SDIRK4_VECTORS : ODE_DOPRI5_VECTORS;
  long numbers = 2 * inputs + n + n * r.width + (2 + vectors) * r.size + 2 * n * n + 9 * n + p->columns;
  char *memory = NULL;
  long work = (p->work + 63) / 64 * 64;
  if (posix_memalign((void **)&memory, 64, work + sizeof(double) * numbers)) return ODE_MEMORY;
  double *at = (double *)(memory + work);
  r.x = at, at += inputs;
  r.grad = at, at += inputs;
  r.f = at, at += n;
  r.j = at, at += n * r.width;
  r.largest = at, at += r.size;
  r.whole = at, at += n;
  r.units = at, at += p->columns;
  double *z = at;
  at += r.size;
  r.aux[0] = r.f, r.aux[1] = r.j;
  r.call = *p->call;
  r.call.x = r.x, r.call.weight = 0, r.call.value = &r.value, r.call.grad = r.grad, r.call.aux = r.aux;
  r.call.work = memory;
  r.theta = in + p->times + 1 + n;
  memcpy(r.x + 1 + n, r.theta, sizeof(double) * p->m);
  begin(&r, in + p->times + 1, z);
  while (ode_reached(&r, r.start)) ode_write(&r, z);
  int end = ODE_DONE;
  if (r.written < p->times) end = p->method == ODE_SDIRK4 ? ode_sdirk4(&r, z, at) : ode_dopri5(&r, z, at);
  for (long i = 0; end == ODE_DONE && i < outs; i++)
    if (!isfinite(out[i])) end = ODE_BLOWUP;
  atomic_fetch_add_explicit(&p->steps, r.taken, memory_order_relaxed);
  atomic_fetch_add_explicit(&p->rejected, r.refused, memory_order_relaxed);
  atomic_fetch_add_explicit(&p->evaluations, r.evaluations, memory_order_relaxed);
  free(memory);
  return end;
}

void kelvin_ode_solve(const void *self, const double *in, double *out) {
  kelvin_ode *p = (kelvin_ode *)self; // whose counters alone change
  long outs = p->times * p->n * (1 + p->columns);
  int end = solve(p, in, out, outs);
  atomic_fetch_add_explicit(&p->solutions, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&p->ends[end], 1, memory_order_relaxed);
  for (long i = 0; end != ODE_DONE && i < outs; i++) out[i] = NAN;
}
