package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

const sparseData, sparseFeatures = 40, 60

// sparse is a regression with more features than data, of which about three are thought to matter.
func sparse(c *ppl.Ctx) {
	sigma := c.Sample("sigma", dist.HalfNormal(1))
	global := torch.Must(models.GlobalScale(3, sparseFeatures, sigma, sparseData))
	b := models.Horseshoe{Global: global, Slab: 2}.Sample(c, "b", sparseFeatures)
	c.Plate("data", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(c.Data("x").MatMul(b), sigma), c.Data("y"))
	})
}

// animals are counted twice in each of several places. How many there are is not known, nor how many are overlooked.
func animals(c *ppl.Ctx) {
	rate := c.Sample("rate", dist.LogNormal(2, 0.5))
	seen := c.Sample("seen", dist.Beta(4, 4))
	c.Plate("places", 0, func(c *ppl.Ctx) {
		there := c.Sample("there", dist.Truncated(dist.Poisson(rate), 0, 60))
		c.Observe("first", dist.Binomial(there, seen), c.Data("first"))
		c.Observe("second", dist.Binomial(there, seen), c.Data("second"))
	})
}

// sources has two kinds of data about one number.
func sources(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 10))
	c.Plate("measured", 0, func(c *ppl.Ctx) { c.Observe("measured", dist.Normal(mu, 1), c.Data("measured")) })
	c.Plate("reported", 0, func(c *ppl.Ctx) { c.Observe("reported", dist.Normal(mu, 1), c.Data("reported")) })
}

// tempered is a program with another target.
type tempered struct {
	*ppl.Program
	target infer.Target
}

func (t tempered) Target() infer.Target { return t.target }

// doubting draws from the posterior in which what was reported counts a quarter.
func doubting(ctx context.Context, program *ppl.Program) (*draws.Draws, error) {
	reported, err := program.WithLikelihood("reported")
	if err != nil {
		return nil, err
	}
	target, err := infer.TemperLikelihood(reported.Target(), 4)
	if err != nil {
		return nil, err
	}
	return infer.Sample(ctx, tempered{reported, target}, hmc.NUTS{}, infer.Options{Seed: 1})
}

// structured shows the three models.
func structured(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(5, 6))
	x, y := make([]float64, sparseData*sparseFeatures), make([]float64, sparseData)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range y {
		y[i] = 2*x[i*sparseFeatures] - 1.5*x[i*sparseFeatures+1] + 0.5*rng.NormFloat64()
	}
	batch := infer.Batch{"x": torch.New(x, sparseData, sparseFeatures),
		"y": torch.New(y)}
	program, err := ppl.Compile(sparse, batch)
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{TargetAccept: 0.95}, infer.Options{Seed: 1})
	if err != nil {
		return err
	}
	b, err := posterior.Mean("b")
	if err != nil {
		return err
	}
	fmt.Printf("The first four of %d coefficients, of which the first two are 2 and -1.5: %.2f\n\n", len(b), b[:4])

	counts, err := tensors(map[string][]float64{"first": {4, 3, 6, 2, 5}, "second": {5, 3, 4, 4, 6}})
	if err != nil {
		return err
	}
	if program, err = ppl.Compile(animals, counts); err != nil {
		return err
	}
	fmt.Printf("Animals: %v\n\n", program)

	data, err := tensors(map[string][]float64{"measured": {1, 2, 1.5, 1.7}, "reported": {5, 6, 5.5, 5.2}})
	if err != nil {
		return err
	}
	if program, err = ppl.Compile(sources, data); err != nil {
		return err
	}
	if posterior, err = doubting(ctx, program); err != nil {
		return err
	}
	rows, err := posterior.Summary()
	if err != nil {
		return err
	}
	fmt.Println("A mean of measurements and of reports, which count a quarter:")
	return draws.FormatTable(os.Stdout, rows, nil)
}

// tensors are columns as a batch.
func tensors(columns map[string][]float64) (infer.Batch, error) {
	b := infer.Batch{}
	for name, x := range columns {
		t, err := torch.FromSlice(x)
		if err != nil {
			return nil, err
		}
		b[name] = t
	}
	return b, nil
}
