package models_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/models"
)

// A regression line on data of one's own: the mode of the density of w, intercept and sigma.
func ExampleLinearRegression() {
	err := func() error {
		m, err := models.LinearRegression{
			X: [][]float64{{-2}, {-1}, {0}, {1}, {2}},
			Y: []float64{-2.9, -1.2, 1.1, 2.9, 5.1},
		}.Build()
		if err != nil {
			return err
		}
		program, err := m.Compile()
		if err != nil {
			return err
		}
		posterior, err := infer.Sample(context.Background(), program, optim.LBFGS{}, infer.Options{Chains: 1})
		if err != nil {
			return err
		}
		for _, name := range program.Latents() {
			v, err := posterior.Mean(name)
			if err != nil {
				return err
			}
			fmt.Printf("%s %.2f\n", name, v)
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// w [2.01]
	// intercept [1.00]
	// sigma [0.13]
}

// Each model with small data of its own.
func ExampleAll() {
	list, err := models.All()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range list {
		program, err := m.Compile()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %v\n", m.Name, program.Layout())
	}
	// Output:
	// beetles: intercept[] w[1]
	// anscombe: intercept[] sigma[] w[1]
	// eight_schools: mu[] tau[] theta_decentred[8]
	// eight_schools_centred: mu[] tau[] theta[8]
	// salmonella: effect_decentred[18] intercept[] sigma[] w[2]
	// radon: floor_slope[] intercept[] level_decentred[8] sigma[] tau[] uranium_slope[]
	// mixture: loc[2] scale[2] weights[1]
	// lynx: alpha[] beta[2] sigma[]
	// hidden_markov: loc[2] scale[2] transition[2 1]
	// wave_gp: amplitude[] lengthscale[] noise[]
}

// A configuration that cannot be is an error.
func ExampleHiddenMarkov() {
	_, err := models.HiddenMarkov{Y: []float64{1, 2}, States: 1}.Build()
	fmt.Println(err)
	// Output: models.HiddenMarkov: States is 1: it must be at least 2
}
