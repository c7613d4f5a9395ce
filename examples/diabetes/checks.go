package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// priorCheck tells what a prior believes before it has seen a diagnosis: of how many patients it is almost certain.
func priorCheck(out io.Writer, scale float64, train *data.Table) error {
	design, err := linear.Fit(train)
	if err != nil {
		return err
	}
	frame, err := design.Frame(train)
	if err != nil {
		return err
	}
	tensors, err := batch.Of(frame)
	if err != nil {
		return err
	}
	prior, err := ppl.Predictive{Model: regression(scale), Batch: tensors, Seed: 1}.Prior(2000)
	if err != nil {
		return err
	}
	intercept, err := torch.ToSlice[float64](prior["intercept"])
	if err != nil {
		return err
	}
	w, err := torch.ToSlice[float64](prior["w"])
	if err != nil {
		return err
	}
	certain, d := 0, len(frame.Names)
	for s, b := range intercept {
		for _, x := range frame.X {
			if p := probability(b, w[s*d:(s+1)*d], x); p < 0.01 || p > 0.99 {
				certain++
			}
		}
	}
	share := float64(certain) / float64(len(intercept)*frame.Rows)
	fmt.Fprintf(out, "prior sd %2.0f: certain of %.0f %% of the patients\n", scale, 100*share)
	return nil
}

// probability is σ(b + x·w).
func probability(b float64, w, x []float64) float64 {
	for j := range x {
		b += w[j] * x[j]
	}
	return 1 / (1 + math.Exp(-b))
}

// steps are differences of the columns that people speak of.
var steps = map[string]float64{"glucose": 10, "mass": 5, "pedigree": 0.5, "pregnant": 1, "age": 10}

// coefficients prints the posterior of the weights, for one standard deviation of each column, and the odds ratio of a
// step in the units of the file.
func coefficients(out io.Writer, f *fitted) error {
	table, err := diag.Summary(f.posterior, diag.SummaryOptions{
		Sites: f.program.Latents(), Quantiles: []float64{0.05, 0.95}, // the sites in the order of the model
	})
	if err != nil {
		return err
	}
	names := append([]string{"intercept"}, f.design.Names()...)
	for j := range table.Rows {
		table.Rows[j].Name = names[j] // glucose, and not w[0]
	}
	original, err := f.design.Draws(f.posterior, "intercept", "w")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-9s  %5s  %5s  %5s  %5s  odds ratio of a step\n", "", "mean", "5 %", "95 %", "R-hat")
	for _, row := range table.Rows {
		mean, err := original.Mean(row.Name)
		if err != nil {
			return err
		}
		ratio := ""
		if step := steps[row.Name]; step > 0 {
			ratio = fmt.Sprintf("  %.2f of %v", math.Exp(step*mean[0]), step)
		}
		fmt.Fprintf(out, "%-9s  %5.2f  %5.2f  %5.2f  %5.2f%s\n", row.Name, row.Mean, row.Quantiles[0], row.Quantiles[1],
			row.RHat, ratio)
	}
	return nil
}

// ageCheck is a posterior predictive check: the number of diagnoses by age, in the data and in replicated data.
func ageCheck(out io.Writer, name string, f *fitted, train *data.Table) error {
	replicated, err := f.program.Predict(f.posterior, 1)
	if err != nil {
		return err
	}
	ages, err := train.Column("age")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s: diagnoses by age, in the data and in 90 %% of replications\n", name)
	for _, band := range [][2]float64{{20, 25}, {25, 35}, {35, 45}, {45, 55}, {55, 100}} {
		var members []int
		seen := 0.0
		for i, a := range ages.Numbers {
			if a >= band[0] && a < band[1] {
				members = append(members, i)
				seen += f.frame.Y[i]
			}
		}
		var counts []float64
		for c := range replicated.Chains() {
			for s := range replicated.Len(c) {
				row, sum := replicated.Row(c, s), 0.0
				for _, i := range members {
					sum += row[i]
				}
				counts = append(counts, sum)
			}
		}
		low, high := interval(counts)
		fmt.Fprintf(out, "%2.0f to %2.0f  %3d women  %2.0f, %2.0f to %2.0f\n", band[0], band[1]-1, len(members), seen, low,
			high)
	}
	return nil
}

// interval is the central 90 % of numbers, which it sorts.
func interval(x []float64) (low, high float64) {
	slices.Sort(x)
	return x[len(x)/20], x[len(x)-1-len(x)/20]
}
