package vi_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// coin is a model in the language: the probability of heads, with 70 of 100 seen.
func coin(c *ppl.Ctx) {
	p := c.Sample("p", dist.Beta(2, 2))
	c.Observe("heads", dist.Binomial(100, p), c.Data("heads"))
}

// A compiled model needs no guide of its own: the normal distribution is on unconstrained space, and draws
// come as the variables of the model. Diag, Dense and LowRank are what Pyro calls AutoNormal, AutoMultivariateNormal
// and AutoLowRankMultivariateNormal.
func Example() {
	heads := torch.Scalar(70)
	data := infer.Batch{"heads": heads}
	program, err := ppl.Compile(coin, data)
	if err != nil {
		fmt.Println(err)
		return
	}
	posterior, err := infer.Sample(context.Background(), program, vi.Dense{}, infer.Options{Draws: 5000, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := posterior.Mean("p")
	if err != nil {
		fmt.Println(err)
		return
	}
	sd, err := posterior.SD("p")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The posterior is Beta(72, 32), of mean 0.692 and standard deviation 0.045; its log odds are nearly normal.
	fmt.Printf("p: mean %.2f, sd %.3f\n", mean[0], sd[0])
	// Output:
	// p: mean 0.69, sd 0.045
}

// A run ends when the NELBO does not change any more. The state is the distribution.
func ExampleConverged() {
	n := correlated(2) // a normal log density with mean n.m
	until, err := vi.Converged(100, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	start, err := infer.Zeros(n.layout())
	if err != nil {
		fmt.Println(err)
		return
	}
	method := vi.Diag{Optimizer: optim.Adam{LR: infer.Polynomial(0.1, 1, 0.5)}, Samples: 16, Antithetic: true}
	result, err := infer.Run(context.Background(), infer.Handwritten(infer.Sum(n.logPosterior(), 1), start, nil), method,
		infer.Options{Chains: 1, Warmup: 10000, Seed: 1, Until: until})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := result.State.(vi.State)
	mean, err := state.Mean.Values()
	if err != nil {
		fmt.Println(err)
		return
	}
	sd, err := state.SD()
	if err != nil {
		fmt.Println(err)
		return
	}
	sds, err := sd.Site("x")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("ended early: %v\nmean %.1f of %.1f, %d standard deviations\n", result.Updates < 10000, mean, n.m,
		len(sds))
	// Output:
	// ended early: true
	// mean [-0.8 0.4] of [-0.8 0.4], 2 standard deviations
}

// A configuration is checked when it is built. The message names the field, its value and what is allowed.
func ExampleDiag_Build() {
	_, err := vi.Diag{Optimizer: optim.Adam{LR: infer.Constant(0.01)},
		Temperature: infer.Constant(-1)}.Build(infer.Sum(line, 1))
	fmt.Println(err)
	// Output:
	// vi.Diag: Temperature is -1: it must be finite and at least 0
}
