package thread

/*
#cgo CFLAGS: -pthread
#cgo LDFLAGS: -pthread
#include "share.h"
*/
import "C"

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"
)

var sharing sync.Once

// Share is the address of kelvin_share_parts, by which compiled code runs parts of its work at once. The number of
// threads, before it is set, is that of processors that Go uses, and at most OMP_NUM_THREADS, as libtorch has it.
func Share() unsafe.Pointer {
	sharing.Do(func() {
		n := runtime.GOMAXPROCS(0)
		if most, err := strconv.Atoi(os.Getenv("OMP_NUM_THREADS")); err == nil && most > 0 {
			n = min(n, most)
		}
		C.kelvin_share_threads(C.int(n))
	})
	return C.kelvin_share_parts
}

// SetShare sets on how many threads it runs them.
func SetShare(n int) {
	sharing.Do(func() {})
	C.kelvin_share_threads(C.int(n))
}
