// Command checks is the program of docs/checks.md: predictive checks and power-scaling sensitivity, from a model and
// its draws.
//
//	go run ./examples/checks [-pictures DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/check"
	"github.com/kelvin-ppl/kelvin/diag/plot"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

var pictures = flag.String("pictures", "", "a folder for the pictures; none are drawn without it")

// frequencies are how many of 150 apple leaves had 0, 1, 2, ... adult red mites (Bliss and Fisher 1953).
var frequencies = []int{70, 38, 17, 10, 9, 3, 2, 1}

// mites are the counts of the leaves, one by one.
func mites() (y []float64) {
	for count, leaves := range frequencies {
		y = append(y, slices.Repeat([]float64{float64(count)}, leaves)...)
	}
	return y
}

// poisson gives all leaves one rate.
func poisson(c *ppl.Ctx) {
	rate := c.Sample("rate", dist.Exponential(1))
	c.Plate("leaves", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Poisson(rate), c.Data("y")) })
}

// negativeBinomial lets the rate differ from leaf to leaf, the less the larger phi is.
func negativeBinomial(c *ppl.Ctx) {
	rate, phi := c.Sample("rate", dist.Exponential(1)), c.Sample("phi", dist.Exponential(1))
	c.Plate("leaves", 0, func(c *ppl.Ctx) { c.Observe("y", dist.NegativeBinomial(rate, phi), c.Data("y")) })
}

// newcomb are Newcomb's measurements of the speed of light, in 10⁻⁹ s beyond 24.8 μs (Stigler 1977).
var newcomb = []float64{
	28, 26, 33, 24, 34, -44, 27, 16, 40, -2, 29, 22, 24, 21, 25, 30, 23, 29, 31, 19, 24, 20, 36, 32, 36, 28, 25, 21, 28,
	29, 37, 25, 28, 26, 30, 32, 36, 26, 30, 22, 36, 23, 27, 27, 28, 27, 31, 27, 26, 33, 26, 32, 32, 24, 39, 28, 24, 25,
	32, 25, 29, 27, 28, 29, 16, 23,
}

// light has a prior of the mean that is sure of the wrong value, for PowerScaling to notice.
func light(c *ppl.Ctx) {
	mu, sigma := c.Sample("mu", dist.Normal(20, 2)), c.Sample("sigma", dist.HalfNormal(20))
	c.Plate("measurements", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(mu, sigma), c.Data("y")) })
}

// compile binds a model to its data.
func compile(model ppl.Model, y []float64) (*ppl.Program, error) {
	data, err := torch.FromSlice(y)
	if err != nil {
		return nil, err
	}
	return ppl.Compile(model, infer.Batch{"y": data})
}

// zeros is how many of the data are 0.
func zeros(y []float64) float64 {
	n := 0.0
	for _, v := range y {
		if v == 0 {
			n++
		}
	}
	return n
}

// counts asks whether a model makes as many leaves without mites as there are, and draws all counts.
func counts(ctx context.Context, out io.Writer, name string, model ppl.Model) error {
	y := mites()
	program, err := compile(model, y)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		return err
	}
	predicted, err := program.Predict(posterior, 1)
	if err != nil {
		return err
	}
	replicates := predicted.Rows() // [draw][datum]: one site was observed, so a row of Predict is its data
	without, err := check.Statistic(y, replicates, zeros)
	if err != nil {
		return err
	}
	slices.Sort(without.Replicated)
	n := len(without.Replicated)
	fmt.Fprintf(out, "%-17s  %.0f leaves without mites, 90 %% of replicates %.0f to %.0f, P %.2f\n", name,
		without.Observed, without.Replicated[n/20], without.Replicated[n-1-n/20], without.P)
	return picture("checks-"+strings.ReplaceAll(name, " ", "-")+".png", func(w io.Writer) error {
		return plot.Rootogram(w, y, replicates, plot.Options{Title: name, Height: 3.5})
	})
}

// picture writes a file where pictures are asked for.
func picture(name string, draw func(w io.Writer) error) error {
	if *pictures == "" {
		return nil
	}
	return command.Picture(filepath.Join(*pictures, name), draw)
}

// continuous asks whether predictions of each measurement from the others are calibrated, and what the prior does.
func continuous(ctx context.Context, out io.Writer) error {
	program, err := compile(light, newcomb)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Draws: 4000, Seed: 1})
	if err != nil {
		return err
	}
	report, err := program.Check(posterior, 1)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		if f.Severity > diag.Info {
			fmt.Fprintf(out, "program.Check: %v, p = %.2f\n", f.Severity, f.Figure)
		}
	}
	predicted, err := program.Predict(posterior, 1)
	if err != nil {
		return err
	}
	loglik, err := program.LogLikelihood(posterior)
	if err != nil {
		return err
	}
	pit, err := check.LOOPIT(newcomb, predicted.Rows(), loglik.Rows())
	if err != nil {
		return err
	}
	if err := picture("checks-pit.png", func(w io.Writer) error {
		return plot.PIT(w, pit, plot.Options{Height: 3.5})
	}); err != nil {
		return err
	}
	sensitivities, err := program.PowerScaling(posterior)
	if err != nil {
		return err
	}
	for _, s := range sensitivities {
		fmt.Fprintf(out, "%-5s  prior about %.2f  likelihood about %.2f  %s\n", s.Name, s.Prior, s.Likelihood, s.Diagnosis)
	}
	return nil
}

func run(ctx context.Context) error { return tables(ctx, os.Stdout) }

func tables(ctx context.Context, out io.Writer) error {
	if err := counts(ctx, out, "Poisson", poisson); err != nil {
		return err
	}
	if err := counts(ctx, out, "negative binomial", negativeBinomial); err != nil {
		return err
	}
	return continuous(ctx, out)
}

func main() { command.Main("checks", run) }
