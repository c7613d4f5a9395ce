package models

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// orderedNormal is an [OrderedNormal].
type orderedNormal struct {
	dist.Distribution // of the numbers without their order
	loc, scale        float64
	k                 int
}

// OrderedNormal is k independent numbers from N(loc, scale²) in increasing order: the prior of locations that take an
// order instead of labels, and of thresholds. On increasing vectors
//
//	log p(x) = log k! + Σ log N(x_j; loc, scale²)
func OrderedNormal(loc, scale float64, k int) dist.Distribution {
	return orderedNormal{dist.Independent(dist.Normal(loc, scale).Expand(k), 1), loc, scale, k}
}

// Name is the family's name.
func (d orderedNormal) Name() string { return "OrderedNormal" }

// Support is the increasing vectors.
func (d orderedNormal) Support() support.Support { return support.Ordered }

// LogProb is the log density.
func (d orderedNormal) LogProb(value torch.Tensor) torch.Tensor {
	logFactorial, _ := math.Lgamma(float64(d.k) + 1)
	return d.Distribution.LogProb(value).Add(logFactorial)
}

// Sample draws the numbers and sorts them.
func (d orderedNormal) Sample(src *dist.Source, sample ...int) torch.Tensor {
	sorted, _ := d.Distribution.Sample(src, sample...).T().MustSort(-1, false, false)
	return torch.Of(sorted)
}

// Mean and Variance are those of normal order statistics, by Gauss-Legendre quadrature.
func (d orderedNormal) Mean() torch.Tensor {
	return d.moments(func(m1, _ float64) float64 { return d.loc + d.scale*m1 })
}

func (d orderedNormal) Variance() torch.Tensor {
	return d.moments(func(m1, m2 float64) float64 { return d.scale * d.scale * (m2 - m1*m1) })
}

// moments gives f the first two moments of each of k ordered standard normal numbers.
func (d orderedNormal) moments(f func(m1, m2 float64) float64) torch.Tensor {
	out := make([]float64, d.k)
	for j := range out {
		count := float64(d.k) * float64(combin.Binomial(d.k-1, j))
		moment := func(power float64) float64 {
			return quad.Fixed(func(z float64) float64 {
				below := distuv.UnitNormal.CDF(z)
				return math.Pow(
					z,
					power,
				) * count * math.Pow(
					below,
					float64(j),
				) * math.Pow(
					1-below,
					float64(d.k-1-j),
				) * distuv.UnitNormal.Prob(
					z,
				)
			}, -12, 12, 200, nil, 0)
		}
		out[j] = f(moment(1), moment(2))
	}
	shape := append(d.BatchShape(), d.k)
	return torch.New(out).Expand(shape...)
}

// Expand broadcasts the batch shape.
func (d orderedNormal) Expand(batch ...int) dist.Distribution {
	d.Distribution = d.Distribution.Expand(batch...)
	return d
}

// Params are the parameters by name.
func (d orderedNormal) Params() map[string]any {
	return map[string]any{"loc": d.loc, "scale": d.scale}
}
