package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Linear is y = W x + b along the last axis: inputs [..., In] become [..., Out]. Its sites are "weight", [Out, In], and
// "bias", [Out].
type Linear struct {
	Out    int
	In     int // 0 takes what comes
	NoBias bool
}

// Plan checks the sizes.
func (l Linear) Plan(in []int) (Plan, error) {
	if len(in) == 0 {
		return Plan{}, misfit(in, "[..., features]")
	}
	features := in[len(in)-1]
	if err := cmp.Or(least("Linear", "Out", l.Out, 1), matches("Linear", "In", l.In, features, in)); err != nil {
		return Plan{}, err
	}
	start := Uniform(1 / math.Sqrt(float64(features)))
	out := slices.Clone(in)
	out[len(out)-1] = l.Out
	return Plan{
		Out: out,
		Params: withBias(
			!l.NoBias,
			Param{Name: "weight", Shape: []int{l.Out, features}, FanIn: features, FanOut: l.Out, Default: start},
		),
		Forward: func(c Call, x torch.Tensor) torch.Tensor {
			if l.NoBias {
				return x.MatMul(c.Params[0].Transpose())
			}
			return torch.Of(ts.MustLinear(x.T(), c.Params[0].T(), c.Params[1].T()))
		},
	}, nil
}

// withBias adds a bias for each of a weight's outputs.
func withBias(bias bool, weight Param) []Param {
	if !bias {
		return []Param{weight}
	}
	b := weight
	b.Name, b.Shape, b.Bias = "bias", weight.Shape[:1], true
	return []Param{weight, b}
}

// Embedding looks up a row of its weight for each token: inputs [...] of whole numbers from 0 to Num − 1 become [...,
// Dim]. Inputs are int64 (or int32) tensors. Its site is "weight", [Num, Dim].
//
// A token is a vector with one 1 among zeros, so that the fan-in is 1. A token outside the range is an error of
// libtorch; on a GPU it ends the use of the device, so check data from outside first.
type Embedding struct {
	Num int // of different tokens
	Dim int
}

// Plan checks the sizes.
func (l Embedding) Plan(in []int) (Plan, error) {
	if err := cmp.Or(least("Embedding", "Num", l.Num, 1), least("Embedding", "Dim", l.Dim, 1)); err != nil {
		return Plan{}, err
	}
	return Plan{
		Out: append(slices.Clone(in), l.Dim),
		Params: []Param{
			{Name: "weight", Shape: []int{l.Num, l.Dim}, FanIn: 1, FanOut: l.Dim, Table: true, Default: Normal(1)},
		},
		AnyType: true,
		Forward: func(c Call, x torch.Tensor) torch.Tensor {
			if dtype := x.T().DType(); dtype != gotch.Int64 && dtype != gotch.Int {
				torch.Must(x, fmt.Errorf("the tokens are %v: expected int64: %w", dtype, infer.ErrConfig))
			}
			return torch.Of(ts.MustEmbedding(c.Params[0].T(), x.T(), -1, false, false))
		},
	}, nil
}
