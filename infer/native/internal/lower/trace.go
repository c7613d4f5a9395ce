package lower

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/foreign"
	"github.com/kelvin-ppl/kelvin/internal/parallel"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/record"
	"github.com/sugarme/gotch/ts"
)

// Named is a tensor with its name.
type Named struct {
	Name   string
	Tensor *ts.Tensor
}

// Source is a log density with its gradient, as eager evaluation computes it.
type Source struct {
	Dim   int
	Batch []Named // in the order of Plan.Inputs; contiguous, in main memory

	// Evaluate returns the value (shape []) and gradient (shape [Dim]) of the log density at x, of shape [Dim] and type
	// float64; a second value and gradient are those of the log Jacobian, which the plan adds with its weight. aux are
	// further outputs, in the order of Plan.Outputs. batch are the tensors of Batch by other handles, so that nothing
	// is found that an earlier evaluation kept of them: it must read these. It must work by operations alone, without vmap
	// over points and without reading values.
	Evaluate func(x *ts.Tensor, batch []*ts.Tensor) (values, grads []*ts.Tensor, aux []Named, err error)
}

// Options of [Compile].
type Options struct {
	// GradientOnly leaves the value out of the plan, and with it all that only the value needs.
	GradientOnly bool
	// ValueOnly leaves the gradient out, and with it all that only the gradient needs.
	ValueOnly bool
}

// trace is one recorded evaluation.
type trace struct {
	words     []int64 // the recording, as it was told, until it is read: of a long loop both are many bytes
	bytes     []byte
	digest    [sha256.Size]byte // of the words
	unused    [][2]int          // parts of the bytes that the plan does not depend on
	foreign   [][2]float64      // the addresses of the calls in C
	recording *Recording        // nil until the words are read
	aux       []ir.Slot
	jacobian  bool // there is a second value
	plan      *ir.Plan
}

// told takes a recording.
func (t *trace) told(all []int64, bytes []byte) {
	words := slices.Clone(shorten(all, bytes))
	if all = nil; len(words) > longRecording {
		runtime.GC()
	}
	t.words, t.bytes = words, bytes
	h := sha256.New()
	h.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words)))
	h.Sum(t.digest[:0])
}

// read makes the recording of the words.
func (t *trace) read() error {
	if t.recording != nil {
		return nil
	}
	out, err := parse(t.words, t.bytes)
	if err != nil {
		return err
	}
	own := len(out.Outputs) - 2*len(t.foreign)
	for k, address := range t.foreign {
		out.Foreign = append(out.Foreign, Foreign{In: out.Outputs[own+2*k], Out: out.Outputs[own+2*k+1], Address: address})
	}
	out.Outputs = out.Outputs[:own]
	t.recording, t.words = out, nil
	return nil
}

// longRecording is how many words are many: 2 MB, of which a recording that is read takes several times as many. What
// its steps leave is then collected between them: else it would be as much again.
const longRecording = 1 << 18

// Compile records the source at two points, which must differ in all coordinates, and makes a plan of each. They must
// be one, with the same constants: what differs depends on the point in a way that no plan can have. That is a
// [Refusal], as is everything that a plan cannot be sure about. The plan was checked.
func Compile(s Source, a, b []float64, o Options) (*ir.Plan, error) {
	inputs, err := s.inputs()
	if err != nil {
		return nil, err
	}
	first, err := s.record(a)
	if err != nil {
		return nil, err
	}
	// The first recording is lowered while the second is made, but for one of so many words that memory counts.
	long := len(first.words) > longRecording
	lowered := beside(func() error {
		defer func() { first.recording = nil }()
		return first.lower(s.Dim, inputs, o)
	})
	if long {
		if refused := lowered(); refused != nil {
			return nil, refused
		}
		runtime.GC()
	}
	second, err := s.record(b)
	if refused := lowered(); refused != nil {
		return nil, refused
	}
	if err != nil || first.same(second) {
		return first.plan, err
	}
	if err = second.lower(s.Dim, inputs, o); err != nil {
		return nil, err
	}
	if Same(first.plan, second.plan) {
		return second.plan, nil
	}
	// A first evaluation may make constants that later ones keep.
	if first, err = s.record(a); err == nil {
		err = first.lower(s.Dim, inputs, o)
	}
	if err != nil {
		return nil, err
	}
	if Same(first.plan, second.plan) {
		return second.plan, nil
	}
	return nil, Difference(first.recording, second.recording)
}

// same says whether two recordings are equal in every bit that a plan of the first depends on. Where they are not,
// their plans may be. Memory that an operation writes is there before, with contents that differ each time.
func (t *trace) same(u *trace) bool {
	address := func(a, b [2]float64) bool {
		return math.Float64bits(a[0]) == math.Float64bits(b[0]) && math.Float64bits(a[1]) == math.Float64bits(b[1])
	}
	return t.digest == u.digest && t.sameBytes(u.bytes) && t.jacobian == u.jacobian &&
		slices.EqualFunc(t.aux, u.aux, ir.Slot.Equal) && slices.EqualFunc(t.foreign, u.foreign, address)
}

