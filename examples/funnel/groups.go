package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kelvin-ppl/kelvin/data"
	tensors "github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/stat"
)

// yields are grams of dyestuff from five samples of each of six batches (Davies and Goldsmith 1972), as of a file.
func yields() string {
	var b strings.Builder
	b.WriteString("batch,yield\n")
	for level, row := range [][]int{
		{1545, 1440, 1440, 1520, 1580}, {1540, 1555, 1490, 1560, 1495}, {1595, 1550, 1605, 1510, 1560},
		{1445, 1440, 1595, 1465, 1545}, {1595, 1630, 1515, 1635, 1625}, {1520, 1455, 1450, 1480, 1445},
	} {
		for _, v := range row {
			fmt.Fprintf(&b, "%c,%d\n", 'A'+level, v)
		}
	}
	return b.String()
}

// dyes is a population of batches, and samples that each belong to one of them.
func dyes(batches int) ppl.Model {
	return func(c *ppl.Ctx) {
		mu := c.Sample("mu", dist.Normal(1500, 100))
		between := c.Sample("between", dist.HalfNormal(50))
		within := c.Sample("within", dist.HalfNormal(50))
		var yield torch.Tensor
		c.Plate("batches", batches, func(c *ppl.Ctx) {
			yield = c.Sample("batch", dist.Normal(mu, between))
		})
		c.Plate("samples", 0, func(c *ppl.Ctx) {
			c.Observe("yield", dist.Normal(yield.Take(c.Data("batch")), within), c.Data("y"))
		})
	}
}

// groups leads from the file to a summary that has the names of the batches.
func groups(ctx context.Context, out io.Writer) (*diag.Table, error) {
	table, err := data.CSV{Name: "dyes.csv"}.Read(strings.NewReader(yields()))
	if err != nil {
		return nil, err
	}
	design, err := data.Spec{
		Columns: []string{"batch"}, Outcome: data.Term{Column: "yield"},
	}.Fit(table)
	if err != nil {
		return nil, err
	}
	frame, err := design.Frame(table)
	if err != nil {
		return nil, err
	}
	batch, err := tensors.Of(frame) // "batch": 0, 0, ..., 5; "y": the yields
	if err != nil {
		return nil, err
	}
	levels := design.Levels("batch") // A to F
	model := ppl.Reparam(dyes(len(levels)), map[string]ppl.Reparameterisation{"batch": ppl.NonCentred})
	program, err := ppl.Compile(model, batch)
	if err != nil {
		return nil, err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{TargetAccept: 0.99}, infer.Options{Draws: 4000, Seed: 1})
	if err != nil {
		return nil, err
	}
	report, err := diag.Diagnose(posterior, diag.DiagnoseOptions{})
	if err != nil {
		return nil, err
	}
	fmt.Fprint(out, report)
	sites := []string{"batch", "mu", "between", "within"} // without them sites are in the order of their names
	summary, err := diag.Summary(posterior, diag.SummaryOptions{Sites: sites})
	if err != nil {
		return nil, err
	}
	for i, level := range levels {
		summary.Rows[i].Name = "batch " + level
	}
	for _, r := range summary.Rows {
		fmt.Fprintf(out, "%-8s %7.1f ± %.1f  sd %.1f ± %.1f\n", r.Name, r.Mean, r.MCSEMean, r.SD, r.MCSESD)
	}
	samples, err := another(posterior)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "a sample of another batch: %.0f, sd %.0f\n", stat.Mean(samples, nil), stat.StdDev(samples, nil))
	return summary, byFormula(ctx, out, table)
}

// byFormula is the same model by a formula.
func byFormula(ctx context.Context, out io.Writer, table *data.Table) error {
	model, err := regression.Formula{
		Mean: "yield ~ (1 | batch)",
		Priors: regression.Priors{"intercept": dist.Normal(1500, 100), "sd_batch": dist.HalfNormal(50),
			"sigma": dist.HalfNormal(50)},
	}.Fit(table)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, model, hmc.NUTS{TargetAccept: 0.99}, infer.Options{Draws: 4000, Seed: 1})
	if err != nil {
		return err
	}
	summary, err := model.Summary(posterior)
	if err != nil {
		return err
	}
	for _, r := range summary.Rows {
		fmt.Fprintf(out, "%-19s %7.1f ± %.1f  sd %.1f ± %.1f\n", r.Name, r.Mean, r.MCSEMean, r.SD, r.MCSESD)
	}
	return nil
}

// another predicts samples of a batch that was not seen, one for each draw.
func another(posterior *draws.Draws) ([]float64, error) {
	population, err := posterior.Select("mu", "between", "within") // no "batch": it is drawn from the population
	if err != nil {
		return nil, err
	}
	first, err := torch.FromSlice([]float64{0}) // the sample is of the first of one batch
	if err != nil {
		return nil, err
	}
	predictive := ppl.Predictive{Model: dyes(1), Batch: infer.Batch{"batch": first}, Seed: 2, Sites: []string{"yield"}}
	predicted, err := predictive.Posterior(population)
	if err != nil {
		return nil, err
	}
	return torch.ToSlice[float64](predicted["yield"])
}
