#ifndef KELVIN_NATIVE_RUN_H
#define KELVIN_NATIVE_RUN_H
#include "abi.h"

// One evaluation, with what differs from call to call.
int kelvin_native_eval(void *f, const kelvin_call *shared, const double *x, double weight, double *value, double *grad);

// An evaluation of each of rows points. aux holds the first pointer of each output, lens the numbers of a row in it.
int kelvin_native_rows(void *f, const kelvin_call *shared, long rows, long dim, const double *x, double weight,
                       double *value, double *grad, int naux, double **aux, const long *lens, double **scratch);

int kelvin_native_prepare(void *f, const kelvin_call *shared);
void *kelvin_native_block(long bytes);
#endif
