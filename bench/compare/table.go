package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench"
)

// report is what the program prints; with -json as it is.
type report struct {
	bench.Machine              // on both sides
	Rounds        int          `json:"rounds"`
	Difference    float64      `json:"largest_difference"` // of values and gradients, both sides
	Cases         []row        `json:"cases"`
	Networks      []networkRow `json:"networks"`
}

// networkRow is a gradient, a step or an update of a network on a device, against what it is judged by. Times are
// milliseconds.
type networkRow struct {
	Case       string     `json:"case"`
	Device     string     `json:"device"`
	Against    string     `json:"against"`
	Base       float64    `json:"against_ms"`
	Time       float64    `json:"kelvin_ms"`
	Ratio      float64    `json:"ratio"`
	Quartiles  [2]float64 `json:"ratio_quartiles"`
	Rounds     int        `json:"rounds"`
	Difference float64    `json:"difference,omitempty"` // of both sides' log posteriors and gradients
}

// row is a case on a device. Times are microseconds of a call, medians over the rounds; the ratio is the median of the
// rounds' ratios, with its quartiles.
type row struct {
	Case               string     `json:"case"`
	Device             string     `json:"device"`
	Chains             int        `json:"chains,omitempty"`
	Cpp                float64    `json:"cpp_us"`
	Kelvin             float64    `json:"kelvin_us"`
	Ratio              float64    `json:"ratio"`
	Quartiles          [2]float64 `json:"ratio_quartiles"`
	PerChain           float64    `json:"per_chain_us,omitempty"`
	GradientsPerSecond float64    `json:"gradients_per_second,omitempty"`
}

// newRow summarises the nanoseconds that the rounds took, cpp[i] and kelvin[i] one after the other.
func newRow(c comparison, device string, cpp, kelvin []float64) row {
	ratios := make([]float64, len(cpp))
	for i := range ratios {
		ratios[i] = kelvin[i] / cpp[i]
	}
	r := row{Case: c.name, Device: device, Chains: c.chains,
		Cpp: bench.Quantile(cpp, 0.5) / 1e3, Kelvin: bench.Quantile(kelvin, 0.5) / 1e3,
		Ratio: bench.Quantile(ratios, 0.5), Quartiles: [2]float64{bench.Quantile(ratios, 0.25), bench.Quantile(ratios, 0.75)}}
	if c.chains > 0 {
		r.PerChain = r.Kelvin / float64(c.chains)
		r.GradientsPerSecond = 1e6 / r.PerChain
	}
	return r
}

// write prints the table, with columns of the GPU where it was measured.
func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, %s, libtorch %s, threads of an operation: %d; medians of %d rounds.\n", r.Processor,
		r.Cores, r.System, r.Libtorch, r.Threads, r.Rounds)
	if len(r.Cases) == 0 {
		return r.writeNetworks(w, 0)
	}
	fmt.Fprintf(w, "Values and gradients of both sides differ by at most %.0e.\n\n", r.Difference)
	gpu := map[string]row{}
	for _, c := range r.Cases {
		if c.Device != "cpu" {
			gpu[c.Case] = c
		}
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	width := 0
	for _, c := range r.Cases {
		width = max(width, len(c.Case))
	}
	// The writer aligns to the right; the names are padded, to be aligned to the left.
	fmt.Fprintf(t, "%-*s\tC++ us\tKelvin us\tratio\tquartiles\tper chain us\tgradients/s\t", width, "case")
	if len(gpu) > 0 {
		fmt.Fprint(t, "GPU C++ us\tGPU Kelvin us\tGPU ratio\tGPU quartiles\tGPU gradients/s\t")
	}
	fmt.Fprintln(t)
	for _, c := range r.Cases {
		if c.Device != "cpu" {
			continue
		}
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%s\t%s\t", width, c.Case, c.times(), c.ratios(), dash(c.PerChain, 3),
			dash(c.GradientsPerSecond, 0))
		if g, ok := gpu[c.Case]; ok {
			fmt.Fprintf(t, "%s\t%s\t%s\t", g.times(), g.ratios(), dash(g.GradientsPerSecond, 0))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeNetworks(w, width)
}

// writeNetworks prints the table of the networks, if there are some, with names of a width at least.
func (r *report) writeNetworks(w io.Writer, width int) error {
	if len(r.Networks) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, n := range r.Networks {
		width = max(width, len(n.Case))
	}
	fmt.Fprintf(t, "\n%-*s\tdevice\tagainst\tits ms\tKelvin ms\tratio\tquartiles\trounds\tdifference\t\n", width,
		"networks")
	for _, n := range r.Networks {
		difference := "-"
		if n.Difference > 0 {
			difference = fmt.Sprintf("%.0e", n.Difference)
		}
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f-%.2f\t%d\t%s\t\n", width, n.Case, n.Device, n.Against, n.Base,
			n.Time, n.Ratio, n.Quartiles[0], n.Quartiles[1], n.Rounds, difference)
	}
	return t.Flush()
}

func (r row) times() string { return fmt.Sprintf("%.2f\t%.2f", r.Cpp, r.Kelvin) }
func (r row) ratios() string {
	return fmt.Sprintf("%.2f\t%.2f-%.2f", r.Ratio, r.Quartiles[0], r.Quartiles[1])
}

// dash is a number with so many digits after the point, or a dash for zero.
func dash(v float64, digits int) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, v)
}
