// Command tutorial is the program of docs/tutorial.md: a linear regression with unknown noise, first its mode, then its
// posterior by SGHMC.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// n is the number of data.
const n = 50

// logPosterior is y ~ N(a + b x, s) with a, b ~ N(0, 1) and log s ~ N(0, 1): the mean over the data.
func logPosterior(p infer.Params, batch infer.Batch) (torch.Tensor, infer.Aux) {
	a, b, logS := p.Get("a"), p.Get("b"), p.Get("log_s")
	x, y := batch.Get("x"), batch.Get("y")

	logPrior := a.Square().Add(b.Square()).Add(logS.Square()).Mul(-0.5)
	z := y.Sub(x.Mul(b).Add(a)).Div(logS.Exp())
	logLikelihood := z.Square().Mul(-0.5).Sub(logS)
	return logPrior.Div(n).Add(logLikelihood.Mean()), nil
}

// data makes 50 points of the line 1 + 0.5 x with noise of standard deviation 0.3.
func data() (batch infer.Batch, err error) {
	streams := torch.NewStreams(42, 1)
	err = torch.Do(func(s *torch.Scope) error {
		x := torch.Must(streams.Normal([]int{n}, gotch.Double, torch.CPU)).Squeeze(0)
		noise := torch.Must(streams.Normal([]int{n}, gotch.Double, torch.CPU)).Squeeze(0)
		y := x.Mul(0.5).Add(noise.Mul(0.3)).Add(1)
		s.Keep(x, y)
		batch = infer.Batch{"x": x, "y": y}
		return nil
	})
	return batch, err
}

func run(ctx context.Context) error {
	batch, err := data()
	if err != nil {
		return err
	}
	layout, err := infer.NewLayout(infer.Shapes{"a": {}, "b": {}, "log_s": {}})
	if err != nil {
		return err
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		return err
	}

	// The mode, with the loop in hand.
	target := infer.Mean(logPosterior, n)
	climb, err := optim.Adam{LR: infer.Constant(0.05)}.Build(target)
	if err != nil {
		return err
	}
	state, err := climb.Init(start)
	if err != nil {
		return err
	}
	for range 500 {
		if state, _, err = climb.Update(state, batch); err != nil {
			return err
		}
	}
	mode, err := state.Position().Values()
	if err != nil {
		return err
	}
	fmt.Printf("mode: a = %.3f, b = %.3f, log s = %.3f\n\n", mode[0], mode[1], mode[2])

	// The posterior, through the one door: 16 chains from the mode.
	program := infer.Handwritten(target, state.Position(), batch)
	posterior, err := infer.Sample(ctx, program, sgmcmc.SGHMC{LR: infer.Constant(0.05)},
		infer.Options{Chains: 16, Warmup: 1000, Draws: 200, Thin: 20, Seed: 1})
	if err != nil {
		return err
	}
	rows, err := posterior.Summary()
	if err != nil {
		return err
	}
	return draws.FormatTable(os.Stdout, rows, nil)
}

func main() { command.Main("tutorial", run) }
