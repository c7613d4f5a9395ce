// Command means samples an exported model and prints mean, standard deviation and Monte-Carlo error of each number. It
// is the program of docs/deploy.md, which builds with CGO_ENABLED=0.
//
//	means FILE
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/serve"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: means FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "means:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	model, err := serve.Load(file)
	if err != nil {
		return err
	}
	result, err := serve.Sample(context.Background(), model, kernel.Options{Seed: 1})
	if err != nil {
		return err
	}
	table, err := diag.Summary(result.Draws, diag.SummaryOptions{})
	if err != nil {
		return err
	}
	for _, r := range table.Rows {
		fmt.Printf("%s %.6g %.6g %.6g\n", r.Name, r.Mean, r.SD, r.MCSEMean)
	}
	return nil
}
