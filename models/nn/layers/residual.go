package layers

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Residual adds what a branch makes of its inputs to the inputs (He et al. 2016):
//
//	y = shortcut(x) + body(x)
//
// Without a Shortcut it is x itself. Residuals nest, and both ways are any layers, so that graphs of sums are made of
// them. The sites are called "body.0.weight", "shortcut.0.weight" and so on, after the name of the layer. Dropout
// within takes random numbers, but no masks.
type Residual struct {
	Body     nn.Sequential // the layers beside the shortcut
	Shortcut nn.Sequential
}

// Plan checks that both ways make the same shape.
func (l Residual) Plan(in []int) (nn.Plan, error) {
	if len(l.Body) == 0 {
		return nn.Plan{}, fieldError("Residual", "Body", l.Body, "it must have a layer at least")
	}
	body, err := l.Body.Plan(in)
	if err != nil {
		return nn.Plan{}, fmt.Errorf("body: %w", err)
	}
	shortcut, err := l.Shortcut.Plan(in)
	if err != nil {
		return nn.Plan{}, fmt.Errorf("shortcut: %w", err)
	}
	if !slices.Equal(body.Out, shortcut.Out) {
		return nn.Plan{}, fmt.Errorf("the body makes %v and the shortcut %v: expected one shape: %w", body.Out,
			shortcut.Out,
			infer.ErrConfig)
	}
	count := len(body.Params)
	return nn.Plan{
		Out:     body.Out,
		AnyType: body.AnyType && shortcut.AnyType,
		Params:  append(within("body", inBranch(body.Params)), within("shortcut", shortcut.Params)...),
		Forward: func(c nn.Call, x torch.Tensor) torch.Tensor {
			way := func(name string, plan nn.Plan, params []torch.Tensor) torch.Tensor {
				call := nn.Call{Params: params, Source: c.Source}
				if c.Observe != nil {
					call.Observe = func(param string, v torch.Tensor) { c.Observe(name+"."+param, v) }
				}
				return plan.Forward(call, x)
			}
			return way("shortcut", shortcut, c.Params[count:]).Add(way("body", body, c.Params[:count]))
		},
	}, nil
}

// within puts parameters under a name.
func within(name string, params []nn.Param) []nn.Param {
	out := slices.Clone(params)
	for i := range out {
		out[i].Name, out[i].Layer = name+"."+out[i].Name, name+"."+out[i].Layer
	}
	return out
}

// inBranch numbers the weights of a branch; a gain has the place of the weight before it.
func inBranch(params []nn.Param) []nn.Param {
	out := slices.Clone(params)
	weight := func(p nn.Param) bool { return !p.Bias && !p.Gain && !p.Table && p.Branch.Of == 0 }
	place, of := 0, 0
	for _, p := range out {
		if weight(p) {
			of++
		}
	}
	for i := range out {
		if weight(out[i]) {
			place++
		}
		if place > 0 && !out[i].Bias && !out[i].Table && out[i].Branch.Of == 0 {
			out[i].Branch.Place, out[i].Branch.Of = place, of
		}
	}
	return out
}
