package main

import (
	"fmt"
	"io"
	"math"
)

// limit is the largest |z| of two sides that agree.
const limit = 4

// row is what the two sides were on a model. The tags are a format that other programs read.
type row struct {
	Name         string  `json:"name"`
	FormulaLines int     `json:"formula_lines"`
	StanLines    int     `json:"stan_lines"`
	Z            float64 `json:"z"` // the largest |z|
	ZOf          string  `json:"z_of"`
	Ratio        float64 `json:"ratio"` // of Kelvin's ESS/s to Stan's
	Kelvin       *side   `json:"kelvin"`
	Stan         *side   `json:"stan,omitempty"`
}

// agrees says that the two sides have the same posterior; so does a side alone.
func (r row) agrees() bool { return r.Stan == nil || r.Z <= limit }

// line is the form of a line. The columns have fixed widths, because models are written as they end.
const line = "%-16s  %7s  %6s  %11s  %11s  %9s  %9s  %5s\n"

func writeHeading(w io.Writer) {
	fmt.Fprintf(w, line, "model", "lines", "|z|", "divergences", "gradients", "ESS/s", "Stan's", "ratio")
}

// write writes both sides, Kelvin's first.
func (r row) write(w io.Writer) {
	lines, k, s := fmt.Sprintf("%d, %d", r.FormulaLines, r.StanLines), r.Kelvin, r.Stan
	if s == nil {
		fmt.Fprintf(w, line, r.Name, lines, "-", show(k.Divergences), show(k.cost()), show(k.rate()), "-", "-")
		return
	}
	fmt.Fprintf(w, line, r.Name, lines, fmt.Sprintf("%.1f", r.Z), show(k.Divergences)+", "+show(s.Divergences),
		show(k.cost())+", "+show(s.cost()), show(k.rate()), show(s.rate()), show(r.Ratio))
	if !r.agrees() {
		fmt.Fprintf(w, "%s disagrees: |z| %.1f of the %s.\n", r.Name, r.Z, r.ZOf)
	}
}

func show(v float64) string { return fmt.Sprintf("%.3g", v) }

// writeEnd writes the geometric mean of the ratios. That sides disagree is an error.
func writeEnd(w io.Writer, rows []row) error {
	sum, n, wrong := 0.0, 0.0, 0
	for _, r := range rows {
		if !r.agrees() {
			wrong++
		}
		if r.Stan != nil {
			sum, n = sum+math.Log(r.Ratio), n+1
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "\nGeometric mean of the ratios: %.2f.\n", math.Exp(sum/n))
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d models disagree", wrong, len(rows))
	}
	return nil
}
