// Command language is the program of docs/language.md: a hierarchical model of eight schools as a Go function, fitted,
// criticised and changed.
package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/stat"
)

// schools is a meta-analysis of eight experiments (Rubin 1981): each school has an effect of its own, theta, and y
// measures it with the known standard error sigma.
func schools(c *ppl.Ctx) {
	mu := c.Sample("mu", dist.Normal(0, 5))
	tau := c.Sample("tau", dist.HalfCauchy(5))
	c.Plate("schools", 8, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Normal(mu, tau))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// free is the same model with theta = mu + tau z: a posterior without the funnel.
var free = ppl.Reparam(schools, map[string]ppl.Reparameterisation{"theta": ppl.NonCentred})

// twoKinds has its discrete choice summed out: each effect is either nearly nothing or one of a wide population.
func twoKinds(c *ppl.Ctx) {
	none := c.Sample("none", dist.Beta(1, 1))
	wide := c.Sample("wide", dist.HalfNormal(20))
	weights := torch.Stack(-1, none, torch.Of(1).Sub(none))
	c.Plate("schools", 8, func(c *ppl.Ctx) {
		theta := c.Sample("theta", dist.Mixture(weights, dist.Normal(0, 1), dist.Normal(0, wide)))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// kinds is the same with a discrete variable for each school, which Compile sums out.
func kinds(c *ppl.Ctx) {
	none := c.Sample("none", dist.Beta(1, 1))
	wide := c.Sample("wide", dist.HalfNormal(20))
	c.Plate("schools", 8, func(c *ppl.Ctx) {
		kind := c.Sample("kind", dist.Bernoulli(torch.Of(1).Sub(none)))
		scale := torch.Stack(0, torch.Of(1), wide).Take(kind)
		theta := c.Sample("theta", dist.Normal(0, scale))
		c.Observe("y", dist.Normal(theta, c.Data("sigma")), c.Data("y"))
	})
}

// regimes is a series whose mean depends on a hidden state, which stays as it is with probability stay.
func regimes(c *ppl.Ctx) {
	stay := c.Sample("stay", dist.Beta(8, 2))
	level := c.Sample("level", dist.ImproperUniform(support.Ordered, nil, []int{2}))
	c.Factor("levels", dist.Normal(0, 5).LogProb(level).Sum())
	y := c.Data("y")
	up := torch.Stack(0, torch.Of(1).Sub(stay), stay) // the probability of state 1 after 0, and after 1
	state := torch.Of(0)
	c.Markov(y.Shape()[0], func(c *ppl.Ctx, t int) {
		state = c.Sample("state", dist.Bernoulli(up.Take(state)))
		c.Observe("y", dist.Normal(level.Take(state), 1), y.At(t))
	})
}

// paths are the hidden states under each draw: their probabilities, and the most probable path.
func paths(program *ppl.Program, posterior *draws.Draws) (probable, best *draws.Draws, err error) {
	discrete := ppl.InferDiscrete{Program: program}
	if probable, err = discrete.Marginals(posterior); err == nil {
		best, err = discrete.Mode(posterior)
	}
	return probable, best, err
}

// volatility is a series of returns whose variance depends on the last return and the last variance, GARCH(1,1).
func volatility(c *ppl.Ctx) {
	base := c.Sample("base", dist.HalfNormal(1))
	weights := c.Sample("weights", dist.Dirichlet(torch.Zeros(3).Add(1))) // of last return, last variance, neither
	y := c.Data("returns")
	n := y.Shape()[0]
	_, variance := c.Scan(n, []torch.Tensor{base}, func(c *ppl.Ctx, t int, carry []torch.Tensor) (
		next []torch.Tensor, out torch.Tensor) {
		v := carry[0]
		after := base.Mul(weights.At(2)).Add(weights.At(0).Mul(y.At(t).Square())).Add(weights.At(1).Mul(v))
		return []torch.Tensor{after}, v
	})
	c.Plate("time", 0, func(c *ppl.Ctx) {
		c.Observe("y", dist.Normal(0, variance.Sqrt()), y)
	})
}

// returns are a simulated year of the model volatility, with weights 0.2, 0.7 and 0.1.
func returns() (infer.Batch, error) {
	rng := rand.New(rand.NewPCG(1, 2))
	y, v := make([]float64, 250), 1.0
	for t := range y {
		y[t] = math.Sqrt(v) * rng.NormFloat64()
		v = 0.1 + 0.2*y[t]*y[t] + 0.7*v
	}
	t, err := torch.FromSlice(y)
	return infer.Batch{"returns": t}, err
}

func data() (infer.Batch, error) {
	y, err := torch.FromSlice([]float64{28, 8, -3, 7, -1, 1, 18, 12})
	if err != nil {
		return nil, err
	}
	sigma, err := torch.FromSlice([]float64{15, 10, 16, 11, 9, 11, 10, 18})
	return infer.Batch{"y": y, "sigma": sigma}, err
}

// fit draws from the posterior of a model.
func fit(ctx context.Context, model ppl.Model, batch infer.Batch) (*draws.Draws, error) {
	program, err := ppl.Compile(model, batch)
	if err != nil {
		return nil, err
	}
	return infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: 1})
}

func run(ctx context.Context) error {
	batch, err := data()
	if err != nil {
		return err
	}

	fmt.Println("What the prior predicts for the first school, before any data:")
	prior, err := ppl.Predictive{Model: schools, Batch: batch, Seed: 1, Sites: []string{"y"}}.Prior(4000)
	if err != nil {
		return err
	}
	if err := quantiles(prior["y"]); err != nil {
		return err
	}

	fmt.Println("\nThe posterior:")
	posterior, err := fit(ctx, free, batch)
	if err != nil {
		return err
	}
	rows, err := posterior.Summary()
	if err != nil {
		return err
	}
	if err := draws.FormatTable(os.Stdout, rows, nil); err != nil {
		return err
	}

	fmt.Println("\nA new measurement in the first school:")
	predicted, err := ppl.Predictive{Model: free, Batch: batch, Seed: 2, Sites: []string{"y"}}.Posterior(posterior)
	if err != nil {
		return err
	}
	if err := quantiles(predicted["y"]); err != nil {
		return err
	}

	likelihood, err := ppl.Predictive{Model: free, Batch: batch}.LogLikelihood(posterior)
	if err != nil {
		return err
	}
	shape, err := torch.Shape(likelihood["y"])
	if err != nil {
		return err
	}
	fmt.Printf("\nLog likelihoods of single observations: %v\n", shape)

	did := ppl.Do(schools, ppl.Values{"mu": torch.Scalar(10)})
	moved, err := ppl.Predictive{Model: did, Batch: batch, Seed: 3, Sites: []string{"y"}}.Prior(4000)
	if err != nil {
		return err
	}
	fmt.Println("\nIf the population's mean were set to 10:")
	if err := quantiles(moved["y"]); err != nil {
		return err
	}

	program, err := ppl.Compile(twoKinds, batch)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe mixture's unconstrained parameters: %v\n\n", program.Layout())

	if program, err = ppl.Compile(kinds, batch); err != nil {
		return err
	}
	fmt.Printf("The same with discrete variables: %v\n\n", program)
	if err := hidden(ctx); err != nil {
		return err
	}

	year, err := returns()
	if err != nil {
		return err
	}
	series, err := fit(ctx, volatility, year)
	if err != nil {
		return err
	}
	if rows, err = series.Summary(); err != nil {
		return err
	}
	fmt.Printf("A series whose variance changes; %s:\n", series.Attrs()["gradient"])
	if err := draws.FormatTable(os.Stdout, rows, nil); err != nil {
		return err
	}
	fmt.Println()

	if err := structured(ctx); err != nil {
		return err
	}

	graph, err := ppl.Render(schools, batch)
	if err != nil {
		return err
	}
	fmt.Print(graph)
	return nil
}

// hidden fits the model regimes to numbers around 0 and then around 3, and prints the states under the last draw.
func hidden(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(3, 4))
	y := make([]float64, 30)
	for t := range y {
		y[t] = rng.NormFloat64()
		if t >= 18 {
			y[t] += 3
		}
	}
	t, err := torch.FromSlice(y)
	if err != nil {
		return err
	}
	program, err := ppl.Compile(regimes, infer.Batch{"y": t})
	if err != nil {
		return err
	}
	posterior, err := infer.Sample(ctx, program, hmc.NUTS{}, infer.Options{Seed: 1})
	if err != nil {
		return err
	}
	last, err := posterior.Slice(posterior.MinLen()-1, posterior.MinLen())
	if err != nil {
		return err
	}
	_, best, err := paths(program, last)
	if err != nil {
		return err
	}
	fmt.Printf("The hidden states: %v\n\n", best.Row(0, 0)[:best.Dim()])
	return nil
}

// quantiles prints those of the first school's draws, from a tensor of shape [draws, 8].
func quantiles(t torch.Tensor) error {
	y, err := torch.ToSlice[float64](t)
	if err != nil {
		return err
	}
	var first []float64
	for i := 0; i < len(y); i += 8 {
		first = append(first, y[i])
	}
	stat.SortWeighted(first, nil)
	for _, p := range []float64{0.05, 0.5, 0.95} {
		fmt.Printf("  %2.0f %%: %6.1f\n", 100*p, stat.Quantile(p, stat.Empirical, first, nil))
	}
	return nil
}

func main() { command.Main("language", run) }
