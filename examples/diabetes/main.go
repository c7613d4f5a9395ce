// Command diabetes is the program of docs/tutorials/1-logistic-regression.md: from a CSV file to decisions.
//
//	go run ./examples/diabetes
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/loo"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

var path = flag.String("csv", "examples/internal/pima/pima.csv", "the data")

// read is the file as a table. A zero cannot be measured in five of its columns.
func read(path string) (*data.Table, error) {
	zero := []string{"0"}
	return data.CSV{
		MissingIn: map[string][]string{
			"glucose": zero, "pressure": zero, "triceps": zero, "insulin": zero, "mass": zero,
		},
	}.Open(path)
}

// split drops the rows that lack what the models need, and keeps a quarter of the others for a test.
func split(all *data.Table) (train, test *data.Table, err error) {
	complete, _, err := all.DropMissing("glucose", "mass", "pedigree", "pregnant", "age", "diabetes")
	if err != nil {
		return nil, nil, err
	}
	return complete.Split(data.SplitOptions{Test: 0.25, Seed: 1, Stratify: "diabetes"})
}

// linear is the first model's description of the data: five numbers, each standardised, and the diagnosis.
var linear = data.Spec{
	Terms: []data.Term{
		{Column: "glucose", Scale: 1}, {Column: "mass", Scale: 1}, {Column: "pedigree", Scale: 1},
		{Column: "pregnant", Scale: 1}, age,
	},
	Outcome: data.Term{Column: "diabetes"},
}

var age = data.Term{Column: "age", Scale: 1}

// curved has the square of the age as well.
var curved = data.Spec{
	Terms:   append(linear.Terms[:5:5], data.Term{Product: []data.Term{age, age}}),
	Outcome: linear.Outcome,
}

// regression is a logistic regression of "y" on "x" with normal priors on the standardised weights.
func regression(scale float64) ppl.Model {
	return func(c *ppl.Ctx) {
		x := c.Data("x")
		intercept := c.Sample("intercept", dist.Normal(0, 1.5))
		w := c.Sample("w", dist.Normal(0, scale).Expand(x.Shape()[1]))
		c.Plate("patients", 0, func(c *ppl.Ctx) {
			c.Observe("y", dist.BernoulliLogitGLM(x, w, intercept), c.Data("y"))
		})
	}
}

// fitted is a model with its posterior.
type fitted struct {
	design    *data.Design
	frame     *data.Frame // of the training data
	program   *ppl.Program
	posterior *draws.Draws
}

// fit learns the design from the training data, compiles the model and draws from its posterior.
func fit(ctx context.Context, spec data.Spec, train *data.Table) (*fitted, error) {
	design, err := spec.Fit(train)
	if err != nil {
		return nil, err
	}
	frame, err := design.Frame(train)
	if err != nil {
		return nil, err
	}
	tensors, err := batch.Of(frame)
	if err != nil {
		return nil, err
	}
	program, err := ppl.Compile(regression(1), tensors)
	if err != nil {
		return nil, err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Draws: 4000, Seed: 1})
	return &fitted{design, frame, program, posterior}, err
}

func run(ctx context.Context) error { return workflow(ctx, os.Stdout, *path) }

func workflow(ctx context.Context, out io.Writer, path string) error {
	all, err := read(path)
	if err != nil {
		return err
	}
	fmt.Fprint(out, all)

	train, test, err := split(all)
	if err != nil {
		return err
	}
	dropped := all.Len() - train.Len() - test.Len()
	fmt.Fprintf(out, "\n%d rows dropped, %d for training, %d for testing\n\n", dropped, train.Len(), test.Len())

	for _, scale := range []float64{10, 1} {
		if err := priorCheck(out, scale, train); err != nil {
			return err
		}
	}

	first, err := fit(ctx, linear, train)
	if err != nil {
		return err
	}
	report, err := diag.Diagnose(first.posterior, diag.DiagnoseOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", report)
	if err := coefficients(out, first); err != nil {
		return err
	}
	if err := ageCheck(out, "linear", first, train); err != nil {
		return err
	}

	second, err := fit(ctx, curved, train)
	if err != nil {
		return err
	}
	if report, err = diag.Diagnose(second.posterior, diag.DiagnoseOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s", report)
	if err := ageCheck(out, "curved", second, train); err != nil {
		return err
	}
	if err := compare(out, first, second); err != nil {
		return err
	}

	if err := newPatients(out, second); err != nil {
		return err
	}
	if err := decide(out, second, test); err != nil {
		return err
	}
	return formulaPredicts(ctx, out, train)
}

// compare ranks the models by leave-one-out cross-validation.
func compare(out io.Writer, first, second *fitted) error {
	a, err := first.program.LOO(first.posterior)
	if err != nil {
		return err
	}
	b, err := second.program.LOO(second.posterior)
	if err != nil {
		return err
	}
	ranked, err := loo.Compare([]loo.Model{a.Model("linear"), b.Model("curved")}, loo.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d and %d observations where LOO fails\n", a.Unreliable, b.Unreliable)
	for _, m := range ranked {
		fmt.Fprintf(out, "%s  elpd %.0f  difference %.0f, standard error %.0f\n", m.Name, m.ELPD, m.Diff, m.SEDiff)
	}
	return nil
}

func main() { command.Main("diabetes", run) }
