package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// dirichletDist is the Dirichlet distribution; see [Dirichlet].
type dirichletDist struct {
	base
	concentration torch.Tensor
}

var dirichletFamily = &family{"Dirichlet", support.Simplex,
	func(b base) Distribution { return dirichletDist{b, b.at(0)} },
	[]parameter{{"concentration", positive}}}

// Dirichlet is the distribution of probability vectors of length k with concentration α, positive numbers in a tensor
// of shape [..., k]:
//
//	log p(x) = Σᵢ (αᵢ − 1) log xᵢ + log Γ(Σ α) − Σᵢ log Γ(αᵢ)
//
// as a density of k−1 of the elements. An element xᵢ = 0 with αᵢ = 1 adds 0.
func Dirichlet(concentration any) (made Distribution) {
	defer orMisfit(&made)
	a := param("Dirichlet", "concentration", concentration)
	batch, k := lastDim("Dirichlet", "concentration", a)
	return dirichletFamily.of(dirichletFamily.sized(base{family: "Dirichlet", batch: batch, event: []int{k}}, a))
}

// total is α₀ = Σ α.
func (d dirichletDist) total() torch.Tensor {
	return torch.Of(d.concentration.T().MustSumDimIntlist([]int64{-1}, true, d.concentration.T().DType(), false))
}

// LogProb is the log density. The vector is one of independent gamma numbers tᵢ = α₀ xᵢ given their sum: with the log
// densities of those, and Stirling's remainder δ, what is left of log Γ(α₀) is small:
//
//	log p(x) = Σᵢ log gamma(tᵢ; αᵢ) + δ(α₀) + log √2π + (k − ½) log α₀
func (d dirichletDist) LogProb(value torch.Tensor) torch.Tensor {
	a := d.concentration
	total := d.total()
	terms := operand.SumLast(gammaKernel(a, value.Mul(total)), 1)
	k := float64(d.event[0])
	total = total.Squeeze(-1)
	return d.full(terms.Add(stirling(total)).Add(total.Log().Mul(k - 0.5)).Add(halfLog2Pi))
}

// Sample draws probability vectors. Gradients flow to the concentration.
func (d dirichletDist) Sample(src *Source, sample ...int) torch.Tensor {
	return torch.Must(src.Dirichlet(expandTo(d.concentration, join(sample, d.batch, d.event))))
}

// Mean is α/α₀.
func (d dirichletDist) Mean() torch.Tensor {
	return d.spread(d.concentration.Div(d.total()))
}

// Variance is m(1 − m)/(α₀ + 1) with the mean m.
func (d dirichletDist) Variance() torch.Tensor {
	total := d.total()
	return d.spread(d.Mean().Mul(others(d.concentration).Div(total)).Div(total.Add(1)))
}
