#ifndef KELVIN_GP_WATCH_H
#define KELVIN_GP_WATCH_H
#include <stdatomic.h>

// Counts over all evaluations of a process's marginal distribution with n inputs.
typedef struct gp_watch {
  long n;
  _Atomic long all;     // evaluations
  _Atomic long below;   // those in which the noise is below the jitter at some input
  _Atomic long alike;   // those of them whose inputs the kernel can hardly tell apart
  _Atomic double ratio; // over those below, the sum of the largest jitter beside the noise's variance
} gp_watch;

// Takes the variances of the jitter, [n], those of the noise, [n], and the mean correlation of all pairs; gives 0.
void kelvin_gp_watch(const void *self, const double *in, double *out);
#endif
