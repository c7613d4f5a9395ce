// Command tutorial is the program of docs/tutorial.md: a linear regression with unknown noise, first its mode, then its
// posterior by SGHMC.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// n is the number of data.
const n = 50

// logPosterior is y ~ N(a + b x, s) with a, b ~ N(0, 1) and log s ~ N(0, 1): the mean over the data.
func logPosterior(p infer.Params, batch infer.Batch) (torch.Tensor, infer.Aux) {
	a, b, logS := p.Get("a").T(), p.Get("b").T(), p.Get("log_s").T()
	x, y := batch.Get("x").T(), batch.Get("y").T()

	logPrior := p.Flat.MustDot(p.Flat, false).MustMulScalar(ts.FloatScalar(-0.5/n), false)
	z := y.MustSub(x.MustMul(b, false).MustAdd(a, false), false).MustDiv(logS.MustExp(false), false)
	logLikelihood := z.MustSquare(false).MustMean(gotch.Double, false).MustMulScalar(ts.FloatScalar(-0.5), false).MustSub(logS, false)
	return torch.Of(logPrior.MustAdd(logLikelihood, false)), nil
}

// data makes 50 points of the line 1 + 0.5 x with noise of standard deviation 0.3.
func data() (batch infer.Batch, err error) {
	streams := torch.NewStreams(42, 1)
	err = torch.Do(func(s *torch.Scope) error {
		x := torch.Must(streams.Normal([]int64{n}, gotch.Double, torch.CPU)).MustSqueeze(false)
		noise := torch.Must(streams.Normal([]int64{n}, gotch.Double, torch.CPU)).MustSqueeze(false)
		y := torch.Must(torch.Combine(torch.Term{Coeff: 0.5, Tensor: x}, torch.Term{Coeff: 0.3, Tensor: noise})).
			MustAddScalar(ts.FloatScalar(1), false)
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
	climb, err := optim.Adam{LR: infer.Constant(0.05)}.Build(infer.Sum(logPosterior, 1))
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

	// The posterior, driven by Run: 16 chains from the mode.
	sample, err := sgmcmc.SGHMC{LR: infer.Constant(0.05), Temperature: infer.Constant(1.0 / n)}.Build(infer.Sum(logPosterior, 1))
	if err != nil {
		return err
	}
	result, err := oldrun.Run(ctx, sample, state.Position(), infer.Full(batch),
		oldrun.Config{Steps: 5000, BurnIn: 1000, Thin: 20, Chains: 16, Seed: 1})
	if err != nil {
		return err
	}
	rows, err := result.Draws.Summary()
	if err != nil {
		return err
	}
	return draws.FormatTable(os.Stdout, rows, nil)
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "tutorial:", err)
		os.Exit(1)
	}
}
