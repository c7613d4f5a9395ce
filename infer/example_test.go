package infer_test

import (
	"context"
	"fmt"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The example model: y ~ N(mu, 1) with prior mu ~ N(0, 1), as the mean over data of the log posterior. With the four
// data 1, 2, 3, 4 the posterior is N(10/5, 1/5).
const exampleData = 4

func exampleModel(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	mu := p.Get("mu").T()
	r := b.Get("y").Sub(mu).T()
	logLikelihood := r.MustMul(r, false).MustMean(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5), false)
	logPrior := mu.MustMul(mu, false).MustMulScalar(ts.FloatScalar(-0.5/exampleData), false)
	return torch.Of(logLikelihood.MustAdd(logPrior, false)), nil
}

func exampleStart() (infer.Params, infer.Batch) {
	layout, err := infer.NewLayout(infer.Shapes{"mu": {}})
	if err != nil {
		panic(err)
	}
	y := torch.New([]float64{1, 2, 3, 4})
	return torch.Must(infer.Zeros(layout)), infer.Batch{"y": y}
}

// The loop in hand: build, init, update.
func Example() {
	start, batch := exampleStart()
	transform, err := optim.SGD{LR: infer.Constant(0.4)}.Build(infer.Sum(exampleModel, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := transform.Init(start)
	for step := 0; step < 40 && err == nil; step++ {
		state, _, err = transform.Update(state, batch)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	mu, _ := state.Position().Site("mu")
	fmt.Printf("the mode is %.4f after %d updates\n", mu[0], state.Steps())
	// Output: the mode is 2.0000 after 40 updates
}

func ExampleRun() {
	start, batch := exampleStart()
	program := infer.Handwritten(infer.Mean(exampleModel, exampleData), start, batch)
	result, err := infer.Run(context.Background(), program, sgmcmc.SGLD{LR: infer.Constant(0.05)},
		infer.Options{Chains: 16, Warmup: 500, Draws: 500, Thin: 5, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, _ := result.Draws.Mean("mu")
	sd, _ := result.Draws.SD("mu")
	fmt.Printf("%d chains, %d draws each: mean %.1f, variance %.1f\n", result.Draws.Chains(), result.Draws.MinLen(),
		mean[0], sd[0]*sd[0])
	// Output: 16 chains, 500 draws each: mean 2.0, variance 0.2
}

// Cancelling a run, here after ten updates, gives what it has so far.
func ExampleRun_cancelled() {
	start, batch := exampleStart()
	program := infer.Handwritten(infer.Mean(exampleModel, exampleData), start, batch)
	ctx, cancel := context.WithCancel(context.Background())
	watch := infer.ObserverFunc(func(p infer.Progress) {
		if p.Step == 10 {
			cancel()
		}
	})
	result, err := infer.Run(ctx, program, optim.Adam{LR: infer.Constant(0.1)},
		infer.Options{Chains: 1, Warmup: infer.None, Draws: 1000, Observer: watch})
	fmt.Println(err)
	fmt.Println(result.Draws.MinLen(), "draws")
	// Output:
	// infer.Run: after 10 of 1000 updates: context canceled
	// 10 draws
}

// Only the last layer of a model is inferred; the rest is held where it is.
func ExampleSubspace() {
	layout, _ := infer.NewLayout(infer.Shapes{"features": {3}, "last": {2}})
	full, _ := infer.NewParams(layout, []float64{1, 2, 3, 40, 50})
	model := func(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
		return torch.Of(p.Get("features").T().MustSum(gotch.Double,
			false).MustMul(p.Get("last").T().MustSum(gotch.Double, false), false)), nil
	}
	restricted, start, embed, err := infer.Subspace(model, full, layout.Except("features")...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("inferred:", start.Layout)

	transform, _ := optim.SGD{LR: infer.Constant(0.5)}.Build(infer.Sum(restricted, 1))
	state, _ := transform.Init(start)
	state, info, err := transform.Update(state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	whole, _ := embed(state.Position())
	values, _ := whole.Values()
	fmt.Println("log posterior:", info.LogPosterior[0])
	fmt.Println("moved to:", values)
	// Output:
	// inferred: last[2]
	// log posterior: 540
	// moved to: [1 2 3 43 53]
}

func ExampleMinibatches() {
	x := torch.New([]float64{0, 10, 20, 30, 40})
	batches, err := infer.Minibatches(infer.Batch{"x": x}, infer.MinibatchOptions{Size: 2, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 6 {
		at := batches.Position()
		batch, err := batches.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("epoch", at.Epoch, "batch", at.Index, torch.Must(torch.ToSlice[float64](batch["x"])))
	}
	// Output:
	// epoch 0 batch 0 [10 0]
	// epoch 0 batch 1 [30 40]
	// epoch 0 batch 2 [20]
	// epoch 1 batch 0 [10 0]
	// epoch 1 batch 1 [20 30]
	// epoch 1 batch 2 [40]
}

// A step size that warms up, falls along cosines, and stays small in the end; a temperature that comes later.
func ExampleSchedule() {
	lr := infer.Cosine(0.8, 4).Warmup(2).Then(8, infer.Constant(0.1))
	temperature := infer.Linear(0, 1, 4, 8)
	for step := range 10 {
		fmt.Printf("%d: lr %.2f, temperature %.2f\n", step, lr(step), temperature(step))
	}
	// Output:
	// 0: lr 0.40, temperature 0.00
	// 1: lr 0.68, temperature 0.00
	// 2: lr 0.40, temperature 0.00
	// 3: lr 0.12, temperature 0.00
	// 4: lr 0.80, temperature 0.00
	// 5: lr 0.68, temperature 0.25
	// 6: lr 0.40, temperature 0.50
	// 7: lr 0.12, temperature 0.75
	// 8: lr 0.10, temperature 1.00
	// 9: lr 0.10, temperature 1.00
}

func ExampleLayout() {
	layout, err := infer.NewLayout(infer.Shapes{"w": {2, 2}, "intercept": {}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(layout, layout.Dim(), layout.At(3))
	// Output: intercept[] w[2 2] 5 w[1,0]
}
