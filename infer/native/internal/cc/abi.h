// How Go calls a plan, whoever runs it: compiled C, or the virtual machine.
#ifndef KELVIN_ABI_H
#define KELVIN_ABI_H
#include <stdint.h>

// The version of this interface. A compiled object that was made for another is not used.
#define KELVIN_ABI 3

// Operations on matrices that are too large for code of their own. Element (i, j) of a is at a[i*ar + j*ac].
typedef struct kelvin_dense {
  // c = a·b, of sizes m x k and k x n. Upper says that a is 0 below its diagonal, and lower that c is to be 0 above it.
  void (*product)(long m, long n, long k, int upper, int lower, const double *a, long ar, long ac, const double *b,
                  long br, long bc, double *c, long cr, long cc);
  // c·cᵀ = a for a lower triangle c whose rows are contiguous, and 0 above it. Of a the lower triangle is read.
  void (*cholesky)(long n, const double *a, long ar, long ac, double *c, long cr);
  // a·c = b for a triangle a of n unknowns; c and b have so many columns.
  void (*solve)(long n, long columns, int upper, int unit, const double *a, long ar, long ac, const double *b, long br,
                long bc, double *c, long cr, long cc);
} kelvin_dense;

// A function in C that a plan calls: it makes out of in. It may be called from several threads at once.
typedef void (*kelvin_foreign_fn)(const void *self, const double *in, double *out);

// A function whose address, and that of self, are the bits of two numbers.
static inline void kelvin_foreign(const double *address, const double *in, double *out) {
  union {
    const double *number;
    const uint64_t *bits;
  } at = {address};
  ((kelvin_foreign_fn)(uintptr_t)at.bits[0])((const void *)(uintptr_t)at.bits[1], in, out);
}

// One evaluation. The blocks are laid out by ir.Place and aligned to 64 bytes. Two calls at once must not share work,
// value, grad or aux; they may share all else.
typedef struct kelvin_call {
  const void *self;          // what the function needs besides: the virtual machine's program; null for compiled code
  const double *x;           // Dim numbers
  double weight;             // of the log Jacobian
  double *value;             // one number
  double *grad;              // Dim numbers
  const void *const *inputs; // one pointer for each tensor of the batch
  const char *consts;
  char *prepared;
  char *work;
  double *const *aux; // one pointer for each output
  const kelvin_dense *dense;
  // Runs f(of, part) for each part below parts, on several threads; null has one thread run them.
  void (*share)(long parts, void (*f)(const void *of, long part), const void *of);
} kelvin_call;

// What parts of the work of a call have in common.
typedef struct kelvin_parts {
  const kelvin_call *call;
  void *shared;
} kelvin_parts;

static inline int kelvin_in_parts(const kelvin_call *c, long parts, void (*f)(const void *, long), void *shared) {
  kelvin_parts of = {c, shared};
  if (c->share)
    c->share(parts, f, &of);
  else
    for (long part = 0; part < parts; part++) f(&of, part);
  return 0;
}

// The prologue, or the main part. It returns 0, or 1 + the number of the prologue's step that met an index out of
// range.
typedef int (*kelvin_fn)(const kelvin_call *);
#endif
