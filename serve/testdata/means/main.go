// Command means samples an exported model and prints mean, standard deviation and Monte-Carlo error of each number. It
// is the program of docs/deploy.md, which builds with CGO_ENABLED=0.
//
//	means FILE
//	means -predict FILE    prints what the model is at 0 and the predictions of the draws in the file instead
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/serve"
)

func main() {
	predicting := flag.Bool("predict", false, "predict")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: means [-predict] FILE")
		os.Exit(2)
	}
	do := sample
	if *predicting {
		do = predict
	}
	if err := run(flag.Arg(0), do); err != nil {
		fmt.Fprintln(os.Stderr, "means:", err)
		os.Exit(1)
	}
}

// run calls a function with an open file.
func run(path string, do func(io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return do(file)
}

// sample prints the posterior of draws that are made anew.
func sample(file io.Reader) error {
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

// predict prints all bits of numbers.
func predict(file io.Reader) error {
	model, err := serve.Load(file)
	if err != nil {
		return err
	}
	zero, grad := make([]float64, model.Dim()), make([]float64, model.Dim())
	fmt.Printf("%x\n", model.LogDensity(zero, grad))
	rows := [][]float64{grad}
	values := model.Constrain(zero)
	for _, name := range model.Names() {
		rows = append(rows, values[name])
	}
	if likelihood, err := model.LogLikelihood(zero); err == nil {
		for _, name := range slices.Sorted(maps.Keys(likelihood)) {
			rows = append(rows, likelihood[name])
		}
	}
	predictions, err := model.Predict(nil, model.Rows(), nil, 5)
	if err != nil {
		return err
	}
	for _, row := range append(rows, predictions.Rows()...) {
		for _, v := range row {
			fmt.Printf("%x ", v)
		}
		fmt.Println()
	}
	return nil
}
