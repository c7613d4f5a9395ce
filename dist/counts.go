package dist

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
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
	// EnumerateSupport lists the values, in a shape [K, 1, …, 1] that broadcasts against the batch: LogProb of it has
	// shape [K] + batch.
	EnumerateSupport() torch.Tensor
}

var wholeCount = check{
	"it must be a whole number, at least 0",
	func(v float64) bool { return v >= 0 && v == math.Floor(v) && !math.IsInf(v, 1) },
}

// logitDomain also lets log-odds and logarithms of probabilities 0 and 1 through.
var logitDomain = check{"it must not be NaN", func(v float64) bool { return !math.IsNaN(v) }}

// belowInfinity is for logarithms of what may be 0.
var belowInfinity = check{
	"it must be a number less than infinity",
	func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 1) },
}

// floating is a value as floating-point numbers: arithmetic of integer tensors with numbers would round to float32.
func floating(value torch.Tensor, params ...torch.Tensor) torch.Tensor {
	switch torch.Must(torch.DTypeOfTensor(value)) {
	case gotch.Double, gotch.Float, gotch.Half, gotch.BFloat16:
		return dense(value)
	}
	dtype, _ := like(params...)
	return torch.Of(value.T().MustTotype(dtype, false))
}

// whole is a value of the whole numbers from 0 to top, which may be infinite; outside is where it is none, and 0 there.
// A count has no derivative.
func whole(value torch.Tensor, top torch.Tensor) (x, outside torch.Tensor) {
	in := torch.Of(value.T().MustFloor(false)).AtLeast(0)
	if !is(top, math.Inf(1)) {
		in = in.AtMost(top)
	}
	// Of infinity the difference is NaN.
	outside = torch.Of(value.Sub(in).T().MustNe(ts.FloatScalar(0), false))
	return fill(in, outside, 0), outside
}

// masked is a log mass, minus infinity outside the support.
func (b base) masked(logp torch.Tensor, outside torch.Tensor) torch.Tensor {
	return b.full(fill(logp, outside, math.Inf(-1)))
}

// logProbs is the logarithm of probabilities. One of 0 has no gradient: where a sum over values has others, that of the
// logarithm would be 0 times infinity.
func logProbs(p torch.Tensor) torch.Tensor {
	zero := dense(p).Eq(0)
	return fill(fill(p, zero, 1).Log(), zero, math.Inf(-1))
}

// floated is a value as floating-point numbers.
func floated(value torch.Tensor) torch.Tensor { return floating(value) }

// tensorOf is a parameter as a tensor of the given type and device.
func tensorOf(v torch.Tensor, dtype gotch.DType, device gotch.Device) torch.Tensor {
	if !operand.IsNumber(v) {
		return v
	}
	return torch.Must(torch.FromSliceOn(device, dtype, []float64{operand.Number(v)}, []int{}...))
}

// alike is a parameter as a tensor of the type and on the device of others.
func alike(v torch.Tensor, params ...torch.Tensor) torch.Tensor {
	dtype, device := like(params...)
	return tensorOf(v, dtype, device)
}

// stack broadcasts values to a shape and puts them behind each other, along a new first dimension; numbers become
// tensors like x.
func stack(shape []int, x torch.Tensor, vals ...torch.Tensor) torch.Tensor {
	dtype, device := like(x)
	all := make([]torch.Tensor, len(vals))
	for i, v := range vals {
		all[i] = expandTo(tensorOf(v, dtype, device), shape)
	}
	return torch.Stack(0, all)
}

// sumParts sums parts from to to − 1 of what was stacked.
func sumParts(t torch.Tensor, from, to int) torch.Tensor {
	if to == from+1 {
		return torch.Of(t.T().MustSelect(0, int64(from), false))
	}
	return torch.Of(t.T().MustNarrow(0, int64(from), int64(to-from), false).MustSumDimIntlist([]int64{0}, false,
		t.T().DType(), false))
}

// Beyond seriesFrom three terms of Stirling's series give the peak to 2·10⁻¹⁶.
const seriesFrom = 64

var halfLog2Pi = 0.5 * math.Log(2*math.Pi)

// peakTensor is the log probability of a Poisson distribution at its mean: x log x − x − log Γ(x+1), and 0 at 0. It is
// differentiable for x > 0.
func peakTensor(x torch.Tensor) torch.Tensor {
	// Each branch gets arguments that it can bear, so that the gradient of the one not taken is 0 and not NaN. No bound is
	// where its branch is taken: derivatives at a bound are 0 or 1, as libtorch's version has it.
	s := x.AtLeast(1e-37).AtMost(seriesFrom)
	small := x.Mul(s.Log()).Sub(x).Sub(s.Add(1).Lgamma())
	l := x.AtLeast(seriesFrom / 2)
	i := l.Reciprocal()
	ii := i.Square()
	series := ii.Mul(-1. / 1260).Add(1. / 360).Mul(ii).Sub(1. / 12).Mul(i)
	large := series.Sub(l.Log().Mul(0.5).Add(halfLog2Pi))
	return torch.Choose(x.Lt(seriesFrom), small, large)
}

// counted is a tensor x ≥ 0 prepared for logarithms.
type counted struct {
	x    torch.Tensor
	zero torch.Tensor // where x is 0
	one  torch.Tensor // 1 there, 0 elsewhere
	safe torch.Tensor // x, but 1 there
}

