package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch/ts"
)

// DirichletDist is the Dirichlet distribution; see [Dirichlet].
type DirichletDist struct {
	base
	concentration *ts.Tensor
}

// Dirichlet is the distribution of probability vectors of length k with concentration α, positive numbers in a tensor of
// shape [..., k]:
//
//	log p(x) = Σᵢ (αᵢ − 1) log xᵢ + log Γ(Σ α) − Σᵢ log Γ(αᵢ)
//
// as a density of k−1 of the elements. An element xᵢ = 0 with αᵢ = 1 adds 0.
func Dirichlet(concentration any) DirichletDist {
	a := param("Dirichlet", "concentration", concentration)
	batch, k := lastDim("Dirichlet", "concentration", a)
	return DirichletDist{base{family: "Dirichlet", batch: batch, event: []int64{k}}, a.t}
}

// Support is the probability vectors.
func (d DirichletDist) Support() support.Support { return support.Simplex }

// total is α₀ = Σ α.
func (d DirichletDist) total() *ts.Tensor {
	return d.concentration.MustSumDimIntlist([]int64{-1}, true, d.concentration.DType(), false)
}

// LogProb is the log density. The vector is one of independent gamma numbers tᵢ = α₀ xᵢ given their sum: with the log
// densities of those, and Stirling's remainder δ, what is left of log Γ(α₀) is small:
//
//	log p(x) = Σᵢ log gamma(tᵢ; αᵢ) + δ(α₀) + log √2π + (k − ½) log α₀
func (d DirichletDist) LogProb(value *ts.Tensor) *ts.Tensor {
	a := ten(d.concentration)
	total := ten(d.total())
	terms := ten(sumLast(gammaKernel(a, ten(value).mul(total).t).t, 1))
	k := float64(d.event[0])
	total = ten(total.t.MustSqueezeDim(-1, false))
	return d.full(terms.add(stirling(total)).add(total.log().mul(num(k - 0.5))).add(num(halfLog2Pi)).t)
}

// Sample draws probability vectors. Gradients flow to the concentration.
func (d DirichletDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	return torch.Must(src.Dirichlet(expandTo(d.concentration, join(sample, d.batch, d.event))))
}

// Mean is α/α₀.
func (d DirichletDist) Mean() *ts.Tensor {
	return d.spread(ten(d.concentration.MustDiv(d.total(), false)))
}

// Variance is m(1 − m)/(α₀ + 1) with the mean m.
func (d DirichletDist) Variance() *ts.Tensor {
	m, total := ten(d.Mean()), ten(d.total())
	return d.spread(m.mul(num(1).sub(m)).div(total.add(num(1))))
}

// Expand broadcasts the batch shape.
func (d DirichletDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the concentration.
func (d DirichletDist) Validate() error {
	return d.validate("concentration", ten(d.concentration), positive)
}

// Params are the parameters by name.
func (d DirichletDist) Params() map[string]any {
	return map[string]any{"concentration": d.concentration}
}
