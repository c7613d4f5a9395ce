package optim_test

import (
	"context"
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/torch"
)

// line is the mean log posterior of a regression line y = a + bx with unit noise and prior N(0, 1) on b.
func line(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	intercept, slope := p.Get("a").T(), p.Get("b").T()
	x, y := b.Get("x").T(), b.Get("y").T()
	residuals := y.MustSub(x.MustMul(slope, false).MustAdd(intercept, false), false)
	logLikelihood := residuals.MustSquare(false).MustMean(gotch.Double, false)
	logPrior := slope.MustSquare(false).MustMulScalar(ts.FloatScalar(1.0/4), false)
	return torch.Of(logLikelihood.MustAdd(logPrior, false).MustMulScalar(ts.FloatScalar(-0.5), false)), nil
}

// The mode of a posterior (MAP), with a step size that falls to zero.
func Example() {
	x, err := torch.FromSlice([]float64{-1, 0, 1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	y, err := torch.FromSlice([]float64{-1, 1, 3, 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	layout, err := infer.NewLayout(infer.Shapes{"a": {}, "b": {}})
	if err != nil {
		fmt.Println(err)
		return
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		fmt.Println(err)
		return
	}
	program := infer.Handwritten(infer.Mean(line, 4), start, infer.Batch{"x": x, "y": y})
	mode, err := infer.Sample(context.Background(), program, optim.Adam{LR: infer.Linear(0.1, 0, 0, 500)},
		infer.Options{Chains: 1, Warmup: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	intercept, err := mode.Mean("a")
	if err != nil {
		fmt.Println(err)
		return
	}
	slope, err := mode.Mean("b")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Without the prior the line is y = 1 + 2x. The prior adds 1 to Σ(x − x̄)² = 5: b = 2·5/6, and a = ȳ − bx̄ = 2 − b/2.
	fmt.Printf("a = %.4f, b = %.4f\n", intercept[0], slope[0])
	// Output:
	// a = 1.1667, b = 1.6667
}

// A configuration is checked when it is built. The message names the field, its value and what is allowed.
func ExampleSGD_Build() {
	_, err := optim.SGD{LR: infer.Constant(0.1), Nesterov: true}.Build(infer.Sum(line, 1))
	fmt.Println(err)
	// Output:
	// optim.SGD: Nesterov is true: it needs Momentum above 0 and Dampening 0
}
