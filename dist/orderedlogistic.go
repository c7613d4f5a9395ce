package dist

import (
	"cmp"
	"fmt"
	"math"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// orderedLogisticDist is the ordered logistic distribution; see [OrderedLogistic].
type orderedLogisticDist struct {
	base
	categories     int
	eta, cutpoints torch.Tensor
}

// OrderedLogistic is one of the ordered categories 0, …, K − 1: the number of cutpoints that a logistic variable with
// location eta exceeds. cutpoints is a tensor of shape batch + [K − 1], increasing along its last dimension:
//
//	p(x) = σ(c[x] − eta) − σ(c[x − 1] − eta),  c[−1] = −∞, c[K − 1] = ∞, σ the logistic function
//
// It is computed as the product σ(u) σ(−l) (1 − exp(l − u)), in which nothing cancels, u and l being the two arguments
// of σ. A value is an index, as an integer or a floating-point number.
func OrderedLogistic(eta, cutpoints any) (made Distribution) {
	defer orMisfit(&made)
	const family = "OrderedLogistic"
	e, c := param(family, "eta", eta), param(family, "cutpoints", cutpoints)
	batch, k := lastDim(family, "cutpoints", c)
	d := orderedLogisticDist{
		base:       base{family: family, batch: broadcast(family, e.Shape(), batch)},
		categories: k + 1,
		eta:        e,
		cutpoints:  c,
	}
	d.checkNumber("eta", e, finite)
	return d
}

// Support is 0, …, K − 1.
func (d orderedLogisticDist) Support() support.Support {
	return support.IntegerInterval(0, d.categories-1)
}

// LogProb is the log mass.
func (d orderedLogisticDist) LogProb(value torch.Tensor) torch.Tensor {
	value, outside := whole(floating(value, d.cutpoints), torch.Of(float64(d.categories-1)))
	dtype, device := like(d.cutpoints)
	edge := d.cutpoints.Shape()
	edge[len(edge)-1] = 1
	c := torch.Cat(-1, []torch.Tensor{
		torch.Of(ts.MustFull(torch.Int64s(edge), ts.FloatScalar(math.Inf(-1)), dtype, device)), d.cutpoints,
		torch.Of(ts.MustFull(torch.Int64s(edge), ts.FloatScalar(math.Inf(1)), dtype, device))})
	low := torch.Of(c.T().MustNarrow(-1, 0, int64(d.categories), false))
	high := torch.Of(c.T().MustNarrow(-1, 1, int64(d.categories), false))
	l := pick(d.family, low, value).Sub(d.eta)
	u := pick(d.family, high, value).Sub(d.eta)
	gap := pick(d.family, log1mexp(high.Sub(low)), value)
	return d.masked(u.LogSigmoid().Add(l.Neg().LogSigmoid()).Add(gap), outside)
}

// log1mexp is log(1 − e⁻ˣ) for x > 0 (Mächler, "Accurately computing log(1 − exp(−|a|))", 2012).
func log1mexp(x torch.Tensor) torch.Tensor {
	small := logProbs(x.AtMost(math.Ln2).Neg().Expm1().Neg())
	// Not from Ln2, where its branch is taken and a bound has two derivatives.
	large := x.AtLeast(math.Ln2 / 2).Neg().Exp().Neg().Log1p()
	return torch.Choose(x.Lt(math.Ln2), small, large)
}

// Sample draws indices, as int64: how many cutpoints a logistic number exceeds.
func (d orderedLogisticDist) Sample(src *Source, sample ...int) torch.Tensor {
	_, device := like(d.cutpoints)
	u := torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device))
	return inPieces(d, func(d orderedLogisticDist, u ...torch.Tensor) torch.Tensor {
		z := u[0].Log().Sub(u[0].Neg().Log1p()).Add(d.eta)
		return torch.Of(z.Unsqueeze(-1).Gt(d.cutpoints).T().MustSumDimIntlist([]int64{-1}, false, gotch.Int64, false))
	}, u)
}

// EnumerateSupport lists the indices, as int64.
func (d orderedLogisticDist) EnumerateSupport() torch.Tensor {
	_, device := like(d.cutpoints)
	return enumerate(d.categories, len(d.batch), gotch.Int64, device)
}

// prob is the probabilities, of shape batch + [K].
func (d orderedLogisticDist) prob() torch.Tensor {
	return torch.Of(d.LogProb(d.EnumerateSupport()).Exp().T().MustMovedimInt(0, -1, false))
}

// Mean is the mean of the index.
func (d orderedLogisticDist) Mean() torch.Tensor {
	mean, _ := indexMoments(d.prob())
	return d.spread(mean)
}

// Variance is the variance of the index.
func (d orderedLogisticDist) Variance() torch.Tensor {
	_, variance := indexMoments(d.prob())
	return d.spread(variance)
}

// Expand broadcasts the batch shape.
func (d orderedLogisticDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks eta, and that the cutpoints increase.
func (d orderedLogisticDist) Validate() error {
	if err := cmp.Or(d.validate("eta", d.eta, finite), d.validate("cutpoints", d.cutpoints, finite)); err != nil {
		return err
	}
	return eachVector(d.cutpoints, func(v []float64) error {
		for i := 1; i < len(v); i++ {
			if v[i] <= v[i-1] {
				return &Error{d.family, "cutpoints", fmt.Sprint(v), "they must increase"}
			}
		}
		return nil
	})
}

// Params are the parameters by name.
func (d orderedLogisticDist) Params() map[string]any {
	return map[string]any{"eta": d.eta, "cutpoints": d.cutpoints}
}
