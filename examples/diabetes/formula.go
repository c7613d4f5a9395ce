package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	formulas "github.com/kelvin-ppl/kelvin/regression"
)

// byFormula is the second model by a formula, and its predictions.
var byFormula = formulas.Formula{
	Mean:   "diabetes ~ scale(glucose) + scale(mass) + scale(pedigree) + scale(pregnant) + scale(age) + I(scale(age)^2)",
	Family: formulas.Bernoulli{},
	Priors: formulas.Priors{"intercept": dist.Normal(0, 1.5), "b": dist.Normal(0, 1)},
}

// formulaPredicts fits the model by the formula and prints the probabilities of the visitors.
func formulaPredicts(ctx context.Context, out io.Writer, train *data.Table) error {
	visitors, err := data.CSV{Name: "visitors"}.Read(strings.NewReader(visitors))
	if err != nil {
		return err
	}
	model, err := byFormula.Fit(train)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, model, hmc.NUTS{}, infer.Options{Draws: 4000, Seed: 1})
	if err != nil {
		return err
	}
	expected, err := model.Expected(posterior, formulas.Rows{Table: visitors})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i := range visitors.Len() {
		p := expected.Pooled(i)
		low, high := interval(p)
		fmt.Fprintf(out, "by formula, visitor %d: %2.0f %%, from %2.0f to %2.0f %%\n", i+1, 100*mean(p), 100*low, 100*high)
	}
	return nil
}
