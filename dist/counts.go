package dist

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// What the families of counts share. Their probabilities are written in Loader's way (C. Loader, "Fast and accurate
// computation of binomial probabilities", 2000): a Poisson probability is its value at the mean times a deviance,
//
//	log Poisson(x; m) = peak(x) − [m − x − x log(m/x)],    peak(x) = x log x − x − log Γ(x+1)
//
// and binomial, multinomial and negative binomial probabilities are products of those. No two large numbers are
// subtracted, so that counts of 10⁹ have as many correct digits as counts of 10.

// Enumerable is a distribution over finitely many values.
type Enumerable interface {
	// EnumerateSupport lists the values, in a shape [K, 1, …, 1] that broadcasts against the batch: LogProb of it has shape
	// [K] + batch.
	EnumerateSupport() *ts.Tensor
}

var wholeCount = check{"it must be a whole number, at least 0", func(v float64) bool { return v >= 0 && v == math.Floor(v) && !math.IsInf(v, 1) }}

// logitDomain also lets log-odds and logarithms of probabilities 0 and 1 through.
var logitDomain = check{"it must not be NaN", func(v float64) bool { return !math.IsNaN(v) }}

// belowInfinity is for logarithms of what may be 0.
var belowInfinity = check{"it must be a number less than infinity", func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 1) }}

// floating is a value as floating-point numbers: arithmetic of integer tensors with numbers would round to float32.
func floating(value *ts.Tensor, params ...val) *ts.Tensor {
	switch torch.Must(torch.DTypeOfTensor(value)) {
	case gotch.Double, gotch.Float, gotch.Half, gotch.BFloat16:
		return value
	}
	dtype, _ := like(params...)
	return value.MustTotype(dtype, false)
}

// whole is a value of the whole numbers from 0 to top, which may be infinite; outside is where it is none, and 0 there. A
// count has no derivative.
func whole(value *ts.Tensor, top val) (x, outside *ts.Tensor) {
	in := ten(value.MustFloor(false)).max(num(0))
	if !top.is(math.Inf(1)) {
		in = in.min(top)
	}
	// Of infinity the difference is NaN.
	outside = value.MustSub(in.t, false).MustNe(ts.FloatScalar(0), false)
	return in.fill(outside, 0).t, outside
}

// masked is a log mass, minus infinity outside the support.
func (b base) masked(logp val, outside *ts.Tensor) *ts.Tensor {
	return b.full(logp.fill(outside, math.Inf(-1)).t)
}

// floated is a value as floating-point numbers.
func floated(value *ts.Tensor) val { return ten(floating(value)) }

// tensorOf is a val as a tensor of the given type and device.
func (v val) tensorOf(dtype gotch.DType, device gotch.Device) *ts.Tensor {
	if v.t != nil {
		return v.t
	}
	return torch.Must(torch.FromSliceOn(device, dtype, []float64{v.c}, []int64{}...))
}

// stack broadcasts values to a shape and puts them behind each other, along a new first dimension; numbers become
// tensors like x.
func stack(shape []int64, x *ts.Tensor, vals ...val) *ts.Tensor {
	dtype, device := like(ten(x))
	all := make([]*ts.Tensor, len(vals))
	for i, v := range vals {
		all[i] = expandTo(v.tensorOf(dtype, device), shape)
	}
	return ts.MustStack(all, 0)
}

// sumParts sums parts from to to − 1 of what was stacked.
func sumParts(t *ts.Tensor, from, to int64) val {
	if to == from+1 {
		return ten(t.MustSelect(0, from, false))
	}
	return ten(t.MustNarrow(0, from, to-from, false).MustSumDimIntlist([]int64{0}, false, t.DType(), false))
}

// where is a where the condition holds, else b.
func where(cond *ts.Tensor, a, b val) *ts.Tensor {
	switch {
	case a.isNum() && b.isNum():
		panic("dist: where needs a tensor")
	case a.isNum():
		return ts.MustWhereScalarself(cond, ts.FloatScalar(a.c), b.t)
	case b.isNum():
		return a.t.MustWhereScalarother(cond, ts.FloatScalar(b.c), false)
	}
	return a.t.MustWhereSelf(cond, b.t, false)
}

// logSigmoid is −log(1 + e⁻ˣ), sigmoid its exponential.
func (v val) logSigmoid() val {
	return v.apply(logSigmoid, func(t *ts.Tensor) *ts.Tensor { return t.MustLogSigmoid(false) })
}
func (v val) sigmoid() val {
	return v.apply(func(c float64) float64 { return 1 / (1 + math.Exp(-c)) }, func(t *ts.Tensor) *ts.Tensor { return t.MustSigmoid(false) })
}

func logSigmoid(c float64) float64 { return math.Min(c, 0) - math.Log1p(math.Exp(-math.Abs(c))) }

// Beyond seriesFrom three terms of Stirling's series give the peak to 2·10⁻¹⁶.
const seriesFrom = 64

var halfLog2Pi = 0.5 * math.Log(2*math.Pi)

