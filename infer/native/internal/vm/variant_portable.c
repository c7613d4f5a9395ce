#define KVM_ISA 0
#define KVM_NAME kvm_portable
#if defined(__aarch64__)
#define KVM_TITLE "neon"
#else
#define KVM_TITLE "portable"
#endif
#include "variant.h"

static int supported(void) { return 1; }
