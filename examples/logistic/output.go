package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/store"
)

// summaryJSON is the JSON output.
type summaryJSON struct {
	Methods map[string]methodJSON `json:"methods"`
}

type methodJSON struct {
	Mean               []float64 `json:"mean"`
	SD                 []float64 `json:"sd"` // zeros for a point estimate
	Seconds            float64   `json:"seconds"`
	GradientsPerSecond float64   `json:"gradients_per_second"`
}

func summarise(outcomes []outcome) (summaryJSON, error) {
	s := summaryJSON{Methods: map[string]methodJSON{}}
	for _, o := range outcomes {
		mean, err := o.draws.Mean("w")
		if err != nil {
			return s, err
		}
		sd, err := o.draws.SD("w")
		if err != nil {
			return s, err
		}
		for i := range sd {
			if math.IsNaN(sd[i]) { // one draw: a point estimate
				sd[i] = 0
			}
		}
		s.Methods[o.fit.name] = methodJSON{Mean: mean, SD: sd, Seconds: o.seconds, GradientsPerSecond: o.rate}
	}
	return s, nil
}

// printOutcome prints the posterior table of one method.
func printOutcome(w io.Writer, o outcome, names []string) error {
	rows, err := o.draws.Summary()
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Name = names[i]
	}
	n := o.draws.Total()
	if n == 1 {
		fmt.Fprintf(w, "%s: the mode, %.1f s, %.0f gradients/s\n", o.fit.title, o.seconds, o.rate)
		for _, row := range rows {
			fmt.Fprintf(w, "%-8s  %7.4f\n", row.Name, row.Mean)
		}
		_, err = fmt.Fprintln(w)
		return err
	}
	fmt.Fprintf(w, "%s: %d draws, %.1f s, %.0f gradients/s\n", o.fit.title, n, o.seconds, o.rate)
	if err := draws.FormatTable(w, rows, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w)
	return err
}

// reference is the method that others are compared with.
const reference = "nuts"

// printDeviations compares the means and standard deviations of each method with those of the reference, in its
// standard deviations.
func printDeviations(w io.Writer, s summaryJSON, outcomes []outcome) {
	ref := s.Methods[reference]
	fmt.Fprintln(w,
		"Against NUTS: largest difference of a mean, in standard deviations, and ratios of standard deviations")
	for _, o := range outcomes {
		m := s.Methods[o.fit.name]
		if o.fit.name == reference {
			continue
		}
		off, low, high := 0.0, math.Inf(1), 0.0
		for i := range m.Mean {
			off = max(off, math.Abs(m.Mean[i]-ref.Mean[i])/ref.SD[i])
			low, high = min(low, m.SD[i]/ref.SD[i]), max(high, m.SD[i]/ref.SD[i])
		}
		if high == 0 {
			fmt.Fprintf(w, "%-24s  %.3f\n", o.fit.title, off)
			continue
		}
		fmt.Fprintf(w, "%-24s  %.3f   %.3f to %.3f\n", o.fit.title, off, low, high)
	}
	fmt.Fprintln(w)
}

// writeFiles writes summary.json, a folder with the draws of each method, and the picture.
func writeFiles(dir string, s summaryJSON, outcomes []outcome, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "summary.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	for _, o := range outcomes {
		into := filepath.Join(dir, o.fit.name)
		if err := os.MkdirAll(into, 0o755); err != nil {
			return err
		}
		if _, err := store.WriteCSV(filepath.Join(into, "draws"), &store.Inference{Posterior: o.draws},
			store.CSVOptions{Model: "logistic"}); err != nil {
			return err
		}
	}
	return plotMarginals(filepath.Join(dir, "marginals.png"), outcomes, names)
}
