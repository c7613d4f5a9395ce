package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
)

// predict gives each row of a table its probability under every draw.
func predict(f *fitted, table *data.Table) ([][]float64, error) {
	frame, err := f.design.Frame(table)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, frame.Rows)
	for c := range f.posterior.Chains() {
		for s := range f.posterior.Len(c) {
			row := f.posterior.Row(c, s) // the intercept, then the weights: sites are in the order of their names
			for i, x := range frame.X {
				out[i] = append(out[i], probability(row[0], row[1:], x))
			}
		}
	}
	return out, nil
}

const visitors = `pregnant,glucose,mass,pedigree,age
0,90,22.5,0.25,23
2,130,31.0,0.40,35
4,175,38.5,0.90,48
`

// newPatients are three who have no diagnosis yet, with intervals of their probabilities.
func newPatients(out io.Writer, f *fitted) error {
	table, err := data.CSV{Name: "visitors"}.Read(strings.NewReader(visitors))
	if err != nil {
		return err
	}
	p, err := predict(f, table)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i := range p {
		low, high := interval(p[i])
		fmt.Fprintf(out, "visitor %d: %2.0f %%, from %2.0f to %2.0f %%\n", i+1, 100*mean(p[i]), 100*low, 100*high)
	}
	return nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// The costs of a decision, in units of an examination.
const (
	examination = 1.0
	missed      = 5.0 // a diabetes that nobody looks for
)

// decide examines the patients of the test data for whom that has the smaller expected cost, and counts what it costs.
func decide(out io.Writer, f *fitted, test *data.Table) error {
	p, err := predict(f, test)
	if err != nil {
		return err
	}
	frame, err := f.design.Frame(test)
	if err != nil {
		return err
	}
	cost := func(examine func(p float64) bool) float64 {
		sum := 0.0
		for i, ill := range frame.Y {
			if examine(mean(p[i])) {
				sum += examination
			} else {
				sum += missed * ill
			}
		}
		return sum / float64(len(p))
	}
	fmt.Fprintln(out, "\ncost of a patient in the test data")
	fmt.Fprintf(out, "examine nobody        %.2f\n", cost(func(float64) bool { return false }))
	fmt.Fprintf(out, "examine everybody     %.2f\n", cost(func(float64) bool { return true }))
	fmt.Fprintf(out, "examine above 50 %%    %.2f\n", cost(func(p float64) bool { return p > 0.5 }))
	fmt.Fprintf(out, "smaller expected cost %.2f\n", cost(func(p float64) bool { return examination < missed*p }))
	return nil
}
