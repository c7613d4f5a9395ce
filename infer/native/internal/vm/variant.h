// The machine for one instruction set. A file that includes this defines KVM_ISA, KVM_NAME and KVM_TITLE, and asks the
// compiler for the instruction set.
#include "program.h"
#include "simd.h"

#include "functions.h"
#include "kernels.h"
#include "product.h"
#include "dense.h"
#include "matrix.h"

#include "scalar.h"
#include "run.h"

static int supported(void);

#define FORM1(f) (const void *)k_##f,
#define FORM3(f) (const void *)k_##f##_vv, (const void *)k_##f##_vs, (const void *)k_##f##_sv,
#define FORM4(f)                                                                                                      \
  (const void *)k_##f##_vvv, (const void *)k_##f##_vvs, (const void *)k_##f##_vsv, (const void *)k_##f##_vss,
#define SCALAR_FORM(f) (const void *)k_s##f,
#define CODE_FORM1(f) {(const void *)one_##f, (const void *)one_##f##_1},
#define CODE_FORM2(f) {(const void *)one_##f, (const void *)one_##f##_1, (const void *)one_##f##_2},
#define CODE_FORM3(f)                                                                                                 \
  {(const void *)one_##f, (const void *)one_##f##_1, (const void *)one_##f##_2, (const void *)one_##f##_3},
#define CODE_FORM(f) {(const void *)one_##f},
const kvm_variant KVM_NAME = {
    KVM_TITLE, supported, {prologue, body}, {product_of, cholesky_of, solve_of},
    {FORM1(loop) FORM1(matmul) FORM1(cholesky) FORM1(solve) FORM1(scan) FORM1(foreign) FORM1(fill) FORM1(scalars)
     FORM1(move) FORM1(load) FORM1(store) FORM1(index) FORM1(scatter) FORM1(last) FORM1(quotient) FORM1(linear)
     FORM1(dots) FORM1(sum) FORM1(prod) FORM1(max)
     FORM1(dot) FORM1(rows_sum) FORM1(rows_prod) FORM1(rows_max) FORM1(each_sum) FORM1(each_prod) FORM1(each_max)
     FORM1(at_sum) FORM1(at_prod) FORM1(at_max) FORM1(select) FORM1(if_lt) FORM1(if_le) FORM1(if_eq) FORM1(if_ne)
     FORM4(fma) FORM4(fms) FORM4(fnma) UNARY(FORM1) BINARY(FORM3)
     SCALAR_FORM(move) TERNARY(SCALAR_FORM) QUATERNARY(SCALAR_FORM) UNARY(SCALAR_FORM) BINARY(SCALAR_FORM)},
    {CODE_FORM1(move) TERNARY(CODE_FORM3) QUATERNARY(CODE_FORM) UNARY(CODE_FORM1) BINARY(CODE_FORM2)
     CODE_FORM(get) {(const void *)one_put, (const void *)one_put_1}, CODE_FORM(end)}};
