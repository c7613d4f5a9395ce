package main

import (
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// model is a binary classifier: p(y = 1|x, w) = σ(f(x, w)) with f a perceptron, and the prior w ~ N(0, τ² I).
type model struct {
	mlp       nn.MLP // what the network was built from
	net       *nn.Network
	precision float64 // of the prior, 1/τ²
	n         float64 // data
}

// sizes are those of the network of the methods: three hidden layers of 32 ReLU units, 2241 parameters.
var sizes = []int{2, 32, 32, 32, 1}

func newModel(mlp nn.MLP, tau float64, n int) (model, error) {
	net, err := mlp.Build()
	return model{mlp: mlp, net: net, precision: 1 / (tau * tau), n: float64(n)}, err
}

// logPosterior is the mean over the data, without the constant of the prior.
func (m model) logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	return m.mean(p, outer(m.forward(p, b), b)), nil
}

// mean is (1/n) log prior + the mean of the log likelihoods.
func (m model) mean(p infer.Params, logLikelihoods torch.Tensor) torch.Tensor {
	logPrior := p.Flat.Square().Sum().Mul(-0.5 * m.precision / m.n)
	return logLikelihoods.Mean().Add(logPrior)
}

// forward is the logits, of shape [n].
func (m model) forward(p infer.Params, b infer.Batch) torch.Tensor {
	return m.net.Forward(p, b.Get("x")).Squeeze(-1)
}

// outer is log p(y|z) of each datum for its logit z: y z − log(1 + exp z).
func outer(z torch.Tensor, b infer.Batch) torch.Tensor {
	return z.Mul(b.Get("y")).Sub(z.Softplus())
}

// layers are the linear layers of the network of these sizes, and network the same function as forward in terms of
// them, as KFAC needs it.
var layers = []laplace.Layer{{Weight: "0.weight", Bias: "0.bias"}, {Weight: "2.weight", Bias: "2.bias"},
	{Weight: "4.weight", Bias: "4.bias"}, {Weight: "6.weight", Bias: "6.bias"}}

func network(_ infer.Params, b infer.Batch, linear laplace.Linear) torch.Tensor {
	h := b.Get("x")
	for _, l := range layers[:len(layers)-1] {
		h = linear(l.Weight, h).Relu()
	}
	return linear(layers[len(layers)-1].Weight, h).Squeeze(-1)
}
