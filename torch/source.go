package torch

import (
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Source gives random numbers to samplers. It reads one stream; inside a function mapped by [VmapSources] it reads one
// for each of the evaluations, and its numbers are theirs. It is not safe for several goroutines at once.
type Source struct {
	streams *Streams
	level   int64 // of the vmap that the source belongs to; 0 outside
}

// NewSource is the source that reads the stream (seed, chain) from its start.
func NewSource(seed, chain uint64) *Source {
	return &Source{streams: &Streams{Seed: seed, Chains: []uint64{chain}}}
}

// Source is a source over streams of one chain, which it moves on.
func (s *Streams) Source() (*Source, error) {
	if len(s.Chains) != 1 {
		return nil, fmt.Errorf("torch.Streams: a source needs one chain, there are %d; use VmapSources", len(s.Chains))
	}
	return &Source{streams: s}, nil
}

// Normal draws standard normal numbers in a shape.
func (s *Source) Normal(shape []int64, dtype gotch.DType, device gotch.Device) (*ts.Tensor, error) {
	return s.draw(0, shape, dtype, device)
}

// Uniform draws numbers uniform on the open interval (0, 1) in a shape.
func (s *Source) Uniform(shape []int64, dtype gotch.DType, device gotch.Device) (*ts.Tensor, error) {
	return s.draw(1, shape, dtype, device)
}

func (s *Source) draw(kind int, shape []int64, dtype gotch.DType, device gotch.Device) (*ts.Tensor, error) {
	if s.level == 0 {
		return s.streams.drawAt(kind, shape, int(dtype.CInt()), deviceNumber(device))
	}
	t, err := s.streams.draw(kind, append([]int64{int64(len(s.streams.Chains))}, shape...), dtype, device)
	if err != nil {
		return nil, err
	}
	return ts.KelvinVmapIn(t, 0, s.level)
}

// Seed draws a seed for a generator of another kind: a function of the stream and its position (SplitMix64, Steele et
// al. 2014).
func (s *Source) Seed() uint64 { return s.seeds()[0] }

// seeds are the seeds of all evaluations, each a function of its own stream.
func (s *Source) seeds() []uint64 {
	out := make([]uint64, len(s.streams.Chains))
	for k, chain := range s.streams.Chains {
		z := s.streams.Seed + 0x9e3779b97f4a7c15*(chain+1) + 0xd1342543de82ef95*(s.streams.Offset+1)
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		out[k] = z ^ (z >> 31)
	}
	s.streams.Offset++
	return out
}

// VmapSources is [Vmap] of a function that draws random numbers: evaluation k reads the stream of chain k. There must
// be as many chains as evaluations.
func VmapSources(
	f func(in []*ts.Tensor, source *Source) ([]*ts.Tensor, error),
	inputs []*ts.Tensor,
	streams *Streams,
	o *VmapOptions,
) (outputs []*ts.Tensor, err error) {
	if o == nil {
		o = &VmapOptions{}
	}
	with := *o
	with.Randomness = RandomDifferent
	size, err := mappedSize(inputs, &with)
	if err != nil {
		return nil, err
	}
	if int(size) != len(streams.Chains) {
		return nil, fmt.Errorf("torch.VmapSources: %d random streams for %d evaluations", len(streams.Chains), size)
	}
	err = Do(func(scope *Scope) error {
		outputs, err = vmapAt(func(in []*ts.Tensor, level int64) ([]*ts.Tensor, error) {
			return f(in, &Source{streams: streams, level: level})
		}, inputs, &with)
		scope.Keep(outputs...)
		return err
	})
	return outputs, err
}
