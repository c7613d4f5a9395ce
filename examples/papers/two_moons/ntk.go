package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// tangentKernel is the neural tangent kernel of two inputs in the limit of wide layers, which says how gradient descent
// moves a network (Jacot et al. 2018), for weights that are standard normal numbers times σ_w/√fan-in, and biases times
// σ_b.
func (p prior) tangentKernel(a, b [2]float64) (float64, error) {
	k, err := p.dense().NTK([][]float64{a[:]}, [][]float64{b[:]})
	if err != nil {
		return 0, err
	}
	return k.At(0, 0), nil
}

// tangentKernels are those of networks of one width drawn from the prior: Σ_j s_j² ∂f(a)/∂θ_j ∂f(b)/∂θ_j, with s_j the
// standard deviation of parameter j.
func (p prior) tangentKernels(a, b [2]float64, width int, draws int, seed uint64) (out []float64, err error) {
	shape := []int{2}
	for range p.hidden {
		shape = append(shape, width)
	}
	net, err := nn.MLP{Sizes: append(shape, 1)}.Build()
	if err != nil {
		return nil, err
	}
	law, err := nn.NewPrior(net, p.scheme())
	if err != nil {
		return nil, err
	}
	output, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return net.Forward(p, b.Get("x")).At(0, 0), nil
	}, 1))
	if err != nil {
		return nil, err
	}
	err = torch.Do(func(*torch.Scope) error {
		streams := torch.NewStreams(seed, draws)
		at, err := law.Draw(&streams)
		if err != nil {
			return err
		}
		var gradients [2][]float64
		for i, x := range [][2]float64{a, b} {
			input, err := torch.FromSlice(x[:], 1, 2)
			if err != nil {
				return err
			}
			e, err := output.ValueAndGrad(at, infer.Batch{"x": input}, 0)
			if err != nil {
				return err
			}
			if gradients[i], err = torch.ToSlice[float64](e.Grad); err != nil {
				return err
			}
		}
		for k := range draws {
			sum := 0.0
			for _, site := range net.Layout().Sites {
				sd := law.Laws()[site.Name].SD()
				for j := k*net.NumParams() + site.Offset; j < k*net.NumParams()+site.Offset+site.Size; j++ {
					sum += sd * sd * gradients[0][j] * gradients[1][j]
				}
			}
			out = append(out, sum)
		}
		return nil
	})
	return out, err
}
