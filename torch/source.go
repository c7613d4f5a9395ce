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
	level   int     // of the vmap that the source belongs to; 0 outside
	ask     answers // nil for the stream's own numbers
}

// answers gives the numbers of a draw.
type answers = func(kind string, shape []int, dtype gotch.DType, params ...Tensor) (Tensor, error)

// Ask makes the source ask f for each draw, in the place of its stream: "normal" and "uniform" have a shape, and "log
// gamma", "poisson", "binomial", "multinomial" and "von mises" their parameters. [Source.Seed] is then an error. It is
// for whoever records what a model draws.
func (s *Source) Ask(f func(kind string, shape []int, dtype gotch.DType, params ...Tensor) (Tensor, error)) {
	s.ask = f
}

// answer is that of the function of Ask.
func (s *Source) answer(kind string, shape []int, dtype gotch.DType, params ...Tensor) (Tensor, error) {
	t, err := s.ask(kind, shape, dtype, params...)
	if err == nil && t.t == nil {
		err = misuse("the function of Source.Ask has given no tensor, and no error, for %s numbers", kind)
	}
	return t, err
}

// samples are what sample draws, by number.
var samples = []string{"log gamma", "poisson", "binomial", "multinomial", "von mises"}

// errNoSource is the error of a draw from a source that is nil, or that nothing made.
var errNoSource = misuse("the source of random numbers is nil: use NewSource, or that of the model")

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
func (s *Source) Normal(shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	return s.draw(0, shape, dtype, device)
}

// Uniform draws numbers uniform on the open interval (0, 1) in a shape.
func (s *Source) Uniform(shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	return s.draw(1, shape, dtype, device)
}

func (s *Source) draw(kind int, shape []int, dtype gotch.DType, device gotch.Device) (Tensor, error) {
	if s == nil || s.streams == nil {
		return Tensor{}, errNoSource
	}
	if s.ask != nil {
		return s.answer(kinds[kind], shape, dtype)
	}
	if s.level == 0 {
		return s.streams.drawAt(kind, shape, int(dtype.CInt()), deviceNumber(device))
	}
	t, err := s.streams.draw(kind, append([]int{len(s.streams.Chains)}, shape...), dtype, device)
	if err != nil {
		return Tensor{}, err
	}
	return from(ts.KelvinVmapIn(t.t, 0, int64(s.level)))
}

// Seed draws a seed for a generator of another kind: a function of the stream and its position (SplitMix64, Steele et
// al. 2014).
func (s *Source) Seed() uint64 { return s.seeds()[0] }

// seeds are the seeds of all evaluations, each a function of its own stream.
func (s *Source) seeds() []uint64 {
	if s == nil || s.streams == nil {
		panic(errNoSource)
	}
	if s.ask != nil {
		panic(misuse("a seed was asked of a source that records: its numbers would be those of another generator"))
	}
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
	f func(in []Tensor, source *Source) ([]Tensor, error),
	inputs []Tensor,
	streams *Streams,
	o *VmapOptions,
) (outputs []Tensor, err error) {
	if f == nil {
		return nil, errNoFunction
	}
	if streams == nil {
		return nil, errNoSource
	}
	if o == nil {
		o = &VmapOptions{}
	}
	with := *o
	with.Randomness = RandomDifferent
	size, err := mappedSize(inputs, &with)
	if err != nil {
		return nil, err
	}
	if size != len(streams.Chains) {
		return nil, fmt.Errorf("torch.VmapSources: %d random streams for %d evaluations", len(streams.Chains), size)
	}
	err = Do(func(scope *Scope) error {
		outputs, err = vmapAt(func(in []Tensor, level int) ([]Tensor, error) {
			return f(in, &Source{streams: streams, level: level})
		}, inputs, &with)
		scope.Keep(outputs...)
		return err
	})
	return outputs, err
}

// Gamma draws gamma numbers of shape alpha > 0 and rate 1, one for each element of alpha, in its type and on its
// device. Gradients flow to alpha (implicit reparameterisation, Figurnov et al. 2018, with libtorch's derivative).
// Numbers too small for the type are 0: see [Source.LogGamma].
func (s *Source) Gamma(alpha Tensor) (Tensor, error) {
	logs, err := s.LogGamma(alpha)
	if err != nil {
		return Tensor{}, err
	}
	return from(logs.t.Exp(false))
}

// LogGamma draws the logarithms of what [Source.Gamma] draws. They do not underflow, however small alpha is.
func (s *Source) LogGamma(alpha Tensor) (Tensor, error) { return s.sample(0, alpha, nil) }

// Dirichlet draws probability vectors with the given concentrations, along the last dimension. Gradients flow.
func (s *Source) Dirichlet(concentration Tensor) (Tensor, error) {
	logs, err := s.LogGamma(concentration)
	if err != nil {
		return Tensor{}, err
	}
	return from(logs.t.Softmax(-1, logs.t.DType(), false))
}

// Poisson draws Poisson numbers, one for each element of rate, in its type.
func (s *Source) Poisson(rate Tensor) (Tensor, error) { return s.sample(1, rate, nil) }

// Binomial draws how many of count trials succeed, each with probability prob. The two broadcast.
func (s *Source) Binomial(count, prob Tensor) (Tensor, error) {
	return s.sample(2, count, prob.T())
}

// Multinomial draws how often each category of the last dimension of weights comes up in count trials. The weights need
// not have sum 1. count broadcasts against weights without its last dimension.
func (s *Source) Multinomial(count, weights Tensor) (Tensor, error) {
	return s.sample(3, count, weights.T())
}

// sample draws numbers whose parameters are tensors. Each element has a generator of its own, so a draw is the same
// whatever is drawn beside it.
func (s *Source) sample(op int, a Tensor, b *ts.Tensor) (Tensor, error) {
	if s == nil || s.streams == nil {
		return Tensor{}, errNoSource
	}
	if s.ask != nil {
		params := []Tensor{a}
		if b != nil {
			params = append(params, wrap(b))
		}
		return s.answer(samples[op], nil, gotch.Double, params...)
	}
	return from(ts.KelvinSample(op, a.T(), b, int64(s.level), s.seeds()))
}

// VonMises draws angles from -π to π around 0, one for each element of concentration >= 0, in its type.
func (s *Source) VonMises(concentration Tensor) (Tensor, error) {
	return s.sample(4, concentration, nil)
}
