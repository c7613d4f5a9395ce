package hmc_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
)

func ExampleMAMS() {
	schools, err := models.EightSchools()
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := schools.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := infer.Run(context.Background(), program, hmc.MAMS{}, infer.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	detail := run.Detail.(*hmc.Detail)
	fmt.Println(run.Draws.Total(), "draws,", len(detail.StepSizes), "step sizes")
	// Output:
	// 4000 draws, 4 step sizes
}
