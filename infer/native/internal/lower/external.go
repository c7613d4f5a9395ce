package lower

import (
	"encoding/binary"
	"math"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// external is what a storage held before the evaluation: the point, the batch, or a constant that the density captures.
func (l *lowering) external(t *Tensor) *image {
	s := l.rec.Storages[t.Storage]
	size := t.Type.size()
	if l.origin[t.Storage] == made {
		refuse("it reads memory that no recorded operation has written")
	}
	if size == 0 {
		refuse("elements of type %v are not understood", t.Type)
	}
	for _, f := range l.rec.Foreign {
		if f.Out.Storage == t.Storage {
			return &image{typ: t.Type, array: l.foreign(f)}
		}
	}
	img := &image{typ: t.Type, array: array{sizes: []int{s.Bytes / size}}}
	for k, in := range l.rec.Known {
		if in.Storage != t.Storage {
			continue
		}
		if in.Type != t.Type {
			refuse("memory that holds %v is read as %v", in.Type, t.Type)
		}
		n := ir.Iterations(in.Sizes)
		if n == 0 {
			continue
		}
		img.array = l.g.overlay(img.array, []int{in.Offset}, single([]int{n}, ref{v: l.known(k), strides: []int{1}}))
	}
	if len(img.array.cells) > 0 {
		return img
	}
	if s.Data == nil {
		refuse("the contents of a tensor are not known")
	}
	l.rec.Storages[t.Storage].used = true
	img.array = single(img.array.sizes, ref{v: l.g.constant(decode(s.Data, t.Type)), strides: []int{1}})
	return img
}

// foreign is what a function in C makes.
func (l *lowering) foreign(f Foreign) array {
	in, out := ir.Iterations(f.In.Sizes), ir.Iterations(f.Out.Sizes)
	if f.In.Type != Float64 || f.Out.Type != Float64 {
		refuse("a function in C has arguments of type %v and results of type %v", f.In.Type, f.Out.Type)
	}
	a := l.g.value(l.read(&f.In))
	if a.kind == input && a.elem != ir.F64 {
		a = l.g.pointwise(copyOf, []int{in}, whole(a, []int{in})).v
	}
	sizes := []int{1, out}
	made := l.step(ir.Step{Kind: ir.Call, M: 1, N: out, K: in}, sizes, whole(a, []int{1, in}),
		whole(l.g.constant(f.Address[:]), []int{1, 2}))
	return made.drop(0)
}

// decode reads elements as numbers.
func decode(data []byte, t Type) []float64 {
	size := t.size()
	out := make([]float64, len(data)/size)
	for i := range out {
		b := data[i*size:]
		switch t {
		case Boolean:
			if b[0] != 0 {
				out[i] = 1
			}
		case Uint8:
			out[i] = float64(b[0])
		case Int8:
			out[i] = float64(int8(b[0]))
		case Int16:
			out[i] = float64(int16(binary.LittleEndian.Uint16(b)))
		case Int32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case Int64:
			k := int64(binary.LittleEndian.Uint64(b))
			if k > 1<<53 || k < -1<<53 {
				refuse("the whole number %d is no float64", k)
			}
			out[i] = float64(k)
		case Float32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		default:
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	}
	return out
}
