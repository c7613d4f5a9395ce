package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// network is a classifier of Baldock and Marzari (2019): logistic hidden units, the softmax of its outputs as the
// probabilities, and a uniform prior for each weight, of width σ_i = width/√k with k the inputs of its unit, the bias
// included.
type network struct {
	name  string
	net   *nn.Network
	width float64
	lower []float64 // the walls of the prior, [d]
	upper []float64
}

// hidden are the networks of the paper. M3* has logistic output units before the softmax, so that no logits are further
// apart than 1, and the loss of an example is at least −log(e/(e + 9)) = 1.4612.
var hidden = []struct {
	name   string
	units  []int
	width  float64
	output nn.Layer
}{
	{"M1", []int{40}, 100, nil},
	{"M3", []int{40, 40, 40}, 100, nil},
	{"M3*", []int{40, 40, 40}, 2000, nn.Sigmoid{}},
}

// networks builds them for images of so many pixels.
func networks(pixels, classes int) (map[string]*network, error) {
	all := map[string]*network{}
	for _, h := range hidden {
		sizes := append(append([]int{pixels}, h.units...), classes)
		net, err := nn.MLP{Sizes: sizes, Activation: nn.Sigmoid{}, Output: h.output}.Build()
		if err != nil {
			return nil, err
		}
		n := &network{name: h.name, net: net, width: h.width}
		fanIn := map[string]int{}
		for _, layer := range net.LinearLayers() {
			k := net.Shapes()[layer.Weight][1] + 1
			fanIn[layer.Weight], fanIn[layer.Bias] = k, k
		}
		if n.lower, n.upper, err = path.Box(net.Layout(), n.width, fanIn); err != nil {
			return nil, err
		}
		all[h.name] = n
	}
	return all, nil
}

// logWidths is Σ log σ_i, the negative log density of the prior.
func (n *network) logWidths() (sum float64) {
	for i, low := range n.lower {
		sum += math.Log(n.upper[i] - low)
	}
	return sum
}

// logits are the outputs, [n, classes].
func (n *network) logits(p infer.Params, x torch.Tensor) torch.Tensor { return n.net.Forward(p, x) }

// target has the prior Π 1/σ_i and the likelihood Π p(t_i|x_i, w). The walls of the prior are elsewhere.
func (n *network) target(data int) infer.Target {
	prior := -n.logWidths()
	return infer.FromParts(func(p infer.Params, b infer.Batch) (logPrior, logLikelihood torch.Tensor) {
		ll := dist.CategoricalLogits(n.logits(p, b.Get("x"))).LogProb(b.Get("y")).Sum()
		return p.Flat.Sum().Mul(0).Add(prior), ll
	}, data)
}

// box is the prior as the start of a path: flat within the walls.
func (n *network) box() *path.Harmonic {
	d := len(n.lower)
	return &path.Harmonic{Mean: make([]float64, d), Precision: make([]float64, d), Lower: n.lower, Upper: n.upper}
}

// start is uniform in ±width/√k. The paper begins at the width 1; half the network's width is a draw of its prior.
func (n *network) start(chains int, seed uint64, width float64) (infer.Params, error) {
	streams := torch.NewStreams(seed, chains)
	return nn.Init(n.net, nn.EachSite(func(s nn.Site) nn.Law { return nn.Uniform(width / math.Sqrt(float64(s.FanIn)+1)) }),
		&streams)
}
