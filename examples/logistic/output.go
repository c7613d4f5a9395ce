package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/draws"
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

// writeFiles writes summary.json, the draws of each method and the picture.
func writeFiles(dir string, s summaryJSON, outcomes []outcome, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := writeDraws(filepath.Join(dir, "draws-"+o.fit.name+".csv"), o.draws); err != nil {
			return err
		}
	}
	return plotMarginals(filepath.Join(dir, "marginals.png"), outcomes, names)
}

func writeDraws(path string, d *draws.Draws) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	return d.WriteCSV(f)
}
