package native

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/record"
)

// replay does again what libtorch did in one evaluation, on points of one shape and type.
type replay struct {
	dim     int
	shape   []int // of a point: [dim], or [K, dim]
	dtype   gotch.DType
	device  gotch.Device
	batch   []input
	outputs []ir.Slot // of one row
	program *record.Program
	held    *held
	calls   sync.Pool
}

// input is a tensor of the batch.
type input struct {
	name   string
	shape  []int
	dtype  gotch.DType
	device gotch.Device
}

func describe(name string, t torch.Tensor) (in input, err error) {
	in.name = name
	if in.shape, err = torch.Shape(t); err == nil {
		if in.dtype, err = torch.DTypeOfTensor(t); err == nil {
			in.device, err = torch.DeviceOf(t)
		}
	}
	return in, err
}

func (a input) equal(b input) bool {
	return a.name == b.name && slices.Equal(a.shape, b.shape) && a.dtype == b.dtype && a.device == b.device
}

// whole is an evaluation of all rows of a point.
type whole struct {
	tensors []torch.Tensor // values, gradients, then the others by name
	names   []string
}

func (s Source) whole(x torch.Tensor, batch map[string]torch.Tensor, weight float64) (w whole, err error) {
	values, grads, aux, err := s.Whole(x, batch, weight)
	if err != nil {
		return w, err
	}
	w.tensors = []torch.Tensor{values, grads}
	for _, name := range slices.Sorted(maps.Keys(aux)) {
		w.names, w.tensors = append(w.names, name), append(w.tensors, aux[name])
	}
	return w, nil
}

// The weights of the log Jacobian in the recordings of a replay; what differs between these in the same way is the
// weight.
var recordedWeights = [2]float64{weight, 0.6180339887498949}

