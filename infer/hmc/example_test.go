package hmc_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/hmc/kernel"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// coin is a coin of unknown bias, of which 7 of 10 throws were heads.
func coin(c *ppl.Ctx) {
	p := c.Sample("p", dist.Beta(1, 1))
	c.Observe("heads", dist.Binomial(10, p), c.Data("heads"))
}

// The posterior of the coin's bias is Beta(8, 4), with the mean 2/3.
func ExampleSample() {
	err := func() error {
		heads, err := torch.Scalar(7)
		if err != nil {
			return err
		}
		program, err := ppl.Compile(coin, infer.Batch{"heads": heads})
		if err != nil {
			return err
		}
		draws, err := hmc.Sample(context.Background(), program, hmc.Options{Seed: 1})
		if err != nil {
			return err
		}
		report, err := diag.Diagnose(draws, diag.DiagnoseOptions{})
		if err != nil {
			return err
		}
		mean, err := draws.Mean("p")
		if err != nil {
			return err
		}
		fmt.Printf("%d chains of %d draws, mean within 0.02 of 2/3: %v, warnings: %v\n",
			draws.Chains(), draws.Len(0), math.Abs(mean[0]-2./3) < 0.02, !report.OK())
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output: 4 chains of 1000 draws, mean within 0.02 of 2/3: true, warnings: false
}

// Draws as they come: a running mean that stops when it is known well enough.
func ExampleStream() {
	heads, err := torch.Scalar(7)
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := ppl.Compile(coin, infer.Batch{"heads": heads})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, sum, squares := 0., 0., 0.
	for draw, err := range hmc.Stream(context.Background(), program, hmc.Options{Seed: 1, Draws: 100_000, Warmup: 200}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if draw.Warmup {
			continue
		}
		p := 1 / (1 + math.Exp(-draw.X[0]))
		n, sum, squares = n+1, sum+p, squares+p*p
		if n > 400 && math.Sqrt((squares/n-sum*sum/n/n)/n) < 0.005 {
			break
		}
	}
	fmt.Println(n < 5000, math.Abs(sum/n-2./3) < 0.05)
	// Output: true true
}

// As a method, NUTS is built like any other; the temperature makes a cold posterior, here with a quarter of the variance.
func ExampleNUTS() {
	heads, err := torch.Scalar(7)
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := infer.Batch{"heads": heads}
	program, err := ppl.Compile(coin, batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	method := hmc.NUTS{NUTS: kernel.NUTS{MaxDepth: 8}, Adaptation: hmc.Adaptation{Warmup: 200, Temperature: infer.Constant(0.25)}}
	transform, err := method.Build(infer.Sum(program.LogPosterior(), 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	start, err := program.Init(batch, ppl.FromPrior, 4, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := oldrun.Run(context.Background(), transform, start, infer.Full(batch), oldrun.Config{Steps: 1200, BurnIn: 200, Chains: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	sd, err := result.Draws.SD("p")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Draws.Total(), sd[0] > 0.25 && sd[0] < 0.4) // log-odds: about 0.65/2
	// Output: 4000 true
}
