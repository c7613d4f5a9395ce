package store

import (
	"strings"
)

// Adaptation is what warm-up has found.
type Adaptation struct {
	// StepSize is that of the leapfrog from here on.
	StepSize float64
	// Diagonal is the diagonal of the inverse mass matrix (metric diag_e), Dense its rows (dense_e); both are nil for
	// unit_e.
	Diagonal []float64
	Dense    [][]float64
}

// Adapted writes the adaptation block and flushes. It stands between the draws of the warm-up, if they are saved, and the
// others. Writing the same block again is nothing, as a resumed run may do; another one is an [ErrLayout], and so is
// one that is not of the file's metric. Files of the algorithm fixed_param have none.
func (w *CSVWriter) Adapted(a Adaptation) error {
	if w.err != nil {
		return w.err
	}
	text, err := a.text(w.opt)
	switch {
	case err != nil:
		return failf(ErrLayout, "adaptation of %s: %v", w.path, err)
	case w.adapted == text:
		return nil
	case w.adapted != "":
		return failf(ErrLayout, "adaptation of %s: the file has one already, and another", w.path)
	}
	w.adapted = text
	w.write([]byte(text))
	return w.Flush()
}

const (
	adaptedLine  = "# Adaptation terminated"
	stepSizeLine = "# Step size = "
)

// text is the block as CmdStan writes it.
func (a Adaptation) text(o CSVOptions) (string, error) {
	metric := "unit_e"
	switch {
	case a.Diagonal != nil && a.Dense != nil:
		return "", because(ErrLayout, "both Diagonal and Dense are given")
	case a.Diagonal != nil:
		metric = "diag_e"
	case a.Dense != nil:
		metric = "dense_e"
	}
	if o.Algorithm != "hmc" {
		return "", because(ErrLayout, "the algorithm is %s, which adapts nothing", o.Algorithm)
	}
	if metric != o.Metric {
		return "", because(ErrLayout, "it is of the metric %s, the file is of %s", metric, o.Metric)
	}
	var b strings.Builder
	b.WriteString(adaptedLine + "\n" + stepSizeLine + csvNumber(a.StepSize) + "\n")
	row := func(values []float64) {
		for i, v := range values {
			if i > 0 {
				b.WriteString(", ")
			} else {
				b.WriteString("# ")
			}
			b.WriteString(csvNumber(v))
		}
		b.WriteString("\n")
	}
	switch metric {
	case "unit_e":
		b.WriteString("# No free parameters for unit metric\n")
	case "diag_e":
		b.WriteString("# Diagonal elements of inverse mass matrix:\n")
		row(a.Diagonal)
	case "dense_e":
		b.WriteString("# Elements of inverse mass matrix:\n")
		for i, values := range a.Dense {
			if len(values) != len(a.Dense) {
				return "", because(ErrLayout, "row %d of Dense has %d numbers, want %d", i, len(values), len(a.Dense))
			}
			row(values)
		}
	}
	return b.String(), nil
}
