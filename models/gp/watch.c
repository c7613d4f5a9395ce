#include "watch.h"

// Inputs with a mean correlation above this are far from the centre of a linear kernel, or close beside the lengths.
static const double same = 1 - 1e-3;

void kelvin_gp_watch(const void *self, const double *in, double *out) {
  gp_watch *w = (gp_watch *)self; // whose counters alone change
  double most = 0;
  for (long i = 0; i < w->n; i++) {
    double jitter = in[i], noise = in[w->n + i];
    if (noise > 0 && jitter > most * noise) most = jitter / noise; // a noise of 0 is meant
  }
  atomic_fetch_add_explicit(&w->all, 1, memory_order_relaxed);
  if (most > 1) {
    atomic_fetch_add_explicit(&w->below, 1, memory_order_relaxed);
    if (in[2 * w->n] > same) atomic_fetch_add_explicit(&w->alike, 1, memory_order_relaxed);
    double sum = w->ratio;
    while (!atomic_compare_exchange_weak(&w->ratio, &sum, sum + most)) {
    }
  }
  out[0] = 0;
}
