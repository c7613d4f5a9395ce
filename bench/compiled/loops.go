package main

import (
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/statespace"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// ofLoops are models that are loops over time, and models with discrete variables beside the same ones whose sums are
// written out.
func ofLoops() []model {
	return []model{
		{name: "arma11_scan", model: posteriors.ARMA(200), batch: infer.Batch{"y": noise(200, 3)}},
		{name: "hmm4_scan", model: hiddenMarkov(400, 4, true), batch: infer.Batch{"y": noise(400, 4)}},
		{name: "hmm4_discrete", model: hiddenStates(400, 4), batch: infer.Batch{"y": noise(400, 4)}},
		{name: "mixture3_by_hand", model: mixture(3, false), batch: infer.Batch{"y": noise(500, 5)}},
		{name: "mixture3_discrete", model: mixture(3, true), batch: infer.Batch{"y": noise(500, 5)}},
		{name: "hmm4_products_scan", model: hiddenMarkov(400, 4, false), batch: infer.Batch{"y": noise(400, 4)}},
		{
			name: "local_level", model: series(level), batch: infer.Batch{"y": noise(200, 6)},
			hand: "level", data: [][]float64{torch.Must(torch.ToSlice[float64](noise(200, 6)))},
		},
		{name: "local_level_diffuse", model: series(diffuseLevel), batch: infer.Batch{"y": noise(200, 6)}},
		{name: "trend_seasons4", model: series(trendAndSeasons), batch: infer.Batch{"y": noise(200, 6)}},
	}
}

// series is a Kalman filter: a series of parts, of a standard deviation scale, seen with noise.
func series(parts func(scale torch.Tensor) []statespace.Part) ppl.Model {
	return func(c *ppl.Ctx) {
		noise := c.Sample("noise", dist.HalfNormal(1))
		y := c.Data("y")
		of := parts(c.Sample("scale", dist.HalfNormal(1)))
		c.Observe("y", statespace.New(y.Shape()[0], noise, of...), y)
	}
}

func level(scale torch.Tensor) []statespace.Part {
	return []statespace.Part{statespace.LocalLevel{Scale: scale}}
}

func diffuseLevel(scale torch.Tensor) []statespace.Part {
	return []statespace.Part{statespace.LocalLevel{Scale: scale, Diffuse: true}}
}

func trendAndSeasons(scale torch.Tensor) []statespace.Part {
	return []statespace.Part{
		statespace.LocalTrend{LevelScale: scale, SlopeScale: 0.1},
		statespace.Seasonal{Period: 4, Scale: scale},
	}
}

// noise are normal numbers.
func noise(n int, seed uint64) torch.Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	y := make([]float64, n)
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	return torch.New(y)
}

// hiddenMarkov is a chain of k hidden states, each seen through normal noise: the forward algorithm in logarithms, or
// in probabilities that each step divides by their sum.
func hiddenMarkov(n, k int, logarithms bool) ppl.Model {
	return func(c *ppl.Ctx) {
		rows := c.Sample("transition", dist.Dirichlet(torch.Zeros(k, k).Add(1)))
		mu := c.Sample("mu", dist.ImproperUniform(support.Ordered, nil, []int{k}))
		c.Factor("mu_prior", dist.Normal(0, 3).LogProb(mu).Sum())
		emission := dist.Normal(mu, 1).LogProb(c.Data("y").Unsqueeze(-1))
		if logarithms {
			log := rows.Log()
			last, _ := c.Scan(n-1, []torch.Tensor{emission.At(0).Sub(math.Log(float64(k)))},
				func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor, torch.Tensor) {
					return []torch.Tensor{carry[0].Unsqueeze(-1).Add(log).LogSumExp(0).Add(emission.At(t + 1))}, torch.Of(0)
				})
			c.Factor("y", last[0].LogSumExp(0))
			return
		}
		first := emission.At(0).Exp().Div(float64(k))
		density := emission.Exp()
		_, sums := c.Scan(n-1, []torch.Tensor{first.Div(first.Sum())},
			func(c *ppl.Ctx, t int, carry []torch.Tensor) ([]torch.Tensor, torch.Tensor) {
				joint := carry[0].Unsqueeze(-1).Mul(rows).Sum(0).Mul(density.At(t + 1))
				sum := joint.Sum()
				return []torch.Tensor{joint.Div(sum)}, sum
			})
		c.Factor("y", sums.Log().Sum().Add(first.Sum().Log()))
	}
}

// hiddenStates is hiddenMarkov with a discrete variable for each step, which Compile sums out.
func hiddenStates(n, k int) ppl.Model {
	return func(c *ppl.Ctx) {
		rows := c.Sample("transition", dist.Dirichlet(torch.Zeros(k, k).Add(1)))
		mu := c.Sample("mu", dist.ImproperUniform(support.Ordered, nil, []int{k}))
		c.Factor("mu_prior", dist.Normal(0, 3).LogProb(mu).Sum())
		y := c.Data("y")
		var state torch.Tensor
		c.Markov(n, func(c *ppl.Ctx, t int) {
			if t == 0 {
				state = c.Sample("state", dist.Categorical(torch.Zeros(k).Add(1)))
			} else {
				state = c.Sample("state", dist.Categorical(rows.Take(state)))
			}
			c.Observe("y", dist.Normal(mu.Take(state), 1), y.At(t))
		})
	}
}

// mixture is a mixture of k normal distributions, with a discrete variable for each number or with its sum.
func mixture(k int, discrete bool) ppl.Model {
	return func(c *ppl.Ctx) {
		weights := c.Sample("weights", dist.Dirichlet(torch.Zeros(k).Add(2)))
		mu := c.Sample("mu", dist.Normal(0, 2).Expand(k))
		sigma := c.Sample("sigma", dist.LogNormal(0, 0.5).Expand(k))
		c.Plate("data", 0, func(c *ppl.Ctx) {
			if !discrete {
				c.Observe("y", dist.MixtureSameFamily(weights, dist.Normal(mu, sigma)), c.Data("y"))
				return
			}
			z := c.Sample("z", dist.Categorical(weights))
			c.Observe("y", dist.Normal(mu.Take(z), sigma.Take(z)), c.Data("y"))
		})
	}
}
