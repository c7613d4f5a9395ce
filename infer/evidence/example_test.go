package evidence_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// heights is a model of a mean with a normal prior, of known evidence: log N(y; 0, I + s² 1 1ᵀ).
func heights(s float64) (*ppl.Program, error) {
	y, err := torch.FromSlice([]float64{0.8, 1.1, 1.6, 0.5})
	if err != nil {
		return nil, err
	}
	return ppl.Compile(func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(0, s))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, 1), c.Data("y")) })
	}, infer.Batch{"y": y})
}

// Two priors of one model, compared by sequential Monte Carlo. The exact log Bayes factor is 1.123.
func ExampleBayesFactor() {
	ctx := context.Background()
	var results []*evidence.Result
	for _, s := range []float64{1, 5} {
		program, err := heights(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		z, err := evidence.Run(ctx, program, evidence.SMC{}, infer.Options{Seed: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		results = append(results, z)
	}
	log, se, err := evidence.BayesFactor(results[0], results[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	p, _, err := evidence.Probabilities(results, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("log Bayes factor %.1f, error below 0.05: %t, probability of the narrow prior %.1f\n", log, se < 0.05, p[0])
	// Output:
	// log Bayes factor 1.1, error below 0.05: true, probability of the narrow prior 0.8
}

// A bridge from the draws of NUTS. The exact value is −5.211.
func ExampleBridge() {
	program, err := heights(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := infer.Run(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	z, err := evidence.Bridge(program, run.Unconstrained, evidence.BridgeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("log Z = %.1f, error below 0.01: %t, warnings: %d\n", z.LogZ, z.SE < 0.01, len(z.Warnings))
	// Output:
	// log Z = -5.2, error below 0.01: true, warnings: 0
}