// sameBytes compares the texts and contents of a recording with others.
func (t *trace) sameBytes(others []byte) bool {
	if len(t.bytes) != len(others) {
		return false
	}
	at := 0
	for _, gap := range t.unused {
		if !bytes.Equal(t.bytes[at:gap[0]], others[at:gap[0]]) {
			return false
		}
		at = gap[1]
	}
	return bytes.Equal(t.bytes[at:], others[at:])
}

// beside runs f on a goroutine of its own. The function that it returns waits for f, and panics where f did.
func beside(f func() error) (wait func() error) {
	var err error
	var own parallel.Group
	own.Go(func() { err = f() })
	return func() error {
		own.Wait()
		return err
	}
}

// Record evaluates the source at x and returns what libtorch was asked for. It is for tests and tools; [Compile] makes
// plans.
func Record(s Source, x []float64) (*Recording, error) {
	t, err := s.record(x)
	if err != nil {
		return nil, err
	}
	if err := t.read(); err != nil {
		return nil, err
	}
	return t.recording, nil
}

// lower makes the plan of a recording for a density of dim coordinates.
func (t *trace) lower(dim int, inputs []ir.Slot, o Options) (err error) {
	if err := t.read(); err != nil {
		return err
	}
	t.plan, err = Plan(t.recording,
		PlanOptions{Options: o, Dim: dim, Inputs: inputs, Outputs: t.aux, Jacobian: t.jacobian})
	for _, s := range t.recording.Storages {
		if s.Data != nil && !s.used {
			t.unused = append(t.unused, [2]int{s.at, s.at + s.Bytes})
		}
	}
	return err
}

// record evaluates the source once.
func (s Source) record(x []float64) (*trace, error) {
	if len(x) != s.Dim || s.Dim < 1 {
		return nil, fmt.Errorf("trace: a point of %d coordinates for a density of %d", len(x), s.Dim)
	}
	out := &trace{}
	err := torch.Do(func(*torch.Scope) error {
		point, err := torch.FromSlice(slices.Clone(x), s.Dim)
		if err != nil {
			return err
		}
		known := []*ts.Tensor{point.T()}
		for _, b := range s.Batch {
			t, err := b.Tensor.Detach(false)
			if err != nil {
				return err
			}
			known = append(known, t)
		}
		r, err := record.Start(known)
		if err != nil {
			return err
		}
		defer r.Stop(nil)
		foreigners := foreign.Record()
		defer foreigners.Free()
		defer foreigners.Stop()
		values, grads, aux, err := s.Evaluate(point.T(), known[1:])
		if err != nil {
			return err
		}
		if n := len(values); n != len(grads) || n < 1 || n > 2 {
			return fmt.Errorf("trace: %d values and %d gradients, want one or two of each", n, len(grads))
		}
		outputs := append(append([]*ts.Tensor{}, values...), grads...)
		for _, a := range aux {
			outputs = append(outputs, a.Tensor)
			d, err := a.Tensor.KelvinDescribe()
			if err != nil {
				return err
			}
			out.aux = append(out.aux, ir.Slot{Name: a.Name, Elem: ir.F64, Shape: torch.Ints(d.Shape)})
		}
		out.jacobian = len(values) == 2
		foreigners.Stop()
		calls := foreigners.Calls()
		for _, c := range calls {
			outputs = append(outputs, c.In, c.Out)
		}
		words, bytes, err := r.Stop(outputs)
		if err != nil {
			return err
		}
		out.told(words, bytes)
		for _, c := range calls {
			out.foreign = append(out.foreign, c.Function.Address())
		}
		return nil
	})
	return out, err
}

// Elements are the types of tensors of a batch that a plan reads.
var Elements = map[gotch.DType]ir.Elem{gotch.Double: ir.F64, gotch.Float: ir.F32, gotch.Int64: ir.I64,
	gotch.Uint8: ir.U8, gotch.Bool: ir.U8}

// inputs describes the batch.
func (s Source) inputs() ([]ir.Slot, error) {
	var out []ir.Slot
	for _, b := range s.Batch {
		d, err := b.Tensor.KelvinDescribe()
		if err != nil {
			return nil, fmt.Errorf("trace: batch tensor %q: %w", b.Name, err)
		}
		if !d.Contiguous || d.Device >= 0 {
			return nil, &Refusal{Reason: fmt.Sprintf("the batch tensor %q is not contiguous in main memory", b.Name)}
		}
		dtype := gotch.CKind2DType(int32(d.DType))
		elem, ok := Elements[dtype]
		if !ok {
			return nil, &Refusal{Reason: fmt.Sprintf("the batch tensor %q has elements of %v: float64, float32, int64, "+
				"uint8 and bool are understood", b.Name, dtype)}
		}
		out = append(out, ir.Slot{Name: b.Name, Elem: elem, Shape: torch.Ints(d.Shape)})
	}
	return out, nil
}
