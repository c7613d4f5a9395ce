package torch

import (
	"fmt"
	"sync"

	"github.com/kelvin-ppl/kelvin/internal/needsetup"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// CPU is main memory.
var CPU = gotch.CPU

// CUDA is the i-th GPU; an error when libtorch cannot use it.
func CUDA(i int) (gotch.Device, error) {
	if n := Library().CudaDevices; i < 0 || i >= n {
		return CPU, fmt.Errorf("torch: GPU %d was asked for and libtorch %s can use %d", i, Version(), n)
	}
	return gotch.CudaBuilder(uint(i)), nil
}

// BestDevice is the first GPU where there is one, else main memory.
func BestDevice() gotch.Device {
	if d, err := CUDA(0); err == nil {
		return d
	}
	return CPU
}

// DeviceOf is where t lives.
func DeviceOf(t Tensor) (gotch.Device, error) {
	if t.t == nil {
		return CPU, nil
	}
	d, err := t.t.KelvinDescribe()
	if err != nil || d.Device < 0 {
		return CPU, err
	}
	return gotch.CudaBuilder(uint(d.Device)), nil
}

// DTypeOfTensor is the type of t's elements.
func DTypeOfTensor(t Tensor) (gotch.DType, error) {
	if t.t == nil {
		return gotch.Double, nil
	}
	d, err := t.t.KelvinDescribe()
	return gotch.CKind2DType(int32(d.DType)), err
}

// To returns x on a device and with a type: x itself where both are right, else a copy.
func To(x Tensor, device gotch.Device, dtype gotch.DType) (Tensor, error) {
	t := x.T()
	d, err := t.KelvinDescribe()
	if err == nil {
		err = checkType(dtype)
	}
	if err != nil {
		return Tensor{}, err
	}
	if d.Device == deviceNumber(device) && d.DType == int(dtype.CInt()) {
		return wrap(t), nil
	}
	if deviceNumber(device) < 0 {
		device = CPU
	}
	moved, err := t.To(device, false)
	if err != nil {
		return Tensor{}, err
	}
	return from(moved.Totype(dtype, false))
}

// Synchronize waits until the GPU has done what it was asked; without one it does nothing.
func Synchronize() error { return ts.KelvinSynchronize() }

// deviceNumber is -1 for main memory, else the GPU's number. The zero Device is main memory.
func deviceNumber(d gotch.Device) int {
	if d.Name == gotch.CPU.Name || d == (gotch.Device{}) {
		return -1
	}
	return d.Value
}

// LibraryInfo describes the libtorch in use.
type LibraryInfo = ts.KelvinLibrary

var library = sync.OnceValue(ts.KelvinLibraryInfo)

// Library describes the libtorch in use, as it was at the first call.
func Library() LibraryInfo { return library() }

// Version is libtorch's version, for example "1.13.1".
func Version() string { return library().Version }

// Missing names the operations of gotch that this libtorch lacks; calling one is an error that says so.
func Missing() []string { return append([]string(nil), ts.KelvinMissing...) }

// SetThreads sets how many threads one operation may use, in every scope that is opened afterwards: [Do], [Vmap] and
// the gradients open one. The default is libtorch's own choice. Where libtorch calls OpenBLAS for products of matrices,
// which has threads of its own, their number is set at once, so that nothing else should calculate during the call.
//
// A compiled gradient of many data uses as many from now on. Its default is all processors that Go uses, or
// OMP_NUM_THREADS where that is less. Their number changes no bit of it.
func SetThreads(n int) error {
	if n < 1 {
		return fmt.Errorf("torch.SetThreads: %d threads asked for; there must be at least 1", n)
	}
	ts.KelvinSetThreads(n)
	thread.SetBLAS(n)
	thread.SetShare(n)
	return nil
}

// Where the compiler stops in needsetup, set-up has not run: see its documentation.
const _ = needsetup.Done
