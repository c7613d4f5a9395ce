// Command double_well draws from a density with four modes in three ways (Duffield et al. 2025, "Scalable Bayesian
// Learning with posteriors", figure 2): a deep ensemble finds the modes and no spread, one long SGHMC chain finds the
// spread and changes modes rarely, and many short ones, of which only the last state is kept, find both. What the draws
// should be like is known by quadrature.
//
//	go run ./examples/double_well          a table, and the picture out/double_well.png
//	go run ./examples/double_well -json    one JSON object
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.StringVar(&o.out, "out", filepath.Join("out", "double_well.png"), "the picture")
	flag.IntVar(&o.chains, "chains", 2000, "parallel chains, at least 2")
	flag.IntVar(&o.steps, "steps", updates, "updates of each chain")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random streams")
	command.Main("double_well", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json   bool
	out    string
	chains int
	steps  int
	seed   uint64
}

// summary is the JSON output.
type summary struct {
	Exact    moments `json:"exact"`
	Samplers []facts `json:"samplers"`
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.chains < 2 {
		return fmt.Errorf("chains is %d, it must be at least 2", o.chains)
	}
	s := summary{Exact: exact()}
	var outcomes []outcome
	for _, sampler := range samplers() {
		outcome, err := sampler.run(ctx, o.steps, o.chains, o.seed)
		if err != nil {
			return fmt.Errorf("%s: %w", sampler.title, err)
		}
		outcomes = append(outcomes, outcome)
		s.Samplers = append(s.Samplers, outcome.facts())
	}
	if err := plotSamplers(o.out, outcomes[:3]); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(s)
	}
	printTable(w, outcomes, s)
	_, err := fmt.Fprintf(w, "\nThe picture is %s.\n", o.out)
	return err
}

func printTable(w io.Writer, outcomes []outcome, s summary) {
	e := s.Exact
	fmt.Fprintf(w,
		"Target: log p = Σ x² − x⁴/10, modes at ±%.4f. By quadrature: E[x²] %.4f, within a mode mean %.4f and sd %.4f.\n\n",
		mode, e.Square, e.Abs, e.Within)
	fmt.Fprintf(w, "%-22s %6s %6s  %-27s %8s %16s  %9s %15s %8s %7s\n", "", "chains", "draws", "share of the quadrants",
		"switches", "E[x²]", "sd within",
		"E[−x (log p)′]", "expected", "seconds")
	fmt.Fprintf(w, "%-22s %6s %6s  %.3f %.3f %.3f %.3f     %8s %8.4f %8s %9.4f %7.4f %7s\n", "exact", "", "", 0.25, 0.25,
		0.25, 0.25, "", e.Square, "", e.Within, 1.0, "")
	for i, f := range s.Samplers {
		q := f.Quadrants
		fmt.Fprintf(w, "%-22s %6d %6d  %.3f %.3f %.3f %.3f     %8d %8.4f ±%.4f  %9.4f %7.4f ±%.4f %8.4f %7.1f\n",
			outcomes[i].sampler.title, f.Chains, f.Draws,
			q[0], q[1], q[2], q[3], f.Switches, f.Square, f.SquareSE, f.Within, f.Heat, f.HeatSE, f.HeatExpected, f.Seconds)
	}
	ensemble := s.Samplers[0]
	fmt.Fprintf(w, "\nThe deep ensemble's members are within %.1e of a mode.\n", ensemble.FarthestModes)
}
