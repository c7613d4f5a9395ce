// Command migrate is the program of docs/tutorials/7-coming-from.md: one regression as a user of Stan, of Pyro and of
// posteriors would write it.
//
//	go run ./examples/migrate
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The first data set of Anscombe (1973), with x less its mean.
var (
	xs = []float64{1, -1, 4, 0, 2, 5, -3, -5, 3, -2, -4}
	ys = []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
)

// line is a regression with an unknown error.
func line(c *ppl.Ctx) {
	alpha := c.Sample("alpha", dist.Normal(0, 10))
	beta := c.Sample("beta", dist.Normal(0, 10))
	sigma := c.Sample("sigma", dist.Exponential(1))
	c.Plate("data", 0, func(c *ppl.Ctx) {
		mean := c.Deterministic("mean", alpha.Add(beta.Mul(c.Data("x"))))
		c.Observe("y", dist.Normal(mean, sigma), c.Data("y"))
	})
}

func batch() (infer.Batch, error) {
	x, err := torch.FromSlice(xs)
	if err != nil {
		return nil, err
	}
	y, err := torch.FromSlice(ys)
	return infer.Batch{"x": x, "y": y}, err
}

// stan is what CmdStan's sample does.
func stan(ctx context.Context, program *ppl.Program) (*draws.Draws, error) {
	return infer.Sample(ctx, program, hmc.NUTS{TargetAccept: 0.9},
		infer.Options{Chains: 4, Warmup: 1000, Draws: 1000, Seed: 1})
}

// pyro is what SVI with AutoNormal does, and then Predictive, at x = 6.
func pyro(ctx context.Context, program *ppl.Program) (posterior *draws.Draws, y []float64, err error) {
	posterior, err = infer.Sample(ctx, program, vi.Diag{}, infer.Options{Seed: 1})
	if err != nil {
		return nil, nil, err
	}
	at, err := torch.FromSlice([]float64{6})
	if err != nil {
		return nil, nil, err
	}
	predicted, err := ppl.Predictive{
		Model: line, Batch: infer.Batch{"x": at}, Seed: 1, Sites: []string{"y"},
	}.Posterior(posterior)
	if err != nil {
		return nil, nil, err
	}
	y, err = torch.ToSlice[float64](predicted["y"])
	return posterior, y, err
}

// logPosterior is the mean log posterior that posteriors takes: a function of the parameters and a batch.
func logPosterior(p infer.Params, b infer.Batch) (torch.Tensor, infer.Aux) {
	alpha, beta, logSigma := p.Get("alpha"), p.Get("beta"), p.Get("log_sigma")
	sigma := logSigma.Exp()
	logPrior := dist.Normal(0, 10).LogProb(alpha).Add(dist.Normal(0, 10).LogProb(beta)).
		Add(dist.Exponential(1).LogProb(sigma)).Add(logSigma) // with the Jacobian of the logarithm
	logLikelihood := dist.Normal(alpha.Add(beta.Mul(b.Get("x"))), sigma).LogProb(b.Get("y"))
	return logPrior.Div(len(ys)).Add(logLikelihood.Mean()), nil
}

// posteriors is a loop of one's own over build, init and update: 16 chains, a draw of each after every tenth update.
func posteriors(data infer.Batch) (*draws.Draws, error) {
	const chains, warmup, updates, thin = 16, 500, 2500, 10
	layout, err := infer.NewLayout(infer.Shapes{"alpha": {}, "beta": {}, "log_sigma": {}})
	if err != nil {
		return nil, err
	}
	start, err := infer.Zeros(layout)
	if err != nil {
		return nil, err
	}
	if start, err = start.Repeat(chains); err != nil {
		return nil, err
	}
	transform, err := sgmcmc.BAOA{LR: infer.Constant(0.2)}.Build(infer.Mean(logPosterior, len(ys)))
	if err != nil {
		return nil, err
	}
	state, err := infer.Init(transform, start, 1)
	if err != nil {
		return nil, err
	}
	kept, err := draws.New([]draws.Site{
		{Name: "alpha", Size: 1}, {Name: "beta", Offset: 1, Size: 1}, {Name: "sigma", Offset: 2, Size: 1},
	}, nil, chains)
	if err != nil {
		return nil, err
	}
	for i := range warmup + updates {
		if state, _, err = transform.Update(state, data); err != nil {
			return nil, err
		}
		if i < warmup || i%thin != 0 {
			continue
		}
		values, err := state.Position().Values()
		if err != nil {
			return nil, err
		}
		for k := range chains {
			values[3*k+2] = math.Exp(values[3*k+2])
		}
		if err := kept.Append(values, nil); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func run(ctx context.Context) error { return table(ctx, os.Stdout) }

func table(ctx context.Context, out io.Writer) error {
	data, err := batch()
	if err != nil {
		return err
	}
	program, err := ppl.Compile(line, data)
	if err != nil {
		return err
	}
	sampled, err := stan(ctx, program)
	if err != nil {
		return err
	}
	fitted, y, err := pyro(ctx, program)
	if err != nil {
		return err
	}
	looped, err := posteriors(data)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name  string
		draws *draws.Draws
	}{{"as in Stan", sampled}, {"as in Pyro", fitted}, {"as in posteriors", looped}} {
		summary, err := diag.Summary(r.draws, diag.SummaryOptions{Sites: []string{"alpha", "beta", "sigma"}})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-17s", r.name)
		for _, row := range summary.Rows {
			fmt.Fprintf(out, " %s %.3f ± %.3f ", row.Name, row.Mean, row.MCSEMean)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "y at x = 6: %.2f ± %.2f\n", mean(y), diag.MCSEMean([][]float64{y}))
	return nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

func main() { command.Main("migrate", run) }
