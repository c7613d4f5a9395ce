package sgmcmc_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
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
		transform, err := method.Build(infer.Sum(coins, 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := oldrun.Run(context.Background(), transform, origin(), infer.Full(throws()),
			oldrun.Config{Steps: 1200, BurnIn: 200, Thin: 10, Chains: 64, Seed: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		rows, err := result.Draws.Summary()
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
