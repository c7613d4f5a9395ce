package sgmcmc_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// coins is the posterior of the log odds of a coin that showed heads in 7 of 10 throws, with prior N(0, 1).
func coins(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	odds, y := p.Get("odds").T(), b.Get("y").T() // y is 1 for heads and -1 for tails
	logPrior := odds.MustSquare(false).MustMulScalar(ts.FloatScalar(-0.5), false)
	logLikelihood := odds.MustMul(y, false).MustLogSigmoid(false).MustSum(gotch.Double, false)
	return torch.Of(logPrior.MustAdd(logLikelihood, false)), nil
}

// throws are the data of coins.
func throws() infer.Batch {
	return infer.Batch{"y": torch.Of(vector([]float64{1, 1, 1, 1, 1, 1, 1, -1, -1, -1}))}
}

// origin is the point where the log odds are 0.
func origin() infer.Params { return params(layout(infer.Shapes{"odds": {}}), []float64{0}, 0) }

func Example() {
	// Any method fits here: only this value changes.
	var method infer.Method = sgmcmc.SGHMC{LR: infer.Constant(0.1), Alpha: infer.Constant(2)}

	draws, err := infer.Sample(context.Background(), infer.Handwritten(infer.Sum(coins, 1), origin(), throws()),
		method, infer.Options{Chains: 64, Warmup: 200, Draws: 100, Thin: 10, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := draws.Summary()
	if err != nil {
		fmt.Println(err)
		return
	}
	// The posterior, by numerical integration, has mean 0.61 and standard deviation 0.56.
	fmt.Printf("%s: mean %.1f, sd %.1f\n", rows[0].Name, rows[0].Mean, rows[0].SD)
	// Output:
	// odds: mean 0.6, sd 0.6
}

// At temperature 0 the sampler is gradient ascent: it ends at the mode, where the gradient is zero.
func ExampleSGLD() {
	transform, err := sgmcmc.SGLD{LR: infer.Constant(0.2), Temperature: infer.Constant(0)}.Build(infer.Sum(coins, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := infer.Init(transform, origin(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var info infer.Info
	for range 100 {
		if state, info, err = transform.Update(state, throws()); err != nil {
			fmt.Println(err)
			return
		}
	}
	odds, err := state.Position().Site("odds")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The mode solves 7 − 10·σ(odds) − odds = 0.
	fmt.Printf("mode %.4f after %d updates, gradient below 1e-12: %v\n", odds[0], state.Steps(),
		info.GradNorm[0] < 1e-12)
	// Output:
	// mode 0.5828 after 100 updates, gradient below 1e-12: true
}

// A configuration is checked when it is built. The message names the field, its value and what is allowed.
func ExampleSGHMC_Build() {
	_, err := sgmcmc.SGHMC{LR: infer.Constant(0.1), Temperature: infer.Constant(-1)}.Build(infer.Sum(coins, 1))
	fmt.Println(err)
	// Output:
	// sgmcmc.SGHMC: Temperature is -1: it must be finite and at least 0
}
