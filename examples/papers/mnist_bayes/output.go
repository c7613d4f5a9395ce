package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"text/tabwriter"
)

// print writes the tables.
func (r *results) print(w io.Writer, dir string) error {
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s, %d test images\n\n", r.Source, r.Settings.Scored)
	fmt.Fprintln(t, "network\tparameters\tsum of log widths\t")
	for _, c := range r.Constants {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t\n", c.Network, c.Parameters, c.LogWidths)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, c := range r.Curves {
		d := r.Descended[i]
		fmt.Fprintf(w, "\n%s: losses in nats for each image, %d gradients, %d round trips\n", c.name(), c.Gradients,
			c.RoundTrips)
		fmt.Fprintln(t, "T\ttrain\ttest, one network\taccuracy\ttest, all networks\taccuracy\tswapped\tstep\t")
		row := func(name string, train float64, s scores, swapped, step string) {
			fmt.Fprintf(t, "%s\t%.4f\t%.3f\t%.3f\t%.3f\t%.3f\t%s\t%s\t\n", name, train, s.Gibbs, s.GibbsAccuracy, s.Loss,
				s.Accuracy, swapped, step)
		}
		row(fmt.Sprintf("%d minima", d.Test.Networks), d.Train, d.Test, "", "")
		for _, g := range c.Rungs {
			swapped := ""
			if g.Swapped >= 0 {
				swapped = fmt.Sprintf("%.2f", g.Swapped)
			}
			row(fmt.Sprintf("%.3g", g.Temperature), g.Train, g.Test, swapped, fmt.Sprintf("%.3g", g.Step))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if err := r.printEvidence(w, t); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range r.Claims {
		fmt.Fprintf(w, "%s  %-3s  %s: %s\n", c.Name, map[bool]string{true: "yes", false: "no"}[c.Holds], c.Text, c.Seen)
	}
	_, err := fmt.Fprintf(w, "\npictures: %s\n", filepath.Join(dir, "*.png"))
	return err
}

// printEvidence writes nothing where no evidence was asked for.
func (r *results) printEvidence(w io.Writer, t *tabwriter.Writer) error {
	if r.Settings.Evidences == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nlog evidence of D%d, by thermodynamic integration\n", r.Settings.EvidenceData)
	fmt.Fprintln(t, "network\tseed\tlog Z\tstandard error\twarnings\t")
	for _, e := range r.Evidence {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%d\t\n", e.Network, e.Seed, e.LogZ, e.SE, len(e.Warnings))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, e := range r.Evidence {
		for _, warning := range e.Warnings {
			fmt.Fprintf(w, "%s, seed %d: %s\n", e.Network, e.Seed, warning)
		}
	}
	mean, sd := r.factor()
	fmt.Fprintf(w, "log Bayes factor of M3 against M1: %.1f ± %.1f, the standard deviation over %d seeds\n", mean, sd,
		r.Settings.Evidences)
	return nil
}

// factor is the mean over the seeds of log Z of M3 less that of M1, and its standard deviation.
func (r *results) factor() (mean, sd float64) {
	factors := []float64{}
	for i := 0; i+1 < len(r.Evidence); i += 2 {
		factors = append(factors, r.Evidence[i+1].LogZ-r.Evidence[i].LogZ)
		mean += factors[i/2] / float64(r.Settings.Evidences)
	}
	for _, f := range factors {
		sd += (f - mean) * (f - mean) / math.Max(1, float64(len(factors)-1))
	}
	return mean, math.Sqrt(sd)
}
