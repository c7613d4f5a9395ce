// Command language measures what the language costs: value and gradient of compiled models against those of log
// posteriors hand-written with the same tensor operations, in one run.
//
//	go run ./bench/language [-json] [-rounds N]
//
// Both sides take turns of a few milliseconds. A round is several turns, of which each side's fastest counts, so that
// what else the machine does is left out; the table has medians over the rounds. Before anything is timed the gradients
// of both sides are compared, and the program fails when they differ by more than 1e-10. The hand-written ones
// leave the normalising constants out, as one does.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// tolerance is how far the gradients may be apart, relative to the larger of one and the value.
const tolerance = 1e-10

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object instead of a table")
	rounds := flag.Int("rounds", 25, "rounds to take medians over")
	flag.Parse()
	if err := measure(os.Stdout, *asJSON, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
}

// row is a case. Times are microseconds of one evaluation.
type row struct {
	Case     string  `json:"case"`
	Chains   int     `json:"chains"`
	ByHand   float64 `json:"by_hand_us"`
	Language float64 `json:"language_us"`
	Ratio    float64 `json:"ratio"`
}

func measure(w io.Writer, asJSON bool, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds %d: there must be at least 1", rounds)
	}
	pairs, err := pairs()
	if err != nil {
		return err
	}
	var rows []row
	for _, p := range pairs {
		for _, chains := range []int{1, 64} {
			r, err := p.time(chains, rounds)
			if err != nil {
				return fmt.Errorf("%s, %d chains: %w", p.name, chains, err)
			}
			rows = append(rows, r)
		}
	}
	if asJSON {
		return command.JSON(w, map[string]any{"cases": rows})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "value and gradient\tchains\thand-written, µs\tin the language, µs\tratio\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.2f\t\n", r.Case, r.Chains, r.ByHand, r.Language, r.Ratio)
	}
	return t.Flush()
}

// time compares the two sides of a pair and then times them.
func (p pair) time(chains, rounds int) (row, error) {
	flat := make([]float64, chains*p.layout.Dim())
	for i := range flat {
		flat[i] = math.Sin(1.7*float64(i) + 0.3)
	}
	point, err := infer.NewParams(p.layout, flat)
	if err != nil {
		return row{}, err
	}
	var sides [2]bench.Side
	var grads [2][]float64
	for i, f := range []infer.LogPosterior{p.byHand, p.language} {
		g, err := infer.NewGradient(infer.Sum(f, 1))
		if err != nil {
			return row{}, err
		}
		err = torch.Do(func(*torch.Scope) error {
			e, err := g.ValueAndGrad(point, p.batch, 0)
			if err != nil {
				return err
			}
			grads[i], err = torch.ToSlice[float64](e.Grad)
			return err
		})
		if err != nil {
			return row{}, err
		}
		sides[i] = bench.Calls(func() error {
			return torch.Do(func(*torch.Scope) error {
				_, err := g.ValueAndGrad(point, p.batch, 0)
				return err
			})
		})
	}
	for i := range grads[0] {
		if d := math.Abs(grads[0][i] - grads[1][i]); !(d <= tolerance*max(1, math.Abs(grads[0][i]))) {
			return row{}, fmt.Errorf("element %d of the gradient is %v hand-written and %v in the language", i, grads[0][i],
				grads[1][i])
		}
	}
	var calls [2]int
	for i, side := range sides {
		ns, err := side(20)
		if err != nil {
			return row{}, err
		}
		calls[i] = bench.PerTurn(ns)
	}
	var times [2][]float64
	var ratios []float64
	for round := range bench.WarmUp + rounds {
		ns, err := bench.Round(bench.Turns, sides, calls)
		if err != nil {
			return row{}, err
		}
		if round >= bench.WarmUp {
			times[0], times[1] = append(times[0], ns[0]), append(times[1], ns[1])
			ratios = append(ratios, ns[1]/ns[0])
		}
	}
	median := func(v []float64) float64 { return bench.Quantile(v, 0.5) }
	return row{p.name, chains, median(times[0]) / 1000, median(times[1]) / 1000, median(ratios)}, nil
}
