#include "program.h"

extern const kvm_variant kvm_portable;
#if defined(__x86_64__)
extern const kvm_variant kvm_avx2, kvm_avx512;
const kvm_variant *const kvm_variants[] = {&kvm_avx512, &kvm_avx2, &kvm_portable, 0};
#else
const kvm_variant *const kvm_variants[] = {&kvm_portable, 0};
#endif
