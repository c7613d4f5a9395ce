package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// forward is the difference of the ratings for each game of a batch, [n]. "sides" is of shape [n, teams]: 1 for the
// team at home, −1 for the one away, 0 for those that do not play.
func forward(p infer.Params, b infer.Batch) torch.Tensor {
	return b.Get("sides").MatMul(p.Get("rating"))
}

// outer is the log probability of each result, [n], at differences d. "result" is of shape [n, 3], with a 1 for what
// happened. The draw is
//
//	σ(d + 1) − σ(d − 1) = σ(d + 1) σ(1 − d) (1 − e^−2)
func outer(d torch.Tensor, b infer.Batch) torch.Tensor {
	less := func(x torch.Tensor) torch.Tensor { return x.Sub(threshold).LogSigmoid() }
	more := func(x torch.Tensor) torch.Tensor { return x.Add(threshold).LogSigmoid() }
	drawn := more(d).Add(more(d.Neg())).Add(math.Log1p(-math.Exp(-2 * threshold)))
	return torch.Stack(1, less(d), drawn, less(d.Neg())).Mul(b.Get("result")).Sum(1)
}

// batch is one game as tensors.
func (g game) batch() (infer.Batch, error) {
	sides, result := make([]float64, teams), make([]float64, results)
	sides[g.home], sides[g.away], result[g.result] = 1, -1, 1
	x, err := torch.FromSlice(sides, 1, teams)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSlice(result, 1, results)
	return infer.Batch{"sides": x, "result": y}, err
}
