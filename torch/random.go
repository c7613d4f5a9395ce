package torch

import (
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Streams are the random streams of K chains. A stream is named by (seed, chain) and read at a position; its numbers
// depend on nothing else: not on the other chains, the number of threads, or the device. Streams is a plain value: copy
// it to remember a position, save its fields to go on later.
//
// The generator is Philox 4x32-10 (Salmon et al. 2011), a function of (seed, chain, position), made normal by the
// Box-Muller transform. One position gives two numbers, or four normal ones of float32: those are made of 32 bits each,
// so that none is beyond 6.7, by operations that make the same bits on every machine. Other normal numbers are made of
// 52 bits each in double precision. On a GPU uniform numbers and normal ones of float32 are those of the CPU to the
// bit, and other normal ones to the rounding of its logarithm, sine and cosine.
type Streams struct {
	Seed   uint64   // of the run
	Chains []uint64 // the K chains; not changed by drawing
	Offset uint64   // the position that the next draw starts at, the same for all chains
}

// mostChains bounds the number of streams, so that a mistake is no request for all memory.
const mostChains = 1 << 31

// NewStreams returns the streams of chains 0 to k-1 at their start. k below 0, or above 2^31, is a [Recoverable] panic.
func NewStreams(seed uint64, k int) Streams {
	if k < 0 || k > mostChains {
		panic(misuse("%d chains have no streams: there must be from 0 to %d", k, mostChains))
	}
	s := Streams{Seed: seed, Chains: make([]uint64, k)}
	for i := range s.Chains {
		s.Chains[i] = uint64(i)
	}
	return s
}

// Normal draws standard normal numbers: a tensor of shape [K, shape...], row k from chain k's stream. The streams move
// on by as many positions as were used.
func (s *Streams) Normal(shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	return s.draw(0, append([]int{len(s.Chains)}, shape...), dtype, device)
}

// Uniform draws numbers uniform on the open interval (0, 1), like [Streams.Normal].
func (s *Streams) Uniform(shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	return s.draw(1, append([]int{len(s.Chains)}, shape...), dtype, device)
}

// NormalLike draws standard normal numbers in the shape, type and device of t. With one stream t may have any shape;
// with K streams its first dimension must be K.
func (s *Streams) NormalLike(t Tensor) (Tensor, error) {
	d, err := t.T().KelvinDescribe()
	if err != nil {
		return Tensor{}, err
	}
	if len(s.Chains) != 1 && (len(d.Shape) == 0 || int(d.Shape[0]) != len(s.Chains)) {
		return Tensor{}, fmt.Errorf(
			"torch.Streams: %d chains cannot fill shape %v: its first dimension must be the number of chains", len(s.Chains),
			d.Shape)
	}
	return s.drawAt(0, Ints(d.Shape), d.DType, d.Device)
}

// kinds are the distributions that C++ draws from, by number, and drawable the types of their numbers. Rounded to half
// precision, uniform numbers would be 0 and 1 at times.
var (
	kinds    = []string{"normal", "uniform"}
	drawable = []map[gotch.DType]bool{
		{gotch.Double: true, gotch.Float: true, gotch.Half: true, gotch.BFloat16: true},
		{gotch.Double: true, gotch.Float: true},
	}
)

func (s *Streams) draw(kind int, shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	return s.drawAt(kind, shape, int(dtype.CInt()), deviceNumber(device))
}

func (s *Streams) drawAt(kind int, shape []int, dtype, device int) (Tensor, error) {
	if len(s.Chains) == 0 {
		return Tensor{}, fmt.Errorf("torch.Streams: there are no chains; use NewStreams")
	}
	if !drawable[kind][gotch.CKind2DType(int32(dtype))] {
		return Tensor{}, fmt.Errorf(
			"torch.Streams: %s numbers of type %v cannot be drawn",
			kinds[kind],
			gotch.CKind2DType(int32(dtype)),
		)
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	var t *ts.Tensor
	var err error
	if device < 0 {
		t, err = ts.KelvinRandom(kind, s.Seed, s.Chains, s.Offset, Int64s(shape), dtype, device)
	} else {
		t, err = s.onDevice(kind, shape, gotch.CKind2DType(int32(dtype)), gotch.CudaBuilder(uint(device)))
	}
	if err != nil {
		return Tensor{}, err
	}
	s.Offset += uint64(positions(kind, n/len(s.Chains), gotch.CKind2DType(int32(dtype))))
	return wrap(t), nil
}

// positions are how many n numbers of a stream take.
func positions(kind int, n int, dtype gotch.DType) int {
	made := 2
	if kind == 0 && dtype == gotch.Float {
		made = 4
	}
	return (n + made - 1) / made
}
