// Package foreign lets functions in C be part of evaluations with tensors: eagerly, mapped by vmap, and as a step of a
// compiled plan. They have no derivatives; who calls one sees to that. What they tell of a run is counted here.
package foreign

/*
#cgo CFLAGS: -I${SRCDIR}/../../infer/native/internal/cc
#include "abi.h"

static void kelvin_foreign_rows(const double *address, long rows, long in, long out, const double *x, double *y) {
  for (long k = 0; k < rows; k++) kelvin_foreign(address, x + k * in, y + k * out);
}
*/
// #cgo noescape kelvin_foreign_rows
// #cgo nocallback kelvin_foreign_rows
import "C"

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/internal/thread"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Function is a function in C of type kelvin_foreign_fn (abi.h). It must not go away: plans keep its address.
type Function struct {
	Call, Self unsafe.Pointer
	In, Out    int // numbers
}

// Address are two numbers whose bits are the addresses of the function and of what it belongs to.
func (f *Function) Address() [2]float64 {
	return [2]float64{math.Float64frombits(uint64(uintptr(f.Call))), math.Float64frombits(uint64(uintptr(f.Self)))}
}

// rows calls the function for each row of x.
func (f *Function) rows(x []float64) []float64 {
	k := len(x) / f.In
	out := make([]float64, k*f.Out)
	address := f.Address()
	C.kelvin_foreign_rows((*C.double)(unsafe.SliceData(address[:])), C.long(k), C.long(f.In), C.long(f.Out),
		(*C.double)(unsafe.SliceData(x)), (*C.double)(unsafe.SliceData(out)))
	return out
}

// Apply calls the function on x, of shape [In]: the result has shape [Out], and no gradient. check sees the numbers of
// each row first, outside of compiled code.
func (f *Function) Apply(x *ts.Tensor, check func(row []float64) error) (*ts.Tensor, error) {
	x, err := x.Detach(false)
	if err == nil {
		x, err = x.Contiguous(false)
	}
	if err != nil {
		return nil, err
	}
	dtype, err := torch.DTypeOfTensor(torch.Of(x))
	if err != nil {
		return nil, err
	}
	if n, err := torch.Numel(torch.Of(x)); err != nil || n != f.In || dtype != gotch.Double {
		return nil, fmt.Errorf("a function of %d float64 numbers gets %d of type %v (%v)", f.In, n, dtype, err)
	}
	levels := thread.Levels()
	recorded := recording(len(levels))
	whole, err := unmapped(x, levels)
	if err != nil {
		return nil, err
	}
	values, err := torch.ToSlice[float64](torch.Of(whole))
	if err != nil {
		return nil, err
	}
	for k := 0; k < len(values) && check != nil; k += f.In {
		if err := check(values[k : k+f.In]); err != nil {
			return nil, err
		}
	}
	shape := []int{}
	for _, l := range levels {
		shape = append(shape, int(l.Size))
	}
	if recorded != nil { // no operation may write what comes out
		out, err := torch.Borrow(f.rows(values), f.Out)
		if err != nil {
			return nil, err
		}
		return out.T(), recorded.add(f, whole, out.T())
	}
	out, err := torch.FromSlice(f.rows(values), append(shape, f.Out)...)
	if err != nil {
		return nil, err
	}
	for _, l := range levels {
		if out, err = raw.Of(ts.KelvinVmapIn(out.T(), 0, l.Number)); err != nil {
			return nil, err
		}
	}
	return out.T(), nil
}

// unmapped is a tensor with all rows of the levels that are open, in dimensions in front.
func unmapped(x *ts.Tensor, levels []thread.Level) (*ts.Tensor, error) {
	for i := len(levels) - 1; i >= 0; i-- {
		var err error
		if x, err = ts.KelvinVmapOut(x, 0, levels[i].Number, levels[i].Size); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Whole is a tensor with all rows of the levels of vmap that are open, in dimensions in front.
func Whole(x *ts.Tensor) (*ts.Tensor, error) { return unmapped(x, thread.Levels()) }

// RequiresGrad says whether gradients can be taken of a tensor, inside vmap too.
func RequiresGrad(x *ts.Tensor) (bool, error) {
	whole, err := Whole(x)
	if err != nil {
		return false, err
	}
	d, err := whole.KelvinDescribe()
	return d.RequiresGrad, err
}

// Called is a call that a recording has seen.
type Called struct {
	Function *Function
	In, Out  *ts.Tensor
}

// Recording is a recording of a thread for a plan.
type Recording struct {
	number int64
	calls  []Called
}

var (
	mu         sync.Mutex
	recordings = map[int64]*Recording{}
	last       int64
)

// Record notes the calls of this thread, on which the goroutine stays until Stop.
func Record() *Recording {
	mu.Lock()
	defer mu.Unlock()
	last++
	r := &Recording{number: last}
	recordings[last] = r
	thread.Record(last)
	return r
}

// Calls are the calls so far. Their tensors live until Free.
func (r *Recording) Calls() []Called { return r.calls }

// Stop ends the recording. Stopping again does nothing.
func (r *Recording) Stop() {
	mu.Lock()
	defer mu.Unlock()
	if recordings[r.number] == r {
		delete(recordings, r.number)
		thread.Record(0)
	}
}

// Free gives the tensors of the calls back.
func (r *Recording) Free() {
	for _, c := range r.calls {
		torch.Free(torch.Of(c.In), torch.Of(c.Out))
	}
	r.calls = nil
}

// recording is the recording of this thread, nil without one. Inside vmap it is nil: a plan is of one point, so that a
// value read there is refused.
func recording(levels int) *Recording {
	number := thread.Recording()
	if number == 0 || levels > 0 {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	return recordings[number]
}

// add notes a call. Its tensors get handles that outlive all scopes.
func (r *Recording) add(f *Function, in, out *ts.Tensor) error {
	c := Called{Function: f}
	for to, t := range map[**ts.Tensor]*ts.Tensor{&c.In: in, &c.Out: out} {
		own, err := t.Detach(false)
		if err != nil {
			return err
		}
		torch.Detach(torch.Of(own))
		*to = own
	}
	r.calls = append(r.calls, c)
	return nil
}
