package nn

import (
	"cmp"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// LSTM is one layer of long short-term memory (Hochreiter & Schmidhuber 1997; with forget gates, Gers et al. 2000):
// from inputs [steps, In] it makes its last hidden state, [Hidden], or all of them, [steps, Hidden]. It begins at h = c
// = 0:
//
//	i, f, g, o = W_ih x_t + b_ih + W_hh h + b_hh
//	c ← σ(f) c + σ(i) tanh(g)
//	h ← σ(o) tanh(c)
//
// Its sites are "weight_ih", [4 Hidden, In], "weight_hh", [4 Hidden, Hidden], and "bias_ih" and "bias_hh", [4 Hidden],
// in the order i, f, g, o: PyTorch's. Only the sum of the two biases matters; with OneBias there is "bias_ih" alone, as
// in Keras, which is 4 Hidden parameters fewer.
type LSTM struct {
	Hidden  int
	In      int // 0 takes what comes
	OneBias bool
	All     bool // give the hidden states of all steps
}

// Plan checks the sizes.
func (l LSTM) Plan(in []int) (Plan, error) {
	if len(in) != 2 {
		return Plan{}, misfit(in, "[steps, features]; nn.Transpose turns [features, steps] round")
	}
	if err := cmp.Or(least("LSTM", "Hidden", l.Hidden, 1), matches("LSTM", "In", l.In, in[1], in)); err != nil {
		return Plan{}, err
	}
	start, gates := Uniform(1/math.Sqrt(float64(l.Hidden))), 4*l.Hidden
	param := func(name string, fanIn int, bias bool, shape ...int) Param {
		return Param{Name: name, Shape: shape, FanIn: fanIn, FanOut: gates, Bias: bias, Default: start}
	}
	params := []Param{
		param("weight_ih", in[1], false, gates, in[1]),
		param("weight_hh", l.Hidden, false, gates, l.Hidden),
		param("bias_ih", in[1], true, gates),
	}
	if !l.OneBias {
		params = append(params, param("bias_hh", l.Hidden, true, gates))
	}
	out := []int{l.Hidden}
	if l.All {
		out = []int{in[0], l.Hidden}
	}
	return Plan{Out: out, Params: params, Forward: l.forward}, nil
}

func (l LSTM) forward(call Call, x torch.Tensor) torch.Tensor {
	bias := call.Params[2]
	if !l.OneBias {
		bias = bias.Add(call.Params[3])
	}
	// What the inputs give to the gates is one product for all steps, [steps, n, 4 Hidden].
	inputs := ts.MustLinear(x.T().MustTranspose(0, 1, false), call.Params[0].T(), bias.T()).MustUnbind(0, false)
	recurrent := call.Params[1].Transpose().T()
	var h, c torch.Tensor
	var all []torch.Tensor
	for t, gates := range inputs {
		if t > 0 {
			gates = gates.MustAddmm(h.T(), recurrent, false)
		}
		part := gates.MustChunk(4, -1, false)
		i, g, o := part[0].MustSigmoid(false), part[2].MustTanh(false), part[3].MustSigmoid(false)
		if t == 0 {
			c = torch.Of(i.MustMul(g, false))
		} else {
			c = torch.Of(part[1].MustSigmoid(false).MustMul(c.T(), false).MustAddcmul(i, g, false))
		}
		h = torch.Of(o.MustMul(c.Tanh().T(), false))
		if l.All {
			all = append(all, h)
		}
	}
	if l.All {
		return torch.Stack(1, all)
	}
	return h
}
