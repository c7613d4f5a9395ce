package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// write prints the tables as Markdown. Ratios are Kelvin's rate to that of the side; below 1 Kelvin loses.
func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, %s, libtorch %s; %d chains, %d + %d transitions, medians of %d rounds; %.0f min.\n",
		r.Processor, r.Cores, r.System, r.Libtorch, r.Chains, r.Warmup, r.Draws, r.Rounds, r.Seconds/60)
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(w, "\nNot measured: %s: %s.\n", name, r.Missing[name])
	}
	if len(r.NUTS) > 0 {
		fmt.Fprint(w, "\n| posterior | side | compiling s | s per 1000 draws | least ESS | ESS/s | ESS/s with compiling |"+
			" µs per gradient | Kelvin's ESS/s to its | with compiling |\n|---|---|---|---|---|---|---|---|---|---|\n")
	}
	var ours row
	for _, x := range r.NUTS {
		if x.Side == "Kelvin" {
			ours = x
			fmt.Fprintf(w, "| %s |", x.Model)
		} else {
			fmt.Fprint(w, "| |")
		}
		if x.Error != "" {
			fmt.Fprintf(w, " %s | %s | | | | | | | |\n", x.Side, x.Error)
			continue
		}
		fmt.Fprintf(w, " %s | %.2f | %.3g | %.0f of %d | %.4g | %.3g | %s | %s | %s |\n", x.Side, x.Compile, x.Wall, x.ESS,
			x.Draws, x.Rate, x.Whole, number(x.US), ratio(ours.Rate, x), ratio2(ours.Whole, x))
	}
	for _, x := range r.NUTS {
		if x.Side == "Kelvin" && x.Note != "" {
			fmt.Fprintf(w, "\n%s: %s.\n", x.Model, x.Note)
		}
		if x.Apart > 0 {
			fmt.Fprintf(w, "\n%s: the means of %s differ from Kelvin's by at most %.2g standard errors.\n", x.Model, x.Side,
				x.Apart)
		}
	}
	if len(r.Steps) > 0 {
		fmt.Fprint(w, "\n| step of SGHMC, all chains | side | µs | compiling s | Kelvin's time to its |\n"+
			"|---|---|---|---|---|\n")
	}
	var step stepRow
	for _, x := range r.Steps {
		if x.Side == "Kelvin" {
			step = x
			fmt.Fprintf(w, "| %s |", x.Case)
		} else {
			fmt.Fprint(w, "| |")
		}
		switch {
		case x.Error != "":
			fmt.Fprintf(w, " %s | %s | | |\n", x.Side, x.Error)
		case x.Side == "Kelvin":
			fmt.Fprintf(w, " %s | %s | | |\n", x.Side, number(x.US))
		default:
			fmt.Fprintf(w, " %s | %s | %.1f | %s |\n", x.Side, number(x.US), x.Compile, number(step.US/x.US))
		}
	}
	losses := r.losses()
	fmt.Fprintf(w, "\nLosses: %d.\n", len(losses))
	for _, l := range losses {
		fmt.Fprintf(w, "- %s\n", l)
	}
	return nil
}

func number(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g", v)
}

func ratio(ours float64, x row) string {
	if x.Side == "Kelvin" || x.Rate == 0 {
		return ""
	}
	return number(ours / x.Rate)
}

func ratio2(ours float64, x row) string {
	if x.Side == "Kelvin" || x.Whole == 0 {
		return ""
	}
	return number(ours / x.Whole)
}

// losses are where a peer is better than Kelvin.
func (r *report) losses() []string {
	var out []string
	var ours row
	for _, x := range r.NUTS {
		if x.Side == "Kelvin" {
			ours = x
			if x.Error != "" {
				out = append(out, fmt.Sprintf("%s: Kelvin fails: %s", x.Model, x.Error))
			}
			continue
		}
		if x.Error != "" || ours.Error != "" {
			continue
		}
		if x.Rate > ours.Rate {
			out = append(out, fmt.Sprintf("%s: %s has %.3g times the ESS/s", x.Model, x.Side, x.Rate/ours.Rate))
		}
		if x.Whole > ours.Whole {
			out = append(out, fmt.Sprintf("%s: %s has %.3g times the ESS/s with compiling", x.Model, x.Side, x.Whole/ours.Whole))
		}
		if x.US > 0 && ours.US > x.US {
			out = append(out, fmt.Sprintf("%s: a gradient of %s takes %.2g of Kelvin's time", x.Model, x.Side, x.US/ours.US))
		}
	}
	var step stepRow
	for _, x := range r.Steps {
		switch {
		case x.Side == "Kelvin":
			step = x
			if x.Error != "" {
				out = append(out, fmt.Sprintf("%s: Kelvin fails: %s", x.Case, x.Error))
			}
		case x.Error == "" && step.Error == "" && step.US > x.US:
			out = append(out, fmt.Sprintf("%s: a step of %s takes %.2g of Kelvin's time", x.Case, x.Side, x.US/step.US))
		}
	}
	return out
}
