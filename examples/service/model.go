package main

import (
	"context"
	"io"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// regression is y = a + xw + noise, with the columns of the design in x.
func regression(c *ppl.Ctx) {
	x := c.Data("x")
	a, w := c.Sample("a", dist.Normal(0, 10)), c.Sample("w", dist.Normal(0, 10).Expand(x.Shape()[1]))
	s := c.Sample("s", dist.HalfNormal(5))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(x.MatMul(w).Add(a), s), c.Data("y"))
	})
}

// sales are a hundred made-up days: what a shop sells, 1 + 2 hours + 0.5 in the south, and noise of 0.5.
func sales() (*data.Table, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	hours, sold, shops := make([]float64, 100), make([]float64, 100), make([]string, 100)
	for i := range hours {
		hours[i], shops[i] = 4*rng.Float64(), "north"
		sold[i] = 1 + 2*hours[i] + 0.5*rng.NormFloat64()
		if i%2 == 1 {
			shops[i] = "south"
			sold[i] += 0.5
		}
	}
	return data.NewTable(data.Column{Name: "hours", Numbers: hours}, data.Column{Name: "shop", Labels: shops},
		data.Column{Name: "sold", Numbers: sold})
}

// learn is what the design keeps of the data: the levels of the factor.
func learn(t *data.Table) (*data.Design, error) {
	return data.Spec{Terms: []data.Term{{Column: "hours"}, {Column: "shop"}}, Outcome: data.Term{Column: "sold"}}.Fit(t)
}

// compiled is the model of the days, with their design.
func compiled() (*ppl.Program, *data.Design, error) {
	table, err := sales()
	if err != nil {
		return nil, nil, err
	}
	design, err := learn(table)
	if err != nil {
		return nil, nil, err
	}
	frame, err := design.Frame(table)
	if err != nil {
		return nil, nil, err
	}
	tensors, err := batch.Of(frame)
	if err != nil {
		return nil, nil, err
	}
	program, err := ppl.Compile(regression, tensors)
	return program, design, err
}

// fit samples the posterior of the days.
func fit(ctx context.Context) (*draws.Draws, *data.Design, error) {
	program, design, err := compiled()
	if err != nil {
		return nil, nil, err
	}
	d, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Draws: 250, Seed: 1, Observer: infer.Silent})
	return d, design, err
}

// export writes the model with its draws and its design to a file that needs no libtorch.
func export(path string, d *draws.Draws) error {
	program, design, err := compiled()
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, func(w io.Writer) error { return program.ExportFitted(w, d, design) })
}
