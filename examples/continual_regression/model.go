package main

import (
	"math"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// model is a regression y ~ N(f(θ, x), noise²) with parameters N(0, priorSD²). All methods take any model.
type model struct {
	layout  *infer.Layout
	forward curvature.Forward                          // f(θ, x) for the data of a batch, [n]
	network laplace.Network                            // the same by its linear layers, for Kronecker factors
	layers  []laplace.Layer                            // those layers
	start   func(*torch.Streams) (infer.Params, error) // where an optimiser begins
	priorSD float64
}

// perceptron is a network of one input and one output with ReLU units.
func perceptron(priorSD float64, hidden ...int) (model, error) {
	net, err := nn.MLP{Sizes: append(append([]int{1}, hidden...), 1)}.Build()
	if err != nil {
		return model{}, err
	}
	m := model{layout: net.Layout(), priorSD: priorSD}
	m.forward = func(p infer.Params, b infer.Batch) torch.Tensor { return net.Forward(p, b.Get("x")).Squeeze(1) }
	m.start = func(s *torch.Streams) (infer.Params, error) { return nn.Init(net, nn.PyTorch(), s) }
	linear := map[string]bool{}
	for _, site := range net.Sites() {
		if name, ok := strings.CutSuffix(site.Name, ".weight"); ok {
			linear[name] = true
			m.layers = append(m.layers, laplace.Layer{Weight: site.Name, Bias: name + ".bias"})
		}
	}
	m.network = func(p infer.Params, b infer.Batch, layer laplace.Linear) torch.Tensor {
		hook := func(name string, in, out torch.Tensor) torch.Tensor {
			if !linear[name] {
				return out
			}
			return layer(name+".weight", in)
		}
		return net.ForwardWith(p, b.Get("x"), nn.Run{Hook: hook}).Squeeze(1)
	}
	return m, nil
}

// outer is log N(y; z, noise²) of each datum.
func outer(z torch.Tensor, b infer.Batch) torch.Tensor {
	return b.Get("y").Sub(z).Square().Mul(-0.5 / (noise * noise)).Sub(math.Log(noise * math.Sqrt(2*math.Pi)))
}

// logDensity is a log density of the parameters, at one point: a tensor of shape [].
type logDensity func(p infer.Params) torch.Tensor

// firstPrior is log N(θ; 0, priorSD²) without its constant.
func (m model) firstPrior(p infer.Params) torch.Tensor {
	theta := p.Flat
	return theta.Dot(theta).Mul(-0.5 / (m.priorSD * m.priorSD))
}

// target is the log posterior in parts, on the scale of the mean over n data: (1/n) log prior and the mean of a batch.
func (m model) target(n int, prior logDensity) infer.Target {
	likelihood := curvature.Likelihood(m.forward, outer)
	return infer.FromParts(func(p infer.Params, b infer.Batch) (logPrior, logLikelihood torch.Tensor) {
		return prior(p).Mul(1 / float64(n)), likelihood(p, b).Mean()
	}, 0)
}
