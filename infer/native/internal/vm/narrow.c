// Functions of one number for the variants with wide vectors: the same operations on short vectors, which take less
// time and have the same bits.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define KVM_ISA 0
#define KVM_NARROW 1
#include "program.h"
#include "simd.h"

#include "functions.h"

#define NONE(f)
#define NARROW1(f)                                                                                                    \
  double kvm_narrow_##f(double x) { return v##f(splat(x))[0]; }
#define NARROW2(f)                                                                                                    \
  double kvm_narrow_##f(double a, double b) { return v##f(splat(a), splat(b))[0]; }
UNARY_OF(NONE, NARROW1)
BINARY_OF(NONE, NARROW2)
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
