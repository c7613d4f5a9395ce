package thread

/*
#cgo CFLAGS: -O2 -D_GNU_SOURCE
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

// OpenBLAS is there if libtorch was linked with it. Builds with indices of 64 bits have other names.
static void *kelvin_symbol(const char *name, const char *name64) {
	void *f = dlsym(RTLD_DEFAULT, name);
	return f ? f : dlsym(RTLD_DEFAULT, name64);
}

static int kelvin_blas_threads(void) {
	int (*get)(void) = (int (*)(void))kelvin_symbol("openblas_get_num_threads", "openblas_get_num_threads64_");
	return get ? get() : 0;
}

static void kelvin_blas_set_threads(int n) {
	void (*set)(int) = (void (*)(int))kelvin_symbol("openblas_set_num_threads", "openblas_set_num_threads64_");
	if (set) set(n);
}
*/
import "C"

import "sync"

var blas sync.Mutex

// BLAS is the number of threads of OpenBLAS; 0 where the process has no OpenBLAS.
func BLAS() int {
	blas.Lock()
	defer blas.Unlock()
	return int(C.kelvin_blas_threads())
}

// SetBLAS sets it for the whole process. The threads of OpenBLAS are its own, and libtorch knows nothing of them: on
// small matrices they cost more than they give. Without OpenBLAS it does nothing.
func SetBLAS(n int) {
	blas.Lock()
	defer blas.Unlock()
	if int(C.kelvin_blas_threads()) != n {
		C.kelvin_blas_set_threads(C.int(n))
	}
}
