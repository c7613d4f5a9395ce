package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// dirichletMultinomialDist is the Dirichlet-multinomial distribution; see [DirichletMultinomial].
type dirichletMultinomialDist struct {
	base
	total, concentration torch.Tensor
}

var dirichletMultinomialFamily = &family{"DirichletMultinomial", itsOwn,
	func(b base) Distribution { return dirichletMultinomialDist{b, b.at(0), b.at(1)} },
	[]parameter{{"total", wholeCount}, {"concentration", positive}}}

// DirichletMultinomial is the multinomial distribution of total trials whose probabilities are themselves
// Dirichlet(concentration), a tensor of shape batch + [C] of numbers > 0. total is a whole number ≥ 0, or a tensor of
// them that broadcasts against the batch. Values are vectors of C counts with sum total; with A = Σ aᵢ
//
//	log p(x) = log total! + log Γ(A) − log Γ(total + A) + Σᵢ [log Γ(xᵢ + aᵢ) − log Γ(aᵢ) − log xᵢ!]
//
// With two categories the first count is [BetaBinomial].
func DirichletMultinomial(total, concentration any) (made Distribution) {
	defer orMisfit(&made)
	const family = "DirichletMultinomial"
	n, a := param(family, "total", total), param(family, "concentration", concentration)
	batch, c := lastDim(family, "concentration", a)
	b := base{family: family, batch: broadcast(family, n.Shape(), batch), event: []int{c}}
	return dirichletMultinomialFamily.of(dirichletMultinomialFamily.sized(b, n, a))
}

// Support is the vectors of counts with sum total.
func (d dirichletMultinomialDist) Support() support.Support { return support.Counts(d.total) }

// LogProb is the log mass, as a product of those of [BetaBinomial]: of each count but the last among what the ones
// before leave. All are at most 1, so that no logarithms cancel.
func (d dirichletMultinomialDist) LogProb(value torch.Tensor) torch.Tensor {
	value = floating(value, d.concentration)
	x, not := whole(value, torch.Of(math.Inf(1)))
	dtype := x.T().DType()
	n := torch.Of(alike(d.total, x).T().MustTotype(dtype, false))
	some := operand.SumLast(torch.Of(not.T().MustTotype(dtype, false)), 1).Gt(0)
	wrong := torch.Of(operand.SumLast(value, 1).T().MustNeTensor(n.T(), false))
	outside := torch.Of(some.T().MustLogicalOr(wrong.T(), false))
	if d.event[0] == 1 {
		return d.masked(d.full(operand.SumLast(x, 1).Mul(0)), outside)
	}
	last := d.event[0] - 1
	each := func(v torch.Tensor) torch.Tensor { return v.Slice(-1, 0, last) }
	a := each(d.concentration)
	parts := BetaBinomial(each(x.Add(after(x))), a, each(after(d.concentration))).LogProb(each(x))
	return d.masked(d.full(operand.SumLast(parts, 1)), outside)
}

// Sample draws probabilities, by gamma numbers, and then counts, in the parameter's type. No gradients flow.
func (d dirichletMultinomialDist) Sample(src *Source, sample ...int) torch.Tensor {
	shape := join(sample, d.batch)
	log := torch.Must(src.LogGamma(expandTo(d.concentration, join(shape, d.event))))
	p := torch.Of(log.T().MustDetach(false)).Softmax(-1)
	n := torch.Of(alike(d.total, p).T().MustTotype(p.T().DType(), false))
	return torch.Must(src.Multinomial(expandTo(n, shape), p))
}

// trials is the total, with a dimension for the categories.
func (d dirichletMultinomialDist) trials() torch.Tensor {
	n := alike(d.total, d.concentration)
	return torch.Of(n.T().MustTotype(d.concentration.T().DType(), false)).Unsqueeze(-1)
}

// Mean is n aᵢ/A.
func (d dirichletMultinomialDist) Mean() torch.Tensor {
	return d.spread(normalised(d.concentration).Mul(d.trials()))
}

// Variance is n aᵢ/A (1 − aᵢ/A) (n + A)/(1 + A), for each category by itself.
func (d dirichletMultinomialDist) Variance() torch.Tensor {
	p, n, all := normalised(d.concentration), d.trials(), operand.SumLast(d.concentration, 1).Unsqueeze(-1)
	return d.spread(p.Mul(torch.Of(1).Sub(p)).Mul(n).Mul(n.Add(all).Div(all.Add(1))))
}
