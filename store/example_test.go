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

var sites = []draws.Site{{Name: "mu", Size: 1}, {Name: "theta", Shape: []int{2}, Offset: 1, Size: 2}}

func tempDir() string {
	dir, err := os.MkdirTemp("", "kelvin")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// block has two draws of one chain.
func block(stats ...string) *draws.Draws {
	d, err := draws.New(sites, stats, 1)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 2 {
		if err := d.Append([]float64{0.5, float64(i), 1.5}, []float64{-3, 0.25, 0}[:len(stats)]); err != nil {
			log.Fatal(err)
		}
	}
	return d
}

// A run's draws are written as CSV while it goes, one file for each chain.
func ExampleCSVSink() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	sink := store.CSVSink{
		Base:    filepath.Join(dir, "eight"),
		Options: store.CSVOptions{Model: "eight", Seed: 7, Draws: 2},
	}
	if err := sink.Save("", []int{0}, block("lp", "step_size", "divergent")); err != nil {
		log.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(sink.Base + "_1.csv")
	if err != nil {
		log.Fatal(err)
	}
	from, to := strings.Index(string(text), "lp__"), strings.Index(string(text), "# kelvin_digest")
	fmt.Print(string(text[from:to]))
	// Output:
	// lp__,stepsize__,divergent__,mu,theta.1,theta.2
	// # Adaptation terminated
	// # Step size = 0.25
	// # No free parameters for unit metric
	// -3,0.25,0,0.5,0,1.5
	// -3,0.25,0,0.5,1,1.5
}

// JSON is written for ArviZ, and read whoever wrote it.
func ExampleWriteJSON() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "eight.json")
	err := store.WriteJSON(path, &store.Inference{
		Posterior: block("lp"),
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
	// [lp] [mu theta[0] theta[1]] [0.5 0 1.5]
	// [school] [A B]
}

// A Zarr store grows while all chains run. A run with a name resumes its store: here it keeps one draw of two.
func ExampleZarrSink() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "eight.zarr")
	for _, from := range []int{0, 1} {
		sink := store.ZarrSink{Path: path}
		if err := sink.Save("eight schools, seed 7", []int{from}, block("lp")); err != nil {
			log.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			log.Fatal(err)
		}
	}
	inf, err := store.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(inf.Posterior.Len(0), inf.Posterior.Row(0, 0), inf.Posterior.Row(0, 1))
	// Output: 3 [0.5 0 1.5] [0.5 0 1.5]
}
