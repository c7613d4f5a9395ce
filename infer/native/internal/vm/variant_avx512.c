#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#endif
#define KVM_ISA 2
#define KVM_NAME kvm_avx512
#define KVM_TITLE "avx512"
#include "variant.h"

static int supported(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
