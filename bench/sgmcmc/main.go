// Command sgmcmc measures what an update of the stochastic-gradient samplers costs beyond what it cannot do without:
// the gradient and the noise.
//
//	go run ./bench/sgmcmc [-json] [-quick] [-large] [-libtorch] [-seconds S] [-only NAME] [-runs]
//
// The bound evaluates the same gradient at the same points and draws as many normal numbers, and does nothing else.
// Sampler and bound take turns of a few milliseconds, or of one call where that takes longer, in one process. A round
// is several turns, of which each side's fastest counts, so that what else the machine does is left out; the table has
// medians over the rounds, and the quartiles of the rounds' ratios. The goal is a ratio of at most 1.2 from 10,000
// parameters on.
//
// The target is a Gaussian of diagonal precision, in float32: its gradient takes a few passes over memory. That is the
// hardest case: the gradient of a network costs more for each parameter, and all the rest the same. A million
// parameters have 8 chains, and 64 with -large.
//
// The bound's noise is that of Kelvin's streams, so that a faster stream lowers the bound too, and raises the ratio of
// an update that takes less time than before. With -libtorch the bound has libtorch's own noise instead: ratios of two
// versions of Kelvin can be compared then.
//
// With -runs it measures what an update of all chains costs in whole runs instead, in the processor's nanoseconds:
// SGHMC and SGLD on a regression of the size of the Pima data, with all data and minibatches, and on a network.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
)

const (
	goal     = 1.2    // of the ratio
	goalFrom = 10_000 // parameters
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object instead of a table")
	quick := flag.Bool("quick", false, "a few updates of small sizes: tries the program, measures nothing")
	seconds := flag.Float64("seconds", 1, "time for each row of the table; a row has at least 3 rounds")
	large := flag.Bool("large", false, "also 64 chains of a million parameters: some 5 GB of memory, some minutes")
	libtorch := flag.Bool("libtorch", false, "the bound's noise is libtorch's own, which no version of Kelvin changes")
	only := flag.String("only", "", "only the samplers whose name contains this")
	runs := flag.Bool("runs", false, "nanoseconds of an update in whole runs")
	flag.Parse()
	if *runs {
		if err := measureRuns(os.Stdout, *asJSON, *quick, *seconds, *only); err != nil {
			fmt.Fprintln(os.Stderr, "sgmcmc:", err)
			os.Exit(1)
		}
		return
	}
	if err := measure(os.Stdout, *asJSON, *quick, *large, *libtorch, *seconds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "sgmcmc:", err)
		os.Exit(1)
	}
}

// report is what the program prints; with -json as it is.
type report struct {
	bench.Machine
	Goal  float64 `json:"goal"`
	Noise string  `json:"noise"` // whose the bound's is
	Rows  []row   `json:"rows"`
}

// row is a sampler at a size. Updates are those of single chains, K in each call.
type row struct {
	Sampler   string     `json:"sampler"`
	Dim       int        `json:"d"`
	Chains    int        `json:"chains"`
	Updates   float64    `json:"updates_per_second"`
	Bound     float64    `json:"bound_per_second"`
	Ratio     float64    `json:"ratio"` // of the times, sampler to bound
	Quartiles [2]float64 `json:"ratio_quartiles"`
	Rounds    int        `json:"rounds"`
}

// size is a number of parameters and of chains.
type size struct{ dim, chains int }

