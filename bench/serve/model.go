package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/store"
)

// columns of the regression: with intercept and noise 20 numbers.
const columns = 18

// regression is that of examples/service, whose draws it reads.
func regression(c *ppl.Ctx) {
	x := c.Data("x")
	a, w := c.Sample("a", dist.Normal(0, 10)), c.Sample("w", dist.Normal(0, 10).Expand(x.Shape()[1]))
	s := c.Sample("s", dist.HalfNormal(5))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(x.MatMul(w).Add(a), s), c.Data("y"))
	})
}

// writeFiles fits made-up data and writes what both services read. It returns a request of one row.
func writeFiles(ctx context.Context, dir string) (body string, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	spec := data.Spec{Outcome: data.Term{Column: "y"}}
	row := map[string]float64{}
	var all []data.Column
	y := make([]float64, 200)
	for k := range columns {
		c := data.Column{Name: fmt.Sprintf("x%d", k), Numbers: make([]float64, len(y))}
		for i := range y {
			c.Numbers[i] = rng.NormFloat64()
			y[i] += c.Numbers[i] * float64(k%3)
		}
		row[c.Name] = rng.NormFloat64()
		all, spec.Terms = append(all, c), append(spec.Terms, data.Term{Column: c.Name})
	}
	for i := range y {
		y[i] += rng.NormFloat64()
	}
	table, err := data.NewTable(append(all, data.Column{Name: "y", Numbers: y})...)
	if err != nil {
		return "", err
	}
	design, err := spec.Fit(table)
	if err != nil {
		return "", err
	}
	frame, err := design.Frame(table)
	if err != nil {
		return "", err
	}
	tensors, err := batch.Of(frame)
	if err != nil {
		return "", err
	}
	if err := fitted(ctx, dir, tensors, design); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"rows": []any{row}})
	return string(text), err
}

// fitted writes 4,000 draws, the design and the export.
func fitted(ctx context.Context, dir string, tensors infer.Batch, design *data.Design) error {
	program, err := ppl.Compile(regression, tensors)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Chains: 4, Draws: 1000, Seed: 1,
		Observer: infer.Silent})
	if err != nil {
		return err
	}
	text, err := json.Marshal(design)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, "design.json"), text, 0o644); err != nil {
		return err
	}
	if err := store.WriteZarr(filepath.Join(dir, "run.zarr"), &store.Inference{Posterior: posterior},
		store.ZarrOptions{}); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, "model.kelvin"), func(w io.Writer) error {
		return program.ExportFitted(w, posterior, design)
	})
}
