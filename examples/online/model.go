package main

import (
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// forward is the difference of the ratings for each game of a batch, [n]. "sides" is of shape [n, teams]: 1 for the
// team at home, −1 for the one away, 0 for those that do not play.
func forward(p infer.Params, b infer.Batch) *ts.Tensor {
	return b.Get("sides").T().MustMv(p.Get("rating").T(), false)
}

// outer is the log probability of each result, [n], at differences d. "result" is of shape [n, 3], with a 1 for what
// happened. The draw is
//
//	σ(d + 1) − σ(d − 1) = σ(d + 1) σ(1 − d) (1 − e^−2)
func outer(d *ts.Tensor, b infer.Batch) *ts.Tensor {
	minus := d.MustNeg(false)
	less := func(x *ts.Tensor) *ts.Tensor {
		return x.MustSubScalar(ts.FloatScalar(threshold), false).MustLogSigmoid(false)
	}
	more := func(x *ts.Tensor) *ts.Tensor {
		return x.MustAddScalar(ts.FloatScalar(threshold), false).MustLogSigmoid(false)
	}
	drawn := more(d).MustAdd(more(minus), false).MustAddScalar(ts.FloatScalar(math.Log1p(-math.Exp(-2*threshold))), false)
	logs := ts.MustStack([]*ts.Tensor{less(d), drawn, less(minus)}, 1)
	return logs.MustMul(b.Get("result").T(), false).MustSumDimIntlist([]int64{1}, false, logs.DType(), false)
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
