package hmc_test

import (
	"context"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/path"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// coin is a coin of unknown bias, of which 7 of 10 throws were heads.
func coin(c *ppl.Ctx) {
	p := c.Sample("p", dist.Beta(1, 1))
	c.Observe("heads", dist.Binomial(10, p), c.Data("heads"))
}

// The posterior of the coin's bias is Beta(8, 4), with the mean 2/3.
func Example() {
	err := func() error {
		heads := torch.Scalar(7)
		program, err := ppl.Compile(coin, infer.Batch{"heads": heads})
		if err != nil {
			return err
		}
		draws, err := infer.Sample(context.Background(), program, hmc.NUTS{}, infer.Options{Seed: 1})
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

// A cold posterior, at T = 1/4: of the coin's likelihood p⁷(1-p)³ the fourth power, Beta(29, 13).
func ExampleNUTS() {
	err := func() error {
		heads := torch.Scalar(7)
		program, err := ppl.Compile(coin, infer.Batch{"heads": heads})
		if err != nil {
			return err
		}
		method := hmc.NUTS{TargetAccept: 0.9, MaxDepth: 8, Temperature: infer.Constant(0.25)}
		draws, err := infer.Sample(context.Background(), program, method, infer.Options{Seed: 1})
		if err != nil {
			return err
		}
		mean, err := draws.Mean("p")
		if err != nil {
			return err
		}
		fmt.Println(draws.Total(), math.Abs(mean[0]-29./42) < 0.01)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output: 4000 true
}

// A measurement of x², with a small error, leaves two modes of x. The ladder tempers the likelihood alone, from the
// prior to the posterior, and its rungs move to where they are needed.
func ExampleExchange_path() {
	ctx := context.Background()
	err := func() error {
		program, err := ppl.Compile(func(c *ppl.Ctx) {
			x := c.Sample("x", dist.Normal(0, 10))
			c.Observe("y", dist.Normal(x.Square(), 1), c.Data("y"))
		}, infer.Batch{"y": torch.New([]float64{100}, 1)})
		if err != nil {
			return err
		}
		method := hmc.Exchange{Path: &path.Path{}, Ladder: path.Power(8, 5), Adapt: true}
		run, err := infer.Run(ctx, program, method, infer.Options{})
		if err != nil {
			return err
		}
		values, err := run.Draws.Values("x")
		if err != nil {
			return err
		}
		for chain, swaps := range run.Detail.(*hmc.Detail).Swaps {
			right := 0
			for _, x := range values[chain] {
				if x[0] > 0 {
					right++
				}
			}
			fmt.Println("both modes:", right > 100 && right < 900, "round trips:", swaps.SamplingTrips > 10)
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// both modes: true round trips: true
	// both modes: true round trips: true
	// both modes: true round trips: true
	// both modes: true round trips: true
}

// Two modes, at -4 and 4, which a single chain of NUTS does not leave.
func ExampleExchange() {
	ctx := context.Background()
	err := func() error {
		program, err := ppl.Compile(func(c *ppl.Ctx) {
			x := c.Sample("x", dist.Flat())
			c.Factor("modes", torch.Of(0).Sub(x.Abs().Sub(4).Square().Div(2)))
		}, nil)
		if err != nil {
			return err
		}
		draws, err := infer.Sample(ctx, program, hmc.Exchange{Ladder: hmc.GeometricLadder(1, 20, 6)}, infer.Options{})
		if err != nil {
			return err
		}
		values, err := draws.Values("x")
		if err != nil {
			return err
		}
		for _, chain := range values {
			low, high := 0, 0
			for _, x := range chain {
				if x[0] < 0 {
					low++
				} else {
					high++
				}
			}
			fmt.Println("both modes found:", min(low, high) > 100)
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// both modes found: true
	// both modes found: true
	// both modes found: true
	// both modes found: true
}

// NUTS in a loop of one's own: build, init, and one update for each transition. It stops when a mean
// is known well enough.
func ExampleNUTS_Build() {
	err := func() error {
		heads := torch.Scalar(7)
		batch := infer.Batch{"heads": heads}
		program, err := ppl.Compile(coin, batch)
		if err != nil {
			return err
		}
		transform, err := hmc.NUTS{Warmup: 200}.Build(program.Target())
		if err != nil {
			return err
		}
		start, err := infer.Zeros(program.Layout())
		if err != nil {
			return err
		}
		state, err := infer.Init(transform, start, 1)
		if err != nil {
			return err
		}
		n, sum, squares := 0., 0., 0.
		for n < 400 || math.Sqrt((squares/n-sum*sum/n/n)/n) > 0.005 {
			if state, _, err = transform.Update(state, batch); err != nil {
				return err
			}
			if state.Steps() <= 200 {
				continue
			}
			x, err := state.Position().Values()
			if err != nil {
				return err
			}
			p := 1 / (1 + math.Exp(-x[0]))
			n, sum, squares = n+1, sum+p, squares+p*p
		}
		fmt.Println(n < 5000, math.Abs(sum/n-2./3) < 0.05)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output: true true
}