func measure(w io.Writer, asJSON, quick, large, libtorch bool, seconds float64, only string) error {
	if !(seconds > 0) {
		return fmt.Errorf("-seconds %g: it must be greater than 0", seconds)
	}
	sizes := []size{{10, 1}, {10, 64}, {10_000, 1}, {10_000, 64}, {1_000_000, 1}, {1_000_000, 8}}
	if large {
		sizes = append(sizes, size{1_000_000, 64})
	}
	if quick {
		sizes, seconds = []size{{10, 1}, {10, 3}}, 1e-3
	}
	r := report{Machine: bench.ThisMachine(), Goal: goal, Noise: "Kelvin's"}
	if libtorch {
		r.Noise = "libtorch's"
	}
	for _, z := range sizes {
		target, err := newTarget(z)
		if err != nil {
			return err
		}
		target.libtorch = libtorch
		for _, s := range samplers {
			if !strings.Contains(s.name, only) {
				continue
			}
			one, err := target.time(s, time.Duration(seconds*float64(time.Second)))
			if err != nil {
				return fmt.Errorf("%s, %d parameters, %d chains: %w", s.name, z.dim, z.chains, err)
			}
			r.Rows = append(r.Rows, one)
		}
		target.free()
	}
	if len(r.Rows) == 0 {
		return fmt.Errorf("-only %q: no sampler has such a name", only)
	}
	if asJSON {
		return command.JSON(w, r)
	}
	return r.write(w)
}

// time lets a sampler and its bound take turns for a while.
func (t *target) time(s sampler, budget time.Duration) (row, error) {
	p, err := t.pair(s)
	if err != nil {
		return row{}, err
	}
	defer p.free()
	sides := [2]bench.Side{bench.Calls(p.bound), bench.Calls(p.update)}
	calls := [2]int{1, 1}
	var took time.Duration // both sides' turns
	for range 3 {          // the first call is slower than those that follow
		took = 0
		for i, side := range sides {
			ns, err := side(calls[i])
			if err != nil {
				return row{}, err
			}
			calls[i] = bench.PerTurn(ns)
			took += time.Duration(ns * float64(calls[i]))
		}
		if took > budget/10 {
			break
		}
	}
	// At least three rounds fit in the time, of as many turns as there is time for.
	turns := min(bench.Turns, max(1, int(budget/(3*took))))
	var times [2][]float64
	var ratios []float64
	for start := time.Now(); len(ratios) < 3 || time.Since(start) < budget; {
		ns, err := bench.Round(turns, sides, calls)
		if err != nil {
			return row{}, err
		}
		times[0], times[1] = append(times[0], ns[0]), append(times[1], ns[1])
		ratios = append(ratios, ns[1]/ns[0])
	}
	k := float64(t.chains)
	return row{Sampler: s.name, Dim: t.dim, Chains: t.chains,
		Updates: k * 1e9 / bench.Quantile(times[1], 0.5), Bound: k * 1e9 / bench.Quantile(times[0], 0.5),
		Ratio:     bench.Quantile(ratios, 0.5),
		Quartiles: [2]float64{bench.Quantile(ratios, 0.25), bench.Quantile(ratios, 0.75)}, Rounds: len(ratios)}, nil
}

// verdict says how the row stands to the goal.
func (r row) verdict() string {
	switch {
	case r.Dim < goalFrom:
		return "-"
	case r.Ratio <= goal:
		return "met"
	}
	return "missed"
}

// write prints the table.
func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, %s, libtorch %s, threads of an operation: %d.\n", r.Processor, r.Cores, r.System,
		r.Libtorch, r.Threads)
	fmt.Fprintf(w, "Updates of one chain in a second, float32; the bound is one gradient and one draw of %s noise. "+
		"Goal: %.1f from d = %d on.\n\n", r.Noise, r.Goal, goalFrom)
	width := 0
	for _, row := range r.Rows {
		width = max(width, len(row.Sampler))
	}
	// The writer aligns to the right; the names are padded, to be aligned to the left.
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%-*s\td\tK\tupdates/s\tbound/s\tratio\tquartiles\tgoal\t\n", width, "sampler")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%-*s\t%d\t%d\t%.4g\t%.4g\t%.2f\t%.2f-%.2f\t%s\t\n", width, row.Sampler, row.Dim, row.Chains,
			row.Updates, row.Bound, row.Ratio, row.Quartiles[0], row.Quartiles[1], row.verdict())
	}
	return t.Flush()
}
