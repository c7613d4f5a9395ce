package posteriors

import (
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
)

// hmmExample is a hidden Markov chain of two states that are seen through normal noise (posteriordb, hmm_example):
//
//	theta1, theta2 flat on the simplex: the rows of the transition matrix
//	0 < mu_1 < mu_2, mu_1 ~ N(3, 1), mu_2 ~ N(10, 1), y_t ~ N(mu_{state_t}, 1)
//
// As in the Stan program the first state has no weight: what is summed over all states starts with the density of y_1.
func hmmExample(d *Data) Posterior {
	n := d.count("N", 2)
	if k := d.count("K", 1); k != 2 {
		d.fail("K is %d: the model has 2 states", k)
	}
	centres := d.tensor([]float64{3, 10}, 2)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			theta1 := c.Sample("theta1", dist.ImproperUniform(support.Simplex, nil, []int64{2}))
			theta2 := c.Sample("theta2", dist.ImproperUniform(support.Simplex, nil, []int64{2}))
			mu := c.Sample("mu", dist.ImproperUniform(support.PositiveOrdered, nil, []int64{2}))
			c.Factor("mu_prior", sum(dist.Normal(centres, 1).LogProb(mu)))
			states := dist.Normal(mu, 1).LogProb(c.Data("y").Unsqueeze(-1))
			c.Factor("y", forward(c, torch.Stack(0, theta1, theta2), states, n))
		},
		Batch: infer.Batch{"y": d.vectorTensor("y", n)},
		// The parameters are correlated: a diagonal metric takes six times the gradients.
		Method: hmc.NUTS{Metric: hmc.LowRank},
	}
}

// forward is the forward algorithm with scaling (Rabiner 1989, Proceedings of the IEEE 77, 257–286), log Σ p(y,
// states), from the transition matrix, [S, S], and the logarithms of the densities in each state, [T, S]:
//
//	a_t(s) = Σ_r p_{t−1}(r) transition(r, s) exp(l_t(s) − m_t),  c_t = Σ_s a_t(s),  p_t = a_t / c_t
//
// and the logarithm is Σ_t (m_t + log c_t), where m_t is the larger of the l_t(s).
func forward(c *ppl.Ctx, transition, logDensity torch.Tensor, times int) torch.Tensor {
	most := logDensity.Slice(1, 0, 1).Max(logDensity.Slice(1, 1, 2)).Squeeze(-1)
	density := logDensity.Sub(most.Unsqueeze(-1)).Exp()
	first := density.At(0).Sum()
	_, sums := c.Scan(times-1, []torch.Tensor{density.At(0).Div(first)}, func(c *ppl.Ctx, t int, carry []torch.Tensor) (
		next []torch.Tensor, total torch.Tensor) {
		// A product with a vector resizes tensors in libtorch, and says so at each step of a replay.
		joint := carry[0].Unsqueeze(-1).Mul(transition).Sum(0).Mul(density.At(t + 1))
		total = joint.Sum()
		return []torch.Tensor{joint.Div(total)}, total
	})
	return sums.Log().Sum().Add(first.Log()).Add(most.Sum())
}