// replayed records the density at two points and compares what it makes of them with eager evaluation, to the bit.
func (s Source) replayed(o Options, report *Report) (*Func, error) {
	if s.Whole == nil || o.ValueFree || o.GradientFree {
		return nil, &refusal{"there is nothing to replay"}
	}
	first, err := torch.Copy(s.Point)
	if err != nil {
		return nil, err
	}
	second, err := beside(first)
	if err != nil {
		return nil, err
	}
	a, _, err := s.recorded(first, recordedWeights[0])
	if err != nil {
		return nil, err
	}
	b, like, err := s.recorded(second, recordedWeights[1])
	if err != nil {
		return nil, err
	}
	if a.Compare(b, recordedWeights[0], recordedWeights[1]) != nil {
		// A first evaluation may make constants that later ones keep.
		if a, _, err = s.recorded(first, recordedWeights[0]); err != nil {
			return nil, err
		}
		if err := a.Compare(b, recordedWeights[0], recordedWeights[1]); err != nil {
			return nil, &refusal{err.Error()}
		}
	}
	if err := b.Ready(); err != nil {
		return nil, &refusal{err.Error()}
	}
	point, err := describe("", first)
	if err != nil {
		return nil, err
	}
	r := &replay{dim: s.Dim, shape: point.shape, dtype: point.dtype, device: point.device, program: b, held: &held{}}
	f := &Func{replay: r}
	runtime.AddCleanup(f, func(h *held) { h.free() }, r.held)
	for _, name := range slices.Sorted(maps.Keys(s.Batch)) {
		in, err := describe(name, s.Batch[name])
		if err != nil {
			return nil, err
		}
		r.batch = append(r.batch, in)
	}
	for i, name := range like.names {
		shape, err := torch.Shape(like.tensors[2+i])
		if err != nil {
			return nil, err
		}
		r.outputs = append(r.outputs, ir.Slot{Name: name, Elem: ir.F64, Shape: shape[len(point.shape)-1:]})
	}
	report.Ops = b.Operations
	if err := r.set(s.Batch); err != nil {
		return nil, &refusal{err.Error()}
	}
	for i, x := range []torch.Tensor{first, second, first} {
		if err := r.verify(s, x, []float64{0.25, recordedWeights[0], recordedWeights[1]}[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// beside is a point that differs in all coordinates.
func beside(x torch.Tensor) (torch.Tensor, error) {
	in, err := describe("", x)
	if err != nil {
		return torch.Tensor{}, err
	}
	n := 1
	for _, k := range in.shape {
		n *= k
	}
	steps := make([]float64, n)
	for i := range steps {
		steps[i] = 0.01 * (1 + float64(i%7)) / 7
	}
	step, err := torch.FromSliceOn(in.device, in.dtype, steps, in.shape...)
	if err != nil {
		return torch.Tensor{}, err
	}
	return raw.Of(x.T().Add(step.T(), false))
}

// recorded is one evaluation, and its program.
func (s Source) recorded(x torch.Tensor, weight float64) (*record.Program, whole, error) {
	known, batch := []torch.Tensor{x}, map[string]torch.Tensor{}
	for _, name := range slices.Sorted(maps.Keys(s.Batch)) {
		// By other handles, so that nothing is found that an earlier evaluation kept of them.
		t, err := s.Batch[name].T().Detach(false)
		if err != nil {
			return nil, whole{}, err
		}
		known, batch[name] = append(known, torch.Of(t)), torch.Of(t)
	}
	r, err := record.StartReplay(raw.Pointers(known))
	if err != nil {
		return nil, whole{}, err
	}
	defer r.Stop(nil)
	w, err := s.whole(x, batch, weight)
	if err != nil {
		return nil, w, err
	}
	p, err := r.Stop(raw.Pointers(w.tensors))
	if refused := record.Refusal(""); errors.As(err, &refused) {
		return nil, w, &refusal{refused.Error()}
	}
	return p, w, err
}

// verify compares the replay with eager evaluation at a point.
func (r *replay) verify(s Source, x torch.Tensor, weight float64) error {
	return torch.Do(func(*torch.Scope) error {
		want, err := s.whole(x, s.Batch, weight)
		if err != nil {
			return err
		}
		have, err := r.run(x, weight)
		if err != nil {
			return &refusal{err.Error()}
		}
		for i, t := range want.tensors {
			a, err := torch.ToSlice[float64](t)
			if err != nil {
				return err
			}
			b, err := torch.ToSlice[float64](have[i])
			if err != nil {
				return err
			}
			equal := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }
			if !slices.EqualFunc(a, b, equal) {
				return &refusal{fmt.Sprintf("%s differs from that of eager evaluation", what(i, want.names))}
			}
		}
		return nil
	})
}

func what(i int, names []string) string {
	if i < 2 {
		return []string{"its value", "its gradient"}[i]
	}
	return fmt.Sprintf("its output %q", names[i-2])
}

// set takes another batch.
func (r *replay) set(batch map[string]torch.Tensor) error {
	h := &held{}
	tensors := make([]torch.Tensor, len(r.batch))
	for i, in := range r.batch {
		t, ok := batch[in.name]
		if !ok {
			h.free()
			return fmt.Errorf("native: the batch has no tensor %q", in.name)
		}
		now, err := describe(in.name, t)
		if err == nil && !now.equal(in) {
			err = fmt.Errorf("native: batch tensor %q is %v of %v, and was of shape %v when it was recorded", in.name, now.shape,
				now.dtype, in.shape)
		}
		if err == nil {
			tensors[i], err = h.add(t)
		}
		if err != nil {
			h.free()
			return err
		}
	}
	err := r.program.SetBatch(raw.Pointers(tensors))
	r.held.tensors, h.tensors = h.tensors, r.held.tensors
	h.free()
	return err
}

// run evaluates at a point. The tensors belong to the scope that is open.
func (r *replay) run(x torch.Tensor, weight float64) ([]torch.Tensor, error) {
	w, ok := r.calls.Get().(*record.Workspace)
	if !ok {
		var err error
		if w, err = r.program.Workspace(); err != nil {
			return nil, err
		}
	}
	out, err := w.Run(x.T(), weight, 2+len(r.outputs))
	if err == nil {
		r.calls.Put(w)
	}
	return raw.All(out), err
}

// all evaluates points of numbers in Go.
func (r *replay) all(x []float64, weight float64, values, grad []float64, aux [][]float64) error {
	rows := 1
	if len(r.shape) > 1 {
		rows = r.shape[0]
	}
	if len(values)%rows != 0 {
		return fmt.Errorf("native: %d points for a replay of %d at a time", len(values), rows)
	}
	for k := 0; k < len(values); k += rows {
		err := torch.Do(func(*torch.Scope) error {
			point, err := torch.FromSliceOn(r.device, r.dtype, x[k*r.dim:(k+rows)*r.dim], r.shape...)
			if err != nil {
				return err
			}
			out, err := r.run(point, weight)
			if err != nil {
				return err
			}
			to := [][]float64{values[k : k+rows], grad[k*r.dim : (k+rows)*r.dim]}
			for i, a := range aux {
				n := r.outputs[i].Len()
				to = append(to, a[k*n:(k+rows)*n])
			}
			for i, t := range out {
				numbers, err := torch.ToSlice[float64](t)
				if err != nil {
					return err
				}
				copy(to[i], numbers)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Replays says whether the function is a replay whose Tensors evaluates points of that shape, type and device.
func (f *Func) Replays(shape []int, dtype gotch.DType, device gotch.Device) bool {
	r := f.replay
	return r != nil && slices.Equal(shape, r.shape) && dtype == r.dtype && device == r.device
}

// Planned says whether the function is a plan, which works on numbers in main memory. It is a replay otherwise.
func (f *Func) Planned() bool { return f.replay == nil }

// Tensors evaluates all rows of a point at once: the log densities + weight · log Jacobian, with their gradients, and
// the outputs. They have the bits of eager evaluation and belong to the scope that is open. Only a replay has them.
func (f *Func) Tensors(x torch.Tensor, weight float64) (values, grads torch.Tensor, aux map[string]torch.Tensor,
	err error) {
	if f.replay == nil {
		return torch.Tensor{}, torch.Tensor{}, nil, errors.New("native: a plan works on numbers, not on tensors")
	}
	out, err := f.replay.run(x, weight)
	runtime.KeepAlive(f)
	if err != nil {
		return torch.Tensor{}, torch.Tensor{}, nil, err
	}
	for i, o := range f.replay.outputs {
		if aux == nil {
			aux = map[string]torch.Tensor{}
		}
		aux[o.Name] = out[2+i]
	}
	return out[0], out[1], aux, nil
}
