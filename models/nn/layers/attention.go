package layers

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Attention is self-attention with several heads (Vaswani et al. 2017): inputs [steps, features] become [steps,
// features]. Each head has features/Heads of them,
//
//	q, k, v = W_q x + b_q, W_k x + b_k, W_v x + b_v
//	head    = softmax(q kᵀ / √(features/Heads)) v
//	y       = W_o [head_1, ..., head_Heads] + b_o
//
// With Causal a step sees itself and those before it. The sites are "query.weight", "key.weight", "value.weight" and
// "output.weight", [features, features], with their biases, [features]. Without Heads there is one.
type Attention struct {
	Heads  int // 0 means 1
	Causal bool
	NoBias bool
}

// Plan checks that the heads divide the features.
func (l Attention) Plan(in []int) (nn.Plan, error) {
	if len(in) != 2 {
		return nn.Plan{}, misfit(in, "[steps, features]")
	}
	steps, features, heads := in[0], in[1], l.Heads
	if heads == 0 {
		heads = 1
	}
	if heads < 1 || features%heads != 0 {
		return nn.Plan{}, fieldError("Attention", "Heads", l.Heads, fmt.Sprintf("it must divide the %d features",
			features))
	}
	plan := nn.Plan{Out: in}
	linear, err := nn.Linear{Out: features, NoBias: l.NoBias}.Plan(in)
	if err != nil {
		return nn.Plan{}, err
	}
	each := len(linear.Params)
	for _, name := range []string{"query", "key", "value", "output"} {
		for _, p := range linear.Params {
			p.Name = name + "." + p.Name
			plan.Params = append(plan.Params, p)
		}
	}
	size := features / heads
	split := func(x torch.Tensor) torch.Tensor { // [n, heads, steps, size]
		return torch.Of(x.Reshape(-1, steps, heads, size).T().MustPermute([]int64{0, 2, 1, 3}, false))
	}
	plan.Forward = func(c nn.Call, x torch.Tensor) torch.Tensor {
		project := func(i int, x torch.Tensor) torch.Tensor {
			return linear.Forward(nn.Call{Params: c.Params[i*each : (i+1)*each]}, x)
		}
		q, k, v := split(project(0, x)), split(project(1, x)), split(project(2, x))
		scores := q.MatMul(k.Transpose()).Mul(1 / math.Sqrt(float64(size)))
		if l.Causal {
			scores = scores.Add(future(x, steps))
		}
		heads := torch.Of(scores.Softmax(-1).MatMul(v).T().MustPermute([]int64{0, 2, 1, 3}, false))
		return project(3, heads.Reshape(-1, steps, features))
	}
	return plan, nil
}

// future is −∞ above the diagonal and 0 elsewhere, in the type and on the device of x.
func future(x torch.Tensor, steps int) torch.Tensor {
	dtype, device := torch.Must(torch.DTypeOfTensor(x)), torch.Must(torch.DeviceOf(x))
	never := ts.MustFull([]int64{int64(steps), int64(steps)}, ts.FloatScalar(math.Inf(-1)), gotch.Double,
		gotch.CPU).MustTriu(1,
		false)
	return torch.Must(torch.To(torch.Of(never), device, dtype))
}

// Position adds a learned vector to each step of inputs [steps, features]. Its site is "weight", [steps, features].
type Position struct{}

// Plan takes [steps, features].
func (Position) Plan(in []int) (nn.Plan, error) {
	if len(in) != 2 {
		return nn.Plan{}, misfit(in, "[steps, features]")
	}
	return nn.Plan{
		Out:     in,
		Params:  []nn.Param{{Name: "weight", Shape: in, FanIn: 1, FanOut: in[1], Default: nn.Normal(1)}},
		Forward: func(c nn.Call, x torch.Tensor) torch.Tensor { return x.Add(c.Params[0]) },
	}, nil
}

// GELU is x Φ(x) of each element, with the distribution function of the normal law (Hendrycks and Gimpel 2016).
type GELU struct{}

// Plan takes any shape.
func (GELU) Plan(in []int) (nn.Plan, error) {
	return nn.Plan{Out: in, Forward: func(_ nn.Call, x torch.Tensor) torch.Tensor {
		return x.Mul(x.Mul(math.Sqrt2 / 2).Erf().Add(1)).Mul(0.5)
	}}, nil
}
