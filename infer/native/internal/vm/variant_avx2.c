#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define KVM_ISA 1
#define KVM_NAME kvm_avx2
#define KVM_TITLE "avx2"
#include "variant.h"

static int supported(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
