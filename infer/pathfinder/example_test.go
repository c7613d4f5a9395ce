package pathfinder_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/pathfinder"
	"github.com/kelvin-ppl/kelvin/models"
)

func Example() {
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
	ctx := context.Background()
	run, err := infer.Run(ctx, program, pathfinder.Pathfinder{}, infer.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	detail := run.Detail.(*pathfinder.Detail)
	fmt.Println(run.Draws.Total(), "draws of", len(detail.Paths), "chains, each from", len(detail.Paths[0]), "paths")
	// Output:
	// 4000 draws of 4 chains, each from 4 paths
}
