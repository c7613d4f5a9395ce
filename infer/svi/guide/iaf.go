package guide

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// IAF is an inverse autoregressive flow (Kingma et al. 2016): normal noise that goes through layers
//
//	y_i = g_i x_i + m_i,  log |det| = Σ log g_i
//
// whose gate g_i, from 0 to 1, and shift m_i are a network's, of one hidden layer, of the numbers x_j with j < i.
// Between layers the order of the numbers is turned round. A draw and its density take one pass. The Params are
// "guide.loc" and "guide.scale", and the weights of the networks.
type IAF struct {
	Layers    int        // 0 means 2
	Hidden    int        // units of each network; 0 means twice the numbers of the variables, at least 32
	InitScale float64    // standard deviation at the start; 0 means 0.1
	Start     ppl.Values // where variables start; those not named start at 0 of unconstrained space
}

// Build finds the variables of a model on a batch.
func (g IAF) Build(model ppl.Model, batch infer.Batch) (ppl.Model, error) {
	const who = "guide.IAF"
	if err := positive(who, "Layers", &g.Layers, 2, mostLayers); err != nil {
		return nil, err
	}
	l, scale, err := begin(who, model, batch, g.Start, g.InitScale)
	if err != nil {
		return nil, err
	}
	if err := units(who, &g.Hidden, l.dim, g.Layers, l.dim); err != nil {
		return nil, err
	}
	layers := make([]layer, g.Layers)
	for i := range layers {
		layers[i] = newAutoregressive(i, l.dim, g.Hidden)
	}
	return l.flow(layers, scale*math.Pow(1+math.Exp(-gateOffset), float64(g.Layers))), nil
}

// gateOffset is the log-odds of a gate at the start.
const gateOffset = 2

// autoregressive is one layer of an [IAF]. Its masks leave number i the numbers before it (Germain et al. 2015): an
// input of degree j+1 goes to hidden units of at least that degree, and those of degree at most i go to output i.
type autoregressive struct {
	turned                                   bool
	hidden, bias, shift, shift0, gate, gate0 weight
	in, out                                  torch.Tensor // masks, [d, h] and [h, d]
}

func newAutoregressive(i, d, h int) *autoregressive {
	in, out := make([]float64, d*h), make([]float64, h*d)
	for unit := range h {
		degree := 1 + unit%max(d-1, 1)
		for j := range d {
			if degree >= j+1 {
				in[j*h+unit] = 1
			}
			if degree <= j {
				out[unit*d+j] = 1
			}
		}
	}
	n, m := d, h
	return &autoregressive{turned: i > 0, hidden: weights(i, "hidden", 1, n, m), bias: weights(i, "bias", 1.5, m),
		shift: weights(i, "shift", 0.01, m, n), shift0: weights(i, "shift0", 0, n), gate: weights(i, "gate", 0.01, m, n),
		gate0: weights(i, "gate0", 0, n), in: tensor(in, n, m), out: tensor(out, m, n)}
}

func (f *autoregressive) forward(c *ppl.Ctx, x torch.Tensor) (y, logDet torch.Tensor) {
	if f.turned {
		x = reversed(x)
	}
	h := x.MatMul(f.hidden.in(c).Mul(f.in)).Add(f.bias.in(c)).Softplus()
	shift := h.MatMul(f.shift.in(c).Mul(f.out)).Add(f.shift0.in(c))
	gate := h.MatMul(f.gate.in(c).Mul(f.out)).Add(f.gate0.in(c)).Add(gateOffset)
	return x.Mul(gate.Sigmoid()).Add(shift), gate.LogSigmoid().Sum()
}
