package sgmcmc_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
)

// Training with SGD and momentum becomes sampling when the temperature is raised: at T = 0 the two
// are the same updates.
func ExampleSymplecticSGHMC() {
	lr, momentum := 0.05, 0.8
	for _, method := range []infer.Method{
		optim.SGD{LR: infer.Constant(lr), Momentum: momentum},
		sgmcmc.SymplecticSGHMC{LR: infer.Constant(lr), Momentum: infer.Constant(momentum),
			Temperature: infer.Constant(0)},
		sgmcmc.SymplecticSGHMC{LR: infer.Constant(lr), Momentum: infer.Constant(momentum)},
	} {
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
		fmt.Printf("mean %.2f, sd %.1f\n", rows[0].Mean, rows[0].SD)
	}
	// Output:
	// mean 0.58, sd 0.0
	// mean 0.58, sd 0.0
	// mean 0.61, sd 0.6
}
