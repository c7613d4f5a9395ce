package dist_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

func TestCountErrors(t *testing.T) {
	countScope(t, func() {
		v := func(x ...float64) *ts.Tensor { return countTensor(x) }
		for _, c := range []struct {
			want string
			f    func()
		}{
			{"dist.Bernoulli: probs is 1.5: it must be from 0 to 1", func() { dist.Bernoulli(1.5).Support() }},
			{"dist.Bernoulli: probs is a string: a number, a torch.Tensor or a *ts.Tensor is required",
				func() { dist.Bernoulli("x").Support() }},
			{"dist.BernoulliLogits: logits is NaN: it must not be NaN", func() { dist.BernoulliLogits(math.NaN()).Support() }},
			{"dist.Binomial: total is -1: it must be a whole number, at least 0", func() { dist.Binomial(-1, 0.5).Support() }},
			{"dist.Binomial: total is 2.5: it must be a whole number, at least 0", func() { dist.Binomial(2.5, 0.5).Support() }},
			{"dist.Binomial: probs is -0.1: it must be from 0 to 1", func() { dist.Binomial(2, -0.1).Support() }},
			{"dist.BinomialLogits: total is -1: it must be a whole number, at least 0",
				func() { dist.BinomialLogits(-1, 0.5).Support() }},
			{"dist.Binomial: the shapes [[2] [3]]: they do not broadcast to one shape",
				func() { dist.Binomial(v(1, 2), v(0.1, 0.2, 0.3)).Support() }},
			{"dist.Poisson: rate is -1: it must be at least 0", func() { dist.Poisson(-1).Support() }},
			{"dist.PoissonLog: logRate is +Inf: it must be a number less than infinity",
				func() { dist.PoissonLog(math.Inf(1)).Support() }},
			{"dist.NegativeBinomial: mean is -1: it must be at least 0", func() { dist.NegativeBinomial(-1, 1).Support() }},
			{"dist.NegativeBinomial: dispersion is 0: it must be greater than 0",
				func() { dist.NegativeBinomial(1, 0).Support() }},
			{"dist.NegativeBinomialProbs: total is 0: it must be greater than 0",
				func() { dist.NegativeBinomialProbs(0, 0.5).Support() }},
			{"dist.NegativeBinomialProbs: probs is 1: it must be at least 0 and less than 1",
				func() { dist.NegativeBinomialProbs(1, 1).Support() }},
			{"dist.NegativeBinomialLogits: logits is +Inf: it must be a number less than infinity",
				func() { dist.NegativeBinomialLogits(1, math.Inf(1)).Support() }},
			{"dist.Geometric: probs is 0: it must be greater than 0 and at most 1", func() { dist.Geometric(0).Support() }},
			{"dist.BetaBinomial: concentration1 is 0: it must be greater than 0",
				func() { dist.BetaBinomial(3, 0, 1).Support() }},
			{"dist.BetaBinomial: concentration0 is -1: it must be greater than 0",
				func() { dist.BetaBinomial(3, 1, -1).Support() }},
			{"dist.Categorical: probs is a number: a tensor with a last dimension of at least 1 is required",
				func() { dist.Categorical(0.5).Support() }},
			{"dist.MultinomialLogits: logits is a number: a tensor with a last dimension of at least 1 is required",
				func() { dist.MultinomialLogits(3, 0.5).Support() }},
			{"dist.Multinomial: total is 0.5: it must be a whole number, at least 0",
				func() { dist.Multinomial(0.5, v(1, 1)).Support() }},
			{"dist.OrderedLogistic: cutpoints is a number: a tensor with a last dimension of at least 1 is required",
				func() { dist.OrderedLogistic(0, 0.5).Support() }},
			{"dist.OrderedLogistic: eta is +Inf: it must be finite",
				func() { dist.OrderedLogistic(math.Inf(1), v(0, 1)).Support() }},
			{"dist.ZeroInflated: gate is 2: it must be from 0 to 1", func() { dist.ZeroInflated(2, dist.Poisson(1)).Support() }},
			{"dist.ZeroInflated: base is nil: a distribution of single counts is required",
				func() { dist.ZeroInflated(0.5, nil).Support() }},
			{"dist.ZeroInflated: base is Normal over a real number: a distribution of single counts, from 0, is required",
				func() { dist.ZeroInflated(0.5, dist.Normal(0, 1)).Support() }},
			{"dist.NormalGLM: scale is 0: it must be greater than 0",
				func() {
					dist.NormalGLM(torch.Of(countTensor([]float64{1, 2}, 1, 2)), torch.Of(v(1, 2)), 0, 0).Support()
				}},
		} {
			assert.PanicsWithError(t, c.want, c.f)
		}
		for _, c := range []struct {
			want string
			d    dist.Distribution
		}{
			{"dist.BernoulliLogitGLM: x is of shape [2]: a matrix, of shape [n, d], is required",
				dist.BernoulliLogitGLM(torch.Of(v(1, 2)), torch.Of(v(1, 2)), 0)},
			{"dist.PoissonLogGLM: w is of shape [3]: for x of shape [1 2] its shape must be [2]",
				dist.PoissonLogGLM(torch.Of(countTensor([]float64{1, 2}, 1, 2)), torch.Of(v(1, 2, 3)), 0)},
			{"dist.CategoricalLogitGLM: w is of shape [2]: for x of shape [1 2] its shape must be [2, C]",
				dist.CategoricalLogitGLM(torch.Of(countTensor([]float64{1, 2}, 1, 2)), torch.Of(v(1, 2)), 0)},
			{"dist.NormalGLM: b is of shape [2]: it must broadcast to [1]",
				dist.NormalGLM(torch.Of(countTensor([]float64{1, 2}, 1, 2)), torch.Of(v(1, 2)), v(1, 2), 1)},
			{"dist.Bernoulli: probs is 1.5 at element 1 of shape [2]: it must be from 0 to 1", dist.Bernoulli(v(0.5, 1.5))},
			{"dist.BernoulliLogits: logits is NaN: it must not be NaN", dist.BernoulliLogits(v(math.NaN()))},
			{"dist.Binomial: total is 1.5: it must be a whole number, at least 0", dist.Binomial(v(1.5), 0.5)},
			{"dist.BinomialLogits: logits is NaN: it must not be NaN", dist.BinomialLogits(3, v(math.NaN()))},
			{"dist.Poisson: rate is -1: it must be at least 0", dist.Poisson(v(-1))},
			{"dist.PoissonLog: logRate is NaN: it must be a number less than infinity", dist.PoissonLog(v(math.NaN()))},
			{"dist.NegativeBinomial: dispersion is 0: it must be greater than 0", dist.NegativeBinomial(1, v(0))},
			{"dist.NegativeBinomialLogits: logits is NaN: it must be a number less than infinity",
				dist.NegativeBinomialLogits(1, v(math.NaN()))},
			{"dist.Geometric: probs is 0: it must be greater than 0 and at most 1", dist.Geometric(v(0))},
			{"dist.BetaBinomial: concentration1 is 0: it must be greater than 0", dist.BetaBinomial(2, v(0), 1)},
			{"dist.Categorical: probs is -1 at element 1 of shape [2]: it must be at least 0", dist.Categorical(v(1, -1))},
			{"dist.Categorical: probs is [0 0]: one of the categories must have a probability greater than 0",
				dist.Categorical(v(0, 0))},
			{"dist.CategoricalLogits: logits is [-Inf -Inf]: one of the categories must have a logit " +
				"greater than minus infinity", dist.CategoricalLogits(v(math.Inf(-1), math.Inf(-1)))},
			{"dist.MultinomialLogits: logits is +Inf at element 0 of shape [2]: it must be a number less than infinity",
				dist.MultinomialLogits(1, v(math.Inf(1), 0))},
			{"dist.Multinomial: probs is [0 0]: one of the categories must have a probability greater than 0",
				dist.Multinomial(1, v(0, 0))},
			{"dist.OrderedLogistic: cutpoints is [1 0]: they must increase", dist.OrderedLogistic(0, v(1, 0))},
			{"dist.ZeroInflated: gate is -1: it must be from 0 to 1", dist.ZeroInflated(v(-1), dist.Poisson(1))},
			{"dist.Poisson: rate is -1: it must be at least 0", dist.ZeroInflated(0.5, dist.Poisson(v(-1)))},
		} {
			assert.EqualError(t, c.d.Validate(), c.want)
		}
	})
	err := torch.Do(func(*torch.Scope) error { dist.Poisson(-1).Support(); return nil })
	var e *dist.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(
		t,
		dist.Error{Distribution: "Poisson", Parameter: "rate", Value: "-1", Allowed: "it must be at least 0"},
		*e,
	)
}
