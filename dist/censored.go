package dist

import (
	"cmp"
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// censoredDist is a distribution whose numbers are seen up to bounds; see [Censored].
type censoredDist struct {
	base
	of        Distribution
	low, high torch.Tensor
}

// Censored is the distribution of what is seen of a number x of distribution d where all numbers up to low are seen as
// low, and all from high on as high. In between it has the density of d, or its mass, and
//
//	log p(low) = log P(X ≤ low),  log p(high) = log P(X ≥ high)
//
// The bounds are numbers, or tensors with one for each datum, and may be infinite. Times until an event of which some
// are cut off by the end of a study are observed with high = the time where the event was not seen, and infinity where
// it was:
//
//	high := torch.Where(event.Eq(1), math.Inf(1), time)
//	c.Observe("time", dist.Censored(dist.Weibull(scale, shape), 0, high), time)
//
// d has a distribution function ([LogCDF]). Where data are known up to an interval see [Binned]. A censored number is
// for Observe: as a latent variable it is refused, since its bounds have a probability. Mean and Variance are those of
// what is seen, and NaN where [Truncated] of d with these bounds does not exist.
func Censored(d Distribution, low, high any) (made Distribution) {
	defer orMisfit(&made)
	const family = "Censored"
	lo, hi := param(family, "low", low), param(family, "high", high)
	requireTails(family, d)
	b := base{family: family, batch: broadcast(family, d.BatchShape(), lo.Shape(), hi.Shape())}
	b.checkNumber("low", lo, notNaN)
	b.checkNumber("high", hi, notNaN)
	b.checkAbove("high", lo, hi)
	return censoredDist{b, d.Expand(b.batch...), lo, hi}
}

// requireTails refuses a distribution that has no distribution function.
func requireTails(family string, d Distribution) {
	if d == nil {
		panic(&Error{family, "base", "nil", "a distribution of single numbers is required"})
	}
	if missing := noTails(d); missing != "" {
		panic(&Error{family, "base", missing, "it has no distribution function here"})
	}
}

// Base is the distribution d.
func (d censoredDist) Base() Distribution { return d.of }

// Name says what is censored.
func (d censoredDist) Name() string { return fmt.Sprintf("Censored(%s)", d.of.Name()) }

// Support is what of the support of d is between the bounds, with them.
func (d censoredDist) Support() support.Support {
	low, high := bounds(d.of)
	low, high = low.AtLeast(d.low), high.AtMost(d.high)
	if d.of.Support().Discrete() {
		return support.Support{Kind: support.KindInteger, Low: low, High: high, Atoms: true}
	}
	return support.Support{Kind: support.KindInterval, Low: low, High: high, Closed: true, Atoms: true}
}

// LogProb is the log density in between, and a log probability at the bounds.
func (d censoredDist) LogProb(value torch.Tensor) torch.Tensor {
	x := floated(value)
	outside := either(below(x, d.low), above(x, d.high))
	first, last := atMost(x, d.low), atLeast(x, d.high)
	logp := d.of.LogProb(torch.Choose(either(first, last), d.inner(), x))
	if !is(d.low, math.Inf(-1)) {
		lower, _ := tailsAnywhere(d.of, dense(d.low))
		logp = torch.Choose(first, lower, logp)
	}
	if !is(d.high, math.Inf(1)) {
		_, upper := tailsAnywhere(d.of, d.under(d.high))
		logp = torch.Choose(last, upper, logp)
	}
	return d.masked(logp, outside)
}

// inner is a number at which the density is asked in the place of a bound.
func (d censoredDist) inner() torch.Tensor {
	if d.of.Support().Discrete() {
		return torch.Of(innerOf(d.of).T().MustFloor(false))
	}
	return innerOf(d.of)
}

// under is x, or the whole number before it: P(X ≥ x) is P(X > under).
func (d censoredDist) under(x torch.Tensor) torch.Tensor {
	if d.of.Support().Discrete() {
		return torch.Of(dense(x).T().MustCeil(false)).Sub(1)
	}
	return dense(x)
}

// Sample draws from d and cuts what is beyond the bounds, reparameterised where d is.
func (d censoredDist) Sample(src *Source, sample ...int) torch.Tensor {
	return d.of.Sample(src, sample...).AtLeast(d.low).AtMost(d.high)
}

// Mean is that of what is seen.
func (d censoredDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return mean
}

// Variance is that of what is seen.
func (d censoredDist) Variance() torch.Tensor {
	_, variance := d.moments()
	return variance
}

// moments are those of three parts, of which two are at the bounds.
func (d censoredDist) moments() (mean, variance torch.Tensor) {
	between := Truncated(d.of, d.low, d.high)
	if _, wrong := between.(misfit); wrong {
		nan := d.constantLike(math.NaN(), d.low, d.high)
		return nan, nan
	}
	lower, _ := tailsAnywhere(d.of, d.under(d.low))
	_, upper := tailsAnywhere(d.of, dense(d.high))
	type part struct{ p, mean, variance torch.Tensor }
	finite := func(x torch.Tensor) torch.Tensor { return fill(dense(x), isInfinite(dense(x)), 0) }
	first, last := part{lower.Exp(), finite(d.low), torch.Of(0)}, part{upper.Exp(), finite(d.high), torch.Of(0)}
	middle := part{torch.Of(1).Sub(first.p).Sub(last.p), between.Mean(), between.Variance()}
	mean, variance = torch.Of(0), torch.Of(0)
	parts := []part{first, middle, last}
	for _, p := range parts {
		mean = mean.Add(p.p.Mul(p.mean))
	}
	for _, p := range parts {
		variance = variance.Add(p.p.Mul(p.variance.Add(p.mean.Sub(mean).Square())))
	}
	return d.spread(mean), d.spread(variance)
}

// Expand broadcasts the batch shape.
func (d censoredDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks d and the bounds.
func (d censoredDist) Validate() error {
	return cmp.Or(d.of.Validate(), d.validate("low", d.low, notNaN), d.validate("high", d.high, notNaN),
		d.validateAbove("high", d.low, d.high))
}

// Params are the base and the bounds by name.
func (d censoredDist) Params() map[string]any {
	return map[string]any{"base": d.of, "low": d.low, "high": d.high}
}

// binnedDist is the bin of a number; see [Binned].
type binnedDist struct {
	base
	of   Distribution
	cuts torch.Tensor // [..., K-1]
	bins int
}

// Binned is the distribution of the bin in which a number x of distribution d lies: 0 up to the first cut, k from
// above cut k to cut k + 1, and so on. cuts has the K − 1 ends between K bins, which rise, along its last dimension;
// its other dimensions broadcast against the batch of d, so that each datum may have cuts of its own:
//
//	log p(k) = log P(cut k < X ≤ cut k+1)
//
// computed as [LogInterval]. It is for grouped data, and for times that are known to be between two visits: the last
// one before the event and the first one after, as cuts of shape [N, 2] with infinity where there was none, observed
// as 1.
func Binned(d Distribution, cuts any) (made Distribution) {
	defer orMisfit(&made)
	const family = "Binned"
	c := param(family, "cuts", cuts)
	requireTails(family, d)
	batch, n := lastDim(family, "cuts", c)
	b := base{family: family, batch: broadcast(family, d.BatchShape(), batch)}
	return binnedDist{b, d.Expand(b.batch...), c, n + 1}
}

// Base is the distribution d.
func (d binnedDist) Base() Distribution { return d.of }

// Name says what is binned.
func (d binnedDist) Name() string { return fmt.Sprintf("Binned(%s)", d.of.Name()) }

// Support is the numbers of the bins.
func (d binnedDist) Support() support.Support { return support.IntegerInterval(0, float64(d.bins-1)) }

// cut is the end at the index of each value, −∞ before the first and ∞ after the last.
func (d binnedDist) cut(index torch.Tensor, shift float64) torch.Tensor {
	at := index.Add(shift)
	none, all := at.Lt(0), at.Gt(float64(d.bins-2))
	c := pick(d.family, d.cuts, at.AtLeast(0).AtMost(float64(d.bins-2)))
	return fill(fill(c, none, math.Inf(-1)), all, math.Inf(1))
}

// LogProb is the log probability of a bin.
func (d binnedDist) LogProb(value torch.Tensor) torch.Tensor {
	k, outside := whole(floating(value, d.cuts), torch.Of(float64(d.bins-1)))
	pair := func(shift float64) tailPair {
		lower, upper := tailsAnywhere(d.of, d.cut(k, shift))
		return tailPair{lower, upper}
	}
	mass, lost := massBetween(d.family, pair(-1), pair(0))
	return d.masked(fill(mass, lost, math.Inf(-1)), outside)
}

// Sample draws the bins of draws of d, as floating-point numbers; they have no gradient.
func (d binnedDist) Sample(src *Source, sample ...int) torch.Tensor {
	x := constant(d.of.Sample(src, sample...)).Unsqueeze(-1)
	over := torch.Of(x.Sub(d.cuts).Gt(0).T().MustTotype(d.cuts.T().DType(), false))
	return operand.SumLast(over, 1)
}

// EnumerateSupport lists the bins.
func (d binnedDist) EnumerateSupport() torch.Tensor {
	dtype, device := like(d.cuts)
	return enumerate(d.bins, len(d.batch), dtype, device)
}

// moments are those of the number of the bin.
func (d binnedDist) moments() (mean, variance torch.Tensor) {
	return indexMoments(torch.Of(d.LogProb(d.EnumerateSupport()).Exp().T().MustMovedimInt(0, -1, false)))
}

// Mean is Σ k p(k).
func (d binnedDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return d.spread(mean)
}

// Variance is Σ (k − mean)² p(k).
func (d binnedDist) Variance() torch.Tensor {
	_, variance := d.moments()
	return d.spread(variance)
}

// Expand broadcasts the batch shape.
func (d binnedDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks d, and that the cuts rise.
func (d binnedDist) Validate() error {
	err := cmp.Or(d.of.Validate(), d.validate("cuts", d.cuts, notNaN))
	if err != nil || d.bins < 3 {
		return err
	}
	from, to := d.cuts.Slice(-1, 0, d.bins-2), d.cuts.Slice(-1, 1, d.bins-1)
	return base{family: d.family, batch: from.Shape()}.validateAbove("cuts", from, to)
}

// Params are the base and the cuts by name.
func (d binnedDist) Params() map[string]any { return map[string]any{"base": d.of, "cuts": d.cuts} }
