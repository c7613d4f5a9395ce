#include "run.h"
#include <stdlib.h>
#include <string.h>

int kelvin_native_eval(void *f, const kelvin_call *shared, const double *x, double weight, double *value,
                       double *grad) {
  kelvin_call c = *shared;
  c.x = x;
  c.weight = weight;
  c.value = value;
  c.grad = grad;
  return ((kelvin_fn)f)(&c);
}

int kelvin_native_rows(void *f, const kelvin_call *shared, long rows, long dim, const double *x, double weight,
                       double *value, double *grad, int naux, double **aux, const long *lens, double **scratch) {
  kelvin_call c = *shared;
  c.weight = weight;
  c.aux = scratch;
  for (long k = 0; k < rows; k++) {
    c.x = x + k * dim;
    c.value = value + k;
    c.grad = grad + k * dim;
    for (int a = 0; a < naux; a++)
      scratch[a] = aux[a] + k * lens[a];
    int failed = ((kelvin_fn)f)(&c);
    if (failed)
      return failed;
  }
  return 0;
}

int kelvin_native_prepare(void *f, const kelvin_call *shared) { return ((kelvin_fn)f)(shared); }

void *kelvin_native_block(long bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes > 0 ? bytes : 64))
    return NULL;
  memset(p, 0, bytes > 0 ? bytes : 64);
  return p;
}
