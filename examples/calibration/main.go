// Command calibration is simulation-based calibration of three models by four methods, and of a model with a mistake:
// parameters from the prior, data from them, and the rank of the truth among draws of the posterior.
//
//	go run ./examples/calibration [-replications 200] [-pictures DIR] [-ranks DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/diag/sbc"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var (
	replications = flag.Int("replications", 200, "data sets for each model and method")
	pictures     = flag.String("pictures", "", "a folder for pictures of the ranks; none are drawn without it")
	ranks        = flag.String("ranks", "", "a folder that keeps ranks, so that a run that was ended goes on")
)

func run(ctx context.Context) error { return table(ctx, os.Stdout, *replications, *pictures, *ranks) }

// table prints what the ranks of each quantity say.
func table(ctx context.Context, out io.Writer, replications int, pictures, ranks string) error {
	fmt.Fprintf(out, "%d replications, ranks among 63 draws\n", replications)
	for _, p := range problems {
		for _, w := range ways {
			result, err := calibrate(ctx, p, w.method, replications, file(ranks, p, w, "ranks.jsonl"))
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, w.name, err)
			}
			report, err := result.Diagnose()
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%-9s %-8s", p.name, w.name)
			for _, q := range p.ranked {
				c, err := result.Curve(q, 0.95)
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "  %s p = %.3f", q, c.P)
				if pictures != "" {
					if err := draw(file(pictures, p, w, q+".png"), result, q, p.name+", "+w.name+": "+q); err != nil {
						return err
					}
				}
			}
			if len(report.Findings) > 0 {
				fmt.Fprint(out, "  CAUGHT")
			}
			fmt.Fprintln(out)
		}
	}
	return nil
}

// file is a path in a folder; "" without one.
func file(dir string, p problem, w way, end string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, p.name+"-"+w.name+"-"+end)
}

// calibrate ranks the truth among draws of a method: 16 of each of four chains, less one, ten updates apart.
func calibrate(ctx context.Context, p problem, method infer.Method, replications int, path string) (*sbc.Result,
	error) {
	simulate := func(ctx context.Context, seed uint64) (sbc.Case, error) {
		batch, err := p.covariates()
		if err != nil {
			return sbc.Case{}, err
		}
		drawn, err := ppl.Predictive{Model: p.simulates, Batch: batch, Seed: seed}.Prior(1)
		if err != nil {
			return sbc.Case{}, err
		}
		c := sbc.Case{Truth: map[string]float64{}, Draws: map[string][]float64{}}
		y, err := torch.ToSlice[float64](drawn["y"])
		if err != nil {
			return c, err
		}
		if batch["y"], err = torch.FromSlice(y); err != nil {
			return c, err
		}
		program, err := ppl.Compile(p.fits, batch)
		if err != nil {
			return c, err
		}
		posterior, err := infer.Sample(ctx, program, method,
			infer.Options{Warmup: 300, Draws: 16, Thin: 10, Seed: seed, Observer: infer.Silent})
		if err != nil {
			return c, err
		}
		for _, q := range p.ranked {
			truth, err := torch.ToSlice[float64](drawn[q])
			if err != nil {
				return c, err
			}
			site, err := posterior.Site(q)
			if err != nil {
				return c, err
			}
			c.Truth[q], c.Draws[q] = truth[0], posterior.Pooled(site.Offset)[:63]
		}
		return c, nil
	}
	return sbc.Run(ctx, simulate, sbc.Options{Replications: replications, Draws: 63, File: path})
}

// draw makes a picture of the ranks of a quantity: their distribution less the uniform one, with its band.
func draw(path string, r *sbc.Result, quantity, title string) error {
	random := rand.New(rand.NewPCG(1, 1))
	var uniform []float64
	for _, rank := range r.Ranks[quantity] {
		uniform = append(uniform, (float64(rank)+random.Float64())/float64(r.Draws+1))
	}
	return command.Picture(path, func(f io.Writer) error {
		return plot.PIT(f, uniform, plot.Options{Title: title, Height: 3})
	})
}

func main() { command.Main("calibration", run) }
