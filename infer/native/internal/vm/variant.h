// The machine for one instruction set. A file that includes this defines KVM_ISA, KVM_NAME and KVM_TITLE, and asks the
// compiler for the instruction set.
#include "program.h"
#include "simd.h"

#include "functions.h"
#include "kernels.h"
#include "product.h"
#include "matrix.h"

#if KVM_FMA
#define SFMA(a, b, c) __builtin_fma(a, b, c)
#else
#define SFMA(a, b, c) ((a) * (b) + (c))
#endif
#include "run.h"

static int supported(void);

#define FORM1(f) (const void *)k_##f,
#define FORM3(f) (const void *)k_##f##_vv, (const void *)k_##f##_vs, (const void *)k_##f##_sv,
#define FORM4(f)                                                                                                      \
  (const void *)k_##f##_vvv, (const void *)k_##f##_vvs, (const void *)k_##f##_vsv, (const void *)k_##f##_vss,
const kvm_variant KVM_NAME = {
    KVM_TITLE, supported, {prologue, body},
    {FORM1(move) FORM1(load) FORM1(store) FORM1(index) FORM1(scatter) FORM1(last) FORM1(quotient) FORM1(linear)
     FORM1(dots) FORM1(sum) FORM1(prod) FORM1(max)
     FORM1(dot) FORM1(rows_sum) FORM1(rows_prod) FORM1(rows_max) FORM1(each_sum) FORM1(each_prod) FORM1(each_max)
     FORM1(at_sum) FORM1(at_prod) FORM1(at_max) FORM1(select) FORM1(if_lt) FORM1(if_le) FORM1(if_eq) FORM1(if_ne)
     FORM4(fma) FORM4(fms) FORM4(fnma) UNARY(FORM1) BINARY(FORM3)}};