// peakTensor is the log probability of a Poisson distribution at its mean: x log x − x − log Γ(x+1), and 0 at 0. It is
// differentiable for x > 0.
func peakTensor(x *ts.Tensor) *ts.Tensor {
	// Each branch gets arguments that it can bear, so that the gradient of the one not taken is 0 and not NaN.
	s := x.MustClamp(ts.FloatScalar(1e-37), ts.FloatScalar(seriesFrom), false)
	small := x.MustMul(s.MustLog(false), false).MustSub(x, false).MustSub(s.MustAddScalar(ts.FloatScalar(1), false).MustLgamma(false), false)
	l := x.MustClampMin(ts.FloatScalar(seriesFrom), false)
	i := ten(l.MustReciprocal(false))
	ii := i.square()
	series := ii.mul(num(-1. / 1260)).add(num(1. / 360)).mul(ii).sub(num(1. / 12)).mul(i)
	large := series.sub(ten(l).log().mul(num(0.5)).add(num(halfLog2Pi)))
	return where(x.MustLt(ts.FloatScalar(seriesFrom), false), ten(small), large)
}

// counted is a tensor x ≥ 0 prepared for logarithms.
type counted struct {
	x    *ts.Tensor
	zero *ts.Tensor // where x is 0
	one  val        // 1 there, 0 elsewhere
	safe val        // x, but 1 there
}

func count(x *ts.Tensor) counted {
	zero := x.MustEq(ts.FloatScalar(0), false)
	one := ten(zero.MustTotype(torch.Must(torch.DTypeOfTensor(x)), false))
	return counted{x, zero, one, ten(x).add(one)}
}

// poissonParts are the parts of log Poisson(x; mean) = peak − deviance. In a product of such probabilities each part is
// summed by itself: the peaks often cancel exactly, and a deviance much smaller than they would be lost.
type poissonParts struct{ peak, deviance *ts.Tensor }

// logPoisson is log Poisson(x; mean), x any real number ≥ 0 (the formula is needed beyond whole numbers). A mean of 0 has
// all its mass at 0.
func logPoisson(x *ts.Tensor, mean val) poissonParts {
	c := count(x)
	return c.parts(mean, mean.add(c.one).div(c.safe).log())
}

// logPoissonLog is logPoisson from the logarithm of the mean.
func logPoissonLog(x *ts.Tensor, logMean val) poissonParts {
	c := count(x)
	return c.parts(logMean.exp(), logMean.sub(c.safe.log()))
}

// parts has the deviance mean − x − x δ, where δ = log(mean/x). It is x(e^δ − 1 − δ), which an error of δ changes by
// (mean − x) times it only.
func (c counted) parts(mean, delta val) poissonParts {
	expm1 := ten(delta.t.MustExpm1(false))
	return poissonParts{peakTensor(c.x), where(c.zero, mean, ten(c.x).mul(expm1.sub(delta)))}
}

// logProb is the whole of it.
func (p poissonParts) logProb() *ts.Tensor { return ten(p.peak).sub(ten(p.deviance)).t }

// quotient is the product of the first n of stacked probabilities over that of the others, which are taken at their means.
func (p poissonParts) quotient(n int64) val {
	all := ten(p.peak).shape()[0]
	return sumParts(p.peak, 0, n).sub(sumParts(p.peak, n, all)).sub(sumParts(p.deviance, 0, n))
}

// enumerate lists 0, …, n−1 in the shape [n, 1, …, 1] for a batch of the given rank.
func enumerate(n int, rank int, dtype gotch.DType, device gotch.Device) *ts.Tensor {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	shape := make([]int64, rank+1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = int64(n)
	return torch.Must(torch.FromSliceOn(device, dtype, values, shape...))
}

// lastDim splits the shape of a vector of parameters in the batch shape and the number of its elements.
func lastDim(family, name string, v val) (batch []int64, n int64) {
	shape := v.shape()
	if len(shape) == 0 || shape[len(shape)-1] == 0 {
		panic(&Error{family, name, "a number", "a tensor with a last dimension of at least 1 is required"})
	}
	return shape[:len(shape)-1], shape[len(shape)-1]
}

// pick looks up indices, of shape sample + batch, in the last dimension of a table of shape batch + [n].
func pick(family string, table, index *ts.Tensor) *ts.Tensor {
	index = index.MustTotype(gotch.Int64, false)
	have, want := ten(table).shape(), ten(index).shape()
	if len(have) == 1 {
		// A view(-1) would need a contiguous index.
		flat := table.MustIndexSelect(0, index.MustReshape([]int64{-1}, false), false)
		return flat.MustReshape(want, false)
	}
	n := have[len(have)-1]
	shape := broadcast(family, have[:len(have)-1], want)
	index = expandTo(index, shape).MustUnsqueeze(-1, false)
	return expandTo(table, join(shape, []int64{n})).MustGather(-1, index, false, false).MustSqueezeDim(-1, false)
}

// requireCounts refuses, for families that wrap a distribution, one that is not over single counts.
func requireCounts(family, name string, d Distribution) {
	if d == nil {
		panic(&Error{family, name, "nil", "a distribution of single counts is required"})
	}
	if s := d.Support(); len(d.EventShape()) != 0 || !s.Discrete() || s.Low != 0 || s.LowT != nil {
		panic(&Error{family, name, fmt.Sprintf("%s over %v", d.Name(), s), "a distribution of single counts, from 0, is required"})
	}
}

// filled is a parameter as a tensor of a whole shape, in the type of the parameters; samplers of libtorch draw one number
// for each element.
func filled(v val, shape []int64, params ...val) *ts.Tensor {
	dtype, device := like(params...)
	return expandTo(v.tensorOf(dtype, device), shape)
}
