// Command evidence estimates log evidences that are known, with every estimator, and says how far off they are.
//
//	go run ./bench/evidence [-json] [-seed 0]
//
// The targets are Gaussians in 10 and 100 dimensions, a mixture with modes 20 standard deviations apart, and a funnel.
// Bridges take the draws of NUTS, and for the mixture and the funnel those of thermodynamic integration. The slopes of
// replica exchange are integrated too.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/evidence"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// row is one estimate.
type row struct {
	Target    string   `json:"target"`
	Estimator string   `json:"estimator"`
	LogZ      float64  `json:"log_z"`
	SE        float64  `json:"se"`
	Exact     float64  `json:"exact"`
	Gradients int      `json:"gradients"`
	Warnings  []string `json:"warnings,omitempty"`
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object instead of a table")
	seed := flag.Uint64("seed", 0, "of the random streams")
	flag.Parse()
	command.Main("evidence", func(ctx context.Context, _ []string, out io.Writer) error {
		return run(ctx, out, *asJSON, *seed)
	})
}

func run(ctx context.Context, w io.Writer, asJSON bool, seed uint64) error {
	var rows []row
	for _, t := range []infertest.Evidence{infertest.EvidenceGaussian(10), infertest.EvidenceGaussian(100),
		infertest.EvidenceMixture(), infertest.EvidenceFunnel(3, 9)} {
		program, err := t.Program()
		if err != nil {
			return err
		}
		o := infer.Options{Seed: seed, Observer: infer.Silent}
		add := func(estimator string, r *evidence.Result, more int) {
			rows = append(rows, row{fmt.Sprintf("%s, %d dimensions", t.Name, t.Dim), estimator, r.LogZ, r.SE, t.LogZ,
				r.Gradients + more, r.Warnings})
		}
		for _, m := range []infer.Method{evidence.TI{}, evidence.SMC{}, evidence.AIS{}} {
			r, err := evidence.Run(ctx, program, m, o)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			add(r.Estimator, r, 0)
		}
		var sampler infer.Method = hmc.NUTS{}
		own := o
		if t.Name == "mixture" || t.Name == "funnel" {
			sampler, own.Draws = evidence.TI{}, 4000
		}
		draws, err := infer.Run(ctx, program, sampler, own)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		r, err := evidence.Bridge(program, draws.Unconstrained, evidence.BridgeOptions{Seed: seed})
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		add(r.Estimator, r, draws.Gradients)
		replicas, err := infer.Run(ctx, program, hmc.Exchange{Path: &path.Path{}, Ladder: path.Power(24, 4), Adapt: true}, o)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if r, err = evidence.FromExchange(replicas); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		add(r.Estimator, r, 0)
	}
	if asJSON {
		return command.JSON(w, map[string]any{"cases": rows})
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "target\testimator\tlog Z\terror\tstandard errors off\tgradients\twarnings")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%.3f\t%.3f\t%.1f\t%d\t%d\n", r.Target, r.Estimator, r.LogZ, r.SE,
			math.Abs(r.LogZ-r.Exact)/r.SE, r.Gradients, len(r.Warnings))
	}
	return table.Flush()
}
