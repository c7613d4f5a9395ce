// Command deployed is what a user deploys: it fits a model, and says how and what it found.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

func measurements(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 2))
	c.Observe("y", dist.Normal(mu, 1), c.Data("y"))
}

func main() {
	began := time.Now()
	y := torch.Must(torch.FromSlice([]float64{1.2, -0.4, 2.3, 0.7}))
	program, err := ppl.Compile(measurements, infer.Batch{"y": y})
	if err != nil {
		log.Fatal(err)
	}
	draws, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	summary, err := diag.Summary(draws, diag.SummaryOptions{})
	if err != nil {
		log.Fatal(err)
	}
	mu := summary.Rows[0]
	fmt.Printf("gradient %s\nmean %.6f\nmcse %.6f\nseconds %.3f\n", draws.Attrs()["gradient"], mu.Mean, mu.MCSEMean,
		time.Since(began).Seconds())
}
