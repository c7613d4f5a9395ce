package cluster_test

import (
	"context"
	"fmt"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// Two workers inside this process, and a server that is started for the run.
func Example() {
	cluster.Register("schools", func(_ []byte, data infer.Batch) (cluster.Spec, error) {
		program, err := ppl.Compile(schools, data)
		return cluster.Spec{Program: program, Method: hmc.NUTS{}}, err
	})
	program, err := ppl.Compile(schools, schoolsData(28))
	if err != nil {
		fmt.Println(err)
		return
	}
	draws, err := cluster.Sample(context.Background(), program, hmc.NUTS{},
		cluster.Options{Options: infer.Options{Warmup: 100, Draws: 50}, Job: "schools", Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(draws.Chains(), draws.Total())
	// Output: 4 200
}
