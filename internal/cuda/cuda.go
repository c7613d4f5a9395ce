// Package cuda fills memory of a GPU with the numbers of random streams, in one kernel.
//
// The kernel is compiled by NVRTC while the program runs, for the device that it finds. The driver and NVRTC are loaded
// by name, so that Kelvin builds without CUDA and one program runs with and without a GPU.
package cuda

// #cgo linux LDFLAGS: -ldl
// #cgo CXXFLAGS: -std=c++17 -O2
// #include <stdlib.h>
// #include "cuda.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// libraries have the driver and NVRTC. The first one is libtorch's own, which brings both along from where it found
// them; the others are those of an installed CUDA.
var libraries = []string{"libcaffe2_nvrtc.so", "libcuda.so.1", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
	"libnvrtc.so"}

// Kernel is the kernel on one device. Goroutines may share it.
type Kernel struct{ c *C.kelvin_cuda }

// Load compiles the kernel for a device, and loads it there. It takes some tenths of a second, and stays.
func Load(device int) (*Kernel, error) { return load(device, libraries) }

func load(device int, libraries []string) (*Kernel, error) {
	names := list(libraries)
	defer C.free(unsafe.Pointer(names))
	var k Kernel
	if err := failed(C.kelvin_cuda_load(C.int(device), names, &k.c)); err != nil {
		return nil, fmt.Errorf("no kernel for random numbers on device %d: %w", device, err)
	}
	return &k, nil
}

// Draw is what to draw: row k of n numbers from the stream of Seed and the k-th chain, from a position on.
type Draw struct {
	Float  bool // single precision, else double
	Normal bool // standard normal numbers, else uniform ones of (0, 1)
	Seed   uint64
	Offset uint64
	First  uint64 // chain of the first row, and the distance to that of the next, where no chains are named
	Step   uint64
	Rows   int64
	N      int64
}

// Fill starts to fill the Rows · N numbers of out, with the Rows chains, 64 bits each; both are memory of the device.
// Chains may be nil: see First and Step.
// What is asked of the device later, on its default stream, finds them filled.
func (k *Kernel) Fill(d Draw, out, chains unsafe.Pointer) error {
	return failed(C.kelvin_cuda_fill(k.c, number(d.Float), out, chains, C.uint64_t(d.First), C.uint64_t(d.Step),
		C.uint64_t(d.Seed), C.uint64_t(d.Offset), C.int64_t(d.Rows), C.int64_t(d.N), number(d.Normal)))
}

// Serial fills main memory by the same code.
func Serial(d Draw, out, chains unsafe.Pointer) {
	C.kelvin_cuda_serial(number(d.Float), out, chains, C.uint64_t(d.First), C.uint64_t(d.Step), C.uint64_t(d.Seed),
		C.uint64_t(d.Offset), C.int64_t(d.Rows), C.int64_t(d.N), number(d.Normal))
}

// compiled is what NVRTC makes of the kernel for an architecture: PTX for compute_90, code of a device for sm_90.
func compiled(libraries []string, architecture string) ([]byte, error) {
	names, wanted := list(libraries), C.CString(architecture)
	defer C.free(unsafe.Pointer(names))
	defer C.free(unsafe.Pointer(wanted))
	var code *C.char
	var size C.size_t
	if err := failed(C.kelvin_cuda_compile(names, wanted, &code, &size)); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(code))
	return C.GoBytes(unsafe.Pointer(code), C.int(size)), nil
}

// list ends each name with a zero byte, and all of them with another.
func list(names []string) *C.char { return C.CString(strings.Join(names, "\x00") + "\x00") }

func number(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func failed(why *C.char) error {
	if why == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(why))
	return errors.New(C.GoString(why))
}
