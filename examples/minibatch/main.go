// Command minibatch is the program of docs/tutorials/4-large-data.md: a posterior of 20,000 data by samplers that see
// few of them at a time.
//
//	go run ./examples/minibatch
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

const n = 20000 // data

// regression is a logistic regression. The plate takes its size from the data that the model is compiled on.
func regression(c *ppl.Ctx) {
	x := c.Data("x")
	w := c.Sample("w", dist.Normal(0, 1).Expand(x.Shape()[1]))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.BernoulliLogitGLM(x, w, 0), c.Data("y"))
	})
}

// simulate makes data of five standard normal features with known weights.
func simulate() (infer.Batch, error) {
	weights := []float64{1, -0.5, 0.25, 0, -1}
	rng := rand.New(rand.NewPCG(4, 1))
	x, y := make([]float64, n*len(weights)), make([]float64, n)
	for i := range y {
		eta := 0.0
		for j, w := range weights {
			v := rng.NormFloat64()
			x[i*len(weights)+j], eta = v, eta+w*v
		}
		if rng.Float64() < 1/(1+math.Exp(-eta)) {
			y[i] = 1
		}
	}
	xt, err := torch.FromSlice(x, n, len(weights))
	if err != nil {
		return nil, err
	}
	yt, err := torch.FromSlice(y)
	return infer.Batch{"x": xt, "y": yt}, err
}

// sampler is a row of the table.
type sampler struct {
	name    string
	method  infer.Method
	size    int // of a minibatch
	updates int // for each draw
}

// samplers see a minibatch in each update. A draw is kept after as many updates as a chain takes to forget.
var samplers = []sampler{
	{"SGHMC, step 0.1, 20 data", sgmcmc.SGHMC{LR: infer.Constant(0.1)}, 20, 100},
	{"SGHMC, step 0.02, 50 data", sgmcmc.SGHMC{LR: infer.Constant(0.02)}, 50, 250},
	{"SGHMC, step 0.02, 500 data", sgmcmc.SGHMC{LR: infer.Constant(0.02)}, 500, 250},
	{"SGNHT, step 0.02, 50 data", sgmcmc.SGNHT{LR: infer.Constant(0.02)}, 50, 250},
}

func run(ctx context.Context) error {
	_, err := table(ctx, os.Stdout)
	return err
}

// table compares the samplers with the Laplace approximation on all data, and returns the ratios of their deviations.
func table(ctx context.Context, out io.Writer) ([]ratio, error) {
	data, err := simulate()
	if err != nil {
		return nil, err
	}
	program, err := ppl.Compile(regression, data)
	if err != nil {
		return nil, err
	}
	reference, err := infer.Sample(ctx, program, laplace.DenseHessian{}, infer.Options{Chains: 1, Draws: 20000, Seed: 1})
	if err != nil {
		return nil, err
	}
	low, high, err := curvatures(reference)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "curvatures from %.2f to %.2f: at a step of 0.02 a chain forgets in about %.0f updates\n", low,
		high, 1/(0.02*low))
	var ratios []ratio
	var diagnoses strings.Builder
	fmt.Fprintf(out, "%-27s sd of the weights, 1 is right   passes over the data\n", "")
	for _, s := range samplers {
		batches, err := infer.Minibatches(data, infer.MinibatchOptions{Size: s.size, Seed: 1})
		if err != nil {
			return nil, err
		}
		options := infer.Options{Chains: 8, Warmup: 10 * s.updates, Draws: 100, Thin: s.updates, Seed: 1, Batches: batches}
		posterior, err := infer.Sample(ctx, program, s.method, options)
		if err != nil {
			return nil, err
		}
		r, err := compare(posterior, reference)
		if err != nil {
			return nil, err
		}
		passes := (options.Warmup + options.Draws*options.Thin) * s.size / n
		fmt.Fprintf(out, "%-27s %.2f ± %.2f                     %d\n", s.name, r.sd, r.sdError, passes)
		ratios = append(ratios, r)
		if err := diagnose(&diagnoses, s.name, posterior); err != nil {
			return nil, err
		}
	}
	_, err = io.WriteString(out, diagnoses.String())
	return ratios, err
}

// curvatures are the least and the largest of the mean log posterior along the weights, 1/(N sd²).
func curvatures(posterior *draws.Draws) (low, high float64, err error) {
	sd, err := posterior.SD("w")
	if err != nil {
		return 0, 0, err
	}
	widest, narrowest := slices.Max(sd), slices.Min(sd)
	return 1 / (n * widest * widest), 1 / (n * narrowest * narrowest), nil
}

// diagnose prints what says the most against a run, and what its draws are worth.
func diagnose(out io.Writer, name string, posterior *draws.Draws) error {
	report, err := diag.Diagnose(posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	summary, err := diag.Summary(posterior, diag.SummaryOptions{})
	if err != nil {
		return err
	}
	least := math.Inf(1)
	for _, r := range summary.Rows {
		least = min(least, r.ESSBulk)
	}
	worst := "no problems"
	if !report.OK() { // the serious ones come first; fmt.Print(report) has all, with advice
		worst = fmt.Sprintf("%v: %s", report.Findings[0].Severity, report.Findings[0].Code)
	}
	fmt.Fprintf(out, "%-27s %s, about %.0f effective draws of %d\n", name, worst, least, posterior.Total())
	return nil
}

// ratio has the standard deviations of a posterior over those of the reference, on average over the weights, and how
// far the means are, in standard deviations.
type ratio struct{ sd, sdError, mean, meanError float64 }

func compare(posterior, reference *draws.Draws) (ratio, error) {
	got, err := diag.Summary(posterior, diag.SummaryOptions{})
	if err != nil {
		return ratio{}, err
	}
	want, err := diag.Summary(reference, diag.SummaryOptions{})
	if err != nil {
		return ratio{}, err
	}
	var r ratio
	d := float64(len(want.Rows))
	for j, w := range want.Rows {
		g := got.Rows[j]
		r.sd += g.SD / w.SD / d
		r.sdError = math.Hypot(r.sdError, math.Hypot(g.MCSESD, w.MCSESD)/w.SD/d)
		r.mean = math.Max(r.mean, math.Abs(g.Mean-w.Mean)/w.SD)
		r.meanError = math.Max(r.meanError, math.Hypot(g.MCSEMean, w.MCSEMean)/w.SD)
	}
	return r, nil
}

func main() { command.Main("minibatch", run) }