func count(x torch.Tensor) counted {
	zero := x.Eq(0)
	one := torch.Of(zero.T().MustTotype(torch.Must(torch.DTypeOfTensor(x)), false))
	return counted{x, zero, one, x.Add(one)}
}

// poissonParts are the parts of log Poisson(x; mean) = peak − deviance. In a product of such probabilities each part is
// summed by itself: the peaks often cancel exactly, and a deviance much smaller than they would be lost.
type poissonParts struct{ peak, deviance torch.Tensor }

// logPoisson is log Poisson(x; mean), x any real number ≥ 0 (the formula is needed beyond whole numbers). A mean of 0
// has all its mass at 0; what has none has no gradient (see [logProbs]).
func logPoisson(x torch.Tensor, mean torch.Tensor) poissonParts {
	c := count(x)
	none := c.impossible(mean, 0)
	mean = fill(mean, none, 1)
	p := c.parts(mean, mean.Add(c.one).Div(c.safe).Log())
	p.deviance = fill(p.deviance, none, math.Inf(1))
	return p
}

// logPoissonLog is logPoisson from the logarithm of the mean.
func logPoissonLog(x torch.Tensor, logMean torch.Tensor) poissonParts {
	c := count(x)
	none := c.impossible(logMean, math.Inf(-1))
	logMean = fill(logMean, none, 0)
	p := c.parts(logMean.Exp(), logMean.Sub(c.safe.Log()))
	p.deviance = fill(p.deviance, none, math.Inf(1))
	return p
}

// impossible is where a count is not 0 and the mean is, for which its parameter has the given value.
func (c counted) impossible(parameter torch.Tensor, least float64) torch.Tensor {
	return torch.Of(dense(parameter).Eq(least).T().MustLogicalAnd(not(c.zero).T(), false))
}

// parts has the deviance mean − x − x δ, where δ = log(mean/x). It is x(e^δ − 1 − δ), which an error of δ changes by
// (mean − x) times it only. Where x is much smaller than the mean, that of e^δ would be lost in the derivatives.
func (c counted) parts(mean, delta torch.Tensor) poissonParts {
	delta = fill(delta, c.zero, 0)
	far := either(c.zero, delta.Gt(3))
	near := fill(delta, far, 0)
	deviance := torch.Choose(far, mean.Sub(c.x.Mul(delta.Add(1))), c.x.Mul(expm1Less(near)))
	return poissonParts{peakTensor(c.x), deviance}
}

// logProb is the whole of it.
func (p poissonParts) logProb() torch.Tensor { return p.peak.Sub(p.deviance) }

// quotient is the product of the first n of stacked probabilities over that of the others, which are
// taken at their means.
func (p poissonParts) quotient(n int) torch.Tensor {
	all := p.peak.Shape()[0]
	return sumParts(p.peak, 0, n).Sub(sumParts(p.peak, n, all)).Sub(sumParts(p.deviance, 0, n))
}

// enumerate lists 0, …, n−1 in the shape [n, 1, …, 1] for a batch of the given rank.
func enumerate(n int, rank int, dtype gotch.DType, device gotch.Device) torch.Tensor {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	shape := make([]int, rank+1)
	for i := range shape {
		shape[i] = 1
	}
	shape[0] = n
	return torch.Must(torch.FromSliceOn(device, dtype, values, shape...))
}

// lastDim splits the shape of a vector of parameters in the batch shape and the number of its elements.
func lastDim(family, name string, v torch.Tensor) (batch []int, n int) {
	shape := v.Shape()
	if len(shape) == 0 || shape[len(shape)-1] == 0 {
		panic(&Error{family, name, "a number", "a tensor with a last dimension of at least 1 is required"})
	}
	return shape[:len(shape)-1], shape[len(shape)-1]
}

// pick looks up indices, of shape sample + batch, in the last dimension of a table of shape batch + [n].
func pick(family string, table, index torch.Tensor) torch.Tensor {
	index = torch.Of(index.T().MustTotype(gotch.Int64, false))
	have, want := table.Shape(), index.Shape()
	if len(have) == 1 {
		// A view(-1) would need a contiguous index.
		flat := torch.Of(table.T().MustIndexSelect(0, index.Reshape(-1).T(), false))
		return flat.Reshape(want...)
	}
	n := have[len(have)-1]
	shape := broadcast(family, have[:len(have)-1], want)
	index = expandTo(index, shape).Unsqueeze(-1)
	return torch.Of(expandTo(table, join(shape, []int{n})).T().MustGather(-1, index.T(), false, false)).Squeeze(-1)
}

// requireCounts refuses, for families that wrap a distribution, one that is not over single counts.
func requireCounts(family, name string, d Distribution) {
	if d == nil {
		panic(&Error{family, name, "nil", "a distribution of single counts is required"})
	}
	if s := d.Support(); len(d.EventShape()) != 0 || !s.Discrete() || !is(s.Low, 0) {
		panic(&Error{family, name, fmt.Sprintf("%s over %v", d.Name(), s),
			"a distribution of single counts, from 0, is required"})
	}
}

// filled is a parameter as a tensor of a whole shape, in the type of the parameters; samplers of libtorch draw one
// number for each element.
func filled(v torch.Tensor, shape []int, params ...torch.Tensor) torch.Tensor {
	dtype, device := like(params...)
	return expandTo(tensorOf(v, dtype, device), shape)
}
