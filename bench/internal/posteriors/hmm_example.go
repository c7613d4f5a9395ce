package posteriors

import (
	"math/bits"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
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
	rest := padding(d, n-1)
	centres := d.tensor([]float64{3, 10}, 2)
	return Posterior{
		Model: func(c *ppl.Ctx) {
			theta1 := c.Sample("theta1", dist.ImproperUniform(support.Simplex, nil, []int64{2}))
			theta2 := c.Sample("theta2", dist.ImproperUniform(support.Simplex, nil, []int64{2}))
			mu := c.Sample("mu", dist.ImproperUniform(support.PositiveOrdered, nil, []int64{2}))
			c.Factor("mu_prior", sum(dist.Normal(centres, 1).LogProb(mu)))
			transition := torch.Stack(0, theta1, theta2).Log()
			c.Factor("y", forward(transition, dist.Normal(mu, 1).LogProb(c.Data("y").Unsqueeze(-1)), rest, n))
		},
		Batch: infer.Batch{"y": d.vectorTensor("y", n)},
	}
}

// forward is the forward algorithm (Rabiner 1989, Proceedings of the IEEE 77, 257–286), log Σ p(y, states), from the
// logarithms of the transition matrix, [S, S], and of the densities in each state, [T, S]. A step of time is the matrix
//
//	M_t(r, s) = log transition(r, s) + log p(y_t | s)
//
// and the algorithm their product, in which logsumexp is the sum. The product is associative, so that neighbours are
// multiplied in pairs, all at once: log₂ T rounds instead of T. The padding is that of padding(T − 1).
func forward(transition, emission torch.Tensor, padding *ts.Tensor, times int) torch.Tensor {
	first := emission.At(0)
	product := transition.Unsqueeze(0).Add(emission.Slice(0, 1, times).Unsqueeze(1))
	n := int64(times - 1)
	if padding != nil {
		product = torch.Cat(0, product, padding)
		n += padding.MustSize()[0]
	}
	for ; n > 1; n /= 2 {
		pair := product.Reshape(n/2, 2, 2, 2).T().MustUnbind(1, false)
		product = torch.Of(pair[0]).Unsqueeze(-1).Add(torch.Of(pair[1]).Unsqueeze(1)).LogSumExp(2)
	}
	return first.Unsqueeze(-1).Add(product.At(0)).LogSumExp(0, 1)
}

// padding is the identity matrices, as logarithms, that make of n matrices a power of two; nil where there are none to
// add. In the place of −∞, which has no gradient, is a number whose exponential is 0.
func padding(d *Data, n int) *ts.Tensor {
	var flat []float64
	k := int64(0)
	for n+int(k) < 1<<bits.Len(uint(n-1)) {
		flat = append(flat, 0, -1e300, -1e300, 0)
		k++
	}
	if k == 0 {
		return nil
	}
	return d.tensor(flat, k, 2, 2)
}
