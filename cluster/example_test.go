package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
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

// The draws go to a Zarr store block by block; this process does not keep them.
func ExampleOptions() {
	dir, err := os.MkdirTemp("", "kelvin-example-*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := ppl.Compile(schools, schoolsData(28))
	if err != nil {
		fmt.Println(err)
		return
	}
	sink := &store.ZarrSink{Path: filepath.Join(dir, "draws.zarr")}
	o := infer.Options{Warmup: 100, Draws: 50, Save: sink.Save, Discard: true}
	_, err = cluster.Sample(context.Background(), program, hmc.NUTS{}, cluster.Options{Options: o, Job: "schools"})
	if err := errors.Join(err, sink.Close()); err != nil {
		fmt.Println(err)
		return
	}
	saved, err := store.Open(sink.Path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(saved.Posterior.Chains(), saved.Posterior.Total())
	// Output: 4 200
}
