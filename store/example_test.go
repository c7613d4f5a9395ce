package store_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/store"
)

var sites = []draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int64{2}, Offset: 1, Size: 2}}

func tempDir() string {
	dir, err := os.MkdirTemp("", "kelvin")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// A chain is written as CSV while it runs.
func ExampleCreateCSV() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "eight_1.csv")
	w, err := store.CreateCSV(path, sites, []string{"lp", "step_size", "divergent"}, store.CSVOptions{Model: "eight", Seed: 7, Draws: 2})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Adapted(store.Adaptation{StepSize: 0.25, Diagonal: []float64{1, 2, 2}}); err != nil {
		log.Fatal(err)
	}
	for i := range 2 {
		if err := w.Append([]float64{0.5, float64(i), 1.5}, []float64{-3, 0.25, 0}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text[strings.Index(string(text), "lp__"):]))
	// Output:
	// lp__,stepsize__,divergent__,mu,theta.1,theta.2
	// # Adaptation terminated
	// # Step size = 0.25
	// # Diagonal elements of inverse mass matrix:
	// # 1, 2, 2
	// -3,0.25,0,0.5,0,1.5
	// -3,0.25,0,0.5,1,1.5
}

// JSON is written for ArviZ, and read whoever wrote it.
func ExampleWriteJSON() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	d, err := draws.New(sites, []string{"lp", "divergent"}, 1)
	if err != nil {
		log.Fatal(err)
	}
	if err := d.Append([]float64{0.5, 1, 1.5}, []float64{-3, 0}); err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "eight.json")
	err = store.WriteJSON(path, &store.Inference{
		Posterior: d,
		Coords:    map[string][]any{"school": {"A", "B"}}, Dims: map[string][]string{"theta": {"school"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	inf, err := store.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(inf.Posterior.Stats(), inf.Posterior.Names(), inf.Posterior.Row(0, 0))
	fmt.Println(inf.Dims["theta"], inf.Coords["school"])
	// Output:
	// [lp divergent] [mu theta[0] theta[1]] [0.5 1 1.5]
	// [school] [A B]
}

// A Zarr store grows while all chains run, and can be gone on with.
func ExampleAppendZarr() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "eight.zarr")
	w, err := store.CreateZarr(path, sites, []string{"lp"}, 2, store.ZarrOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for c := range 2 {
		if err := w.Append(c, []float64{0.5, 1, 1.5}, []float64{-3}); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	w, err = store.AppendZarr(path, sites, []string{"lp"}, 2, store.ZarrOptions{}, -1)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Append(0, []float64{0.25, 2, 2.5}, []float64{-4}); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	inf, err := store.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(inf.Posterior.Len(0), inf.Posterior.Len(1), inf.Posterior.Row(0, 1))
	// Output: 2 1 [0.25 2 2.5]
}
