package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// OrderedLogisticDist is the ordered logistic distribution; see [OrderedLogistic].
type OrderedLogisticDist struct {
	base
	categories     int64
	eta, cutpoints val
}

// OrderedLogistic is one of the ordered categories 0, …, K − 1: the number of cutpoints that a logistic variable with
// location eta exceeds. cutpoints is a tensor of shape batch + [K − 1], increasing along its last dimension:
//
//	p(x) = σ(c[x] − eta) − σ(c[x − 1] − eta),  c[−1] = −∞, c[K − 1] = ∞, σ the logistic function
//
// It is computed as the product σ(u) σ(−l) (1 − exp(l − u)), in which nothing cancels, u and l being the two arguments of
// σ. A value is an index, as an integer or a floating-point number.
func OrderedLogistic(eta, cutpoints any) OrderedLogisticDist {
	const family = "OrderedLogistic"
	e, c := param(family, "eta", eta), param(family, "cutpoints", cutpoints)
	batch, k := lastDim(family, "cutpoints", c)
	d := OrderedLogisticDist{base: base{family: family, batch: broadcast(family, e.shape(), batch)}, categories: k + 1, eta: e, cutpoints: c}
	d.checkNumber("eta", e, finite)
	return d
}

// Support is 0, …, K − 1.
func (d OrderedLogisticDist) Support() support.Support {
	return support.IntegerInterval(0, d.categories-1)
}

// LogProb is the log mass.
func (d OrderedLogisticDist) LogProb(value *ts.Tensor) *ts.Tensor {
	value, outside := whole(value, num(float64(d.categories-1)))
	dtype, device := like(d.cutpoints)
	edge := d.cutpoints.shape()
	edge[len(edge)-1] = 1
	c := ts.MustCat([]*ts.Tensor{
		ts.MustFull(edge, ts.FloatScalar(math.Inf(-1)), dtype, device), d.cutpoints.t,
		ts.MustFull(edge, ts.FloatScalar(math.Inf(1)), dtype, device)}, -1)
	low, high := c.MustNarrow(-1, 0, d.categories, false), c.MustNarrow(-1, 1, d.categories, false)
	l := ten(pick(d.family, low, value)).sub(d.eta)
	u := ten(pick(d.family, high, value)).sub(d.eta)
	gap := ten(pick(d.family, log1mexp(high.MustSub(low, false)), value))
	return d.masked(u.logSigmoid().add(l.neg().logSigmoid()).add(gap), outside)
}

// log1mexp is log(1 − e⁻ˣ) for x > 0 (Mächler, "Accurately computing log(1 − exp(−|a|))", 2012).
func log1mexp(x *ts.Tensor) *ts.Tensor {
	small := x.MustClampMax(ts.FloatScalar(math.Ln2), false).MustNeg(false).MustExpm1(false).MustNeg(false).MustLog(false)
	large := x.MustClampMin(ts.FloatScalar(math.Ln2), false).MustNeg(false).MustExp(false).MustNeg(false).MustLog1p(false)
	return where(x.MustLt(ts.FloatScalar(math.Ln2), false), ten(small), ten(large))
}

// Sample draws indices, as int64: how many cutpoints a logistic number exceeds.
func (d OrderedLogisticDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	_, device := like(d.cutpoints)
	u := ten(torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device)))
	z := u.log().sub(u.neg().log1p()).add(d.eta)
	return z.t.MustUnsqueeze(-1, false).MustGtTensor(d.cutpoints.t, false).MustSumDimIntlist([]int64{-1}, false, gotch.Int64, false)
}

// EnumerateSupport lists the indices, as int64.
func (d OrderedLogisticDist) EnumerateSupport() *ts.Tensor {
	_, device := like(d.cutpoints)
	return enumerate(int(d.categories), len(d.batch), gotch.Int64, device)
}

// prob is the probabilities, of shape batch + [K].
func (d OrderedLogisticDist) prob() *ts.Tensor {
	return d.LogProb(d.EnumerateSupport()).MustExp(false).MustMovedimInt(0, -1, false)
}

// Mean is the mean of the index.
func (d OrderedLogisticDist) Mean() *ts.Tensor {
	mean, _ := indexMoments(d.prob())
	return d.spread(mean)
}

// Variance is the variance of the index.
func (d OrderedLogisticDist) Variance() *ts.Tensor {
	_, variance := indexMoments(d.prob())
	return d.spread(variance)
}

// Expand broadcasts the batch shape.
func (d OrderedLogisticDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks eta, and that the cutpoints increase.
func (d OrderedLogisticDist) Validate() error {
	if err := first(d.validate("eta", d.eta, finite), d.validate("cutpoints", d.cutpoints, finite)); err != nil {
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
func (d OrderedLogisticDist) Params() map[string]any {
	return map[string]any{"eta": d.eta.any(), "cutpoints": d.cutpoints.any()}
}
