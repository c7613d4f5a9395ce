package dist

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// truncatedCountsDist is a distribution of whole numbers on an interval; see [Truncated].
type truncatedCountsDist struct {
	base
	of   Distribution
	low  int
	size int
}

// mostCounts is how many values a truncated distribution of whole numbers may have.
const mostCounts = 1 << 20

// newTruncatedCounts is Truncated for whole numbers.
func newTruncatedCounts(d Distribution, low, high torch.Tensor) Distribution {
	const family = "Truncated"
	sup, single := span(d.Support())
	if len(d.EventShape()) != 0 || !single {
		panic(&Error{family, "base", fmt.Sprintf("%s over %v", d.Name(), d.Support()),
			"a distribution of single numbers is required"})
	}
	ends := [2]float64{}
	for i, end := range [2]torch.Tensor{low, high} {
		v, ok := end.Number()
		if !ok || math.IsNaN(v) {
			text := "NaN"
			if !ok {
				text = fmt.Sprintf("a tensor of shape %v", end.Shape())
			}
			panic(&Error{family, [2]string{"low", "high"}[i], text, "the ends of whole numbers are Go numbers"})
		}
		ends[i] = v
	}
	// An end of the support that is a tensor is left to the mass outside it, which is 0.
	from, to := math.Ceil(ends[0]), math.Floor(ends[1])
	if v, ok := sup.Low.Number(); ok {
		from = max(from, v)
	}
	if v, ok := sup.High.Number(); ok {
		to = min(to, v)
	}
	switch n := to - from + 1; {
	case math.IsInf(from, 0) || math.IsInf(to, 0):
		panic(&Error{family, "the interval", fmt.Sprintf("[%v, %v]", ends[0], ends[1]),
			fmt.Sprintf("both ends of %s must be finite: its mass is a sum over all values between them", d.Name())})
	case n < 1:
		panic(&Error{family, "the interval", fmt.Sprintf("[%v, %v]", ends[0], ends[1]),
			fmt.Sprintf("it must have a part in the support of %s, %v", d.Name(), d.Support())})
	case n > mostCounts:
		panic(&Error{family, "the interval", fmt.Sprintf("[%v, %v]", ends[0], ends[1]),
			fmt.Sprintf("it has %.0f values, and at most %d are summed", n, mostCounts)})
	}
	return truncatedCountsDist{base{family: family, batch: d.BatchShape()}, d, int(from), int(to-from) + 1}
}

// Base is the distribution d.
func (d truncatedCountsDist) Base() Distribution { return d.of }

// Name says what is truncated.
func (d truncatedCountsDist) Name() string { return fmt.Sprintf("Truncated(%s)", d.of.Name()) }

// Support is the whole numbers of the interval.
func (d truncatedCountsDist) Support() support.Support {
	return support.IntegerInterval(float64(d.low), float64(d.low+d.size-1))
}

// EnumerateSupport lists the values.
func (d truncatedCountsDist) EnumerateSupport() torch.Tensor {
	dtype, device := typeOf(d.of)
	return enumerate(d.size, len(d.batch), dtype, device).Add(float64(d.low))
}

// relative is a distribution of which the masses have a common factor that vanishes at an end of its parameters. The
// logarithms of the masses without that factor are those of [Truncated] there.
type relative interface {
	relative(value torch.Tensor) torch.Tensor
}

// masses are the logarithms of numbers proportional to the masses of d.
func masses(d Distribution, value torch.Tensor) torch.Tensor {
	if of, ok := d.(relative); ok {
		return of.relative(value)
	}
	return d.LogProb(value)
}

// inward is d with what of its parameters is at an end of their range moved inside, by less than rounding changes any
// mass: a mass that vanishes there has a logarithm still, by which the sum has its derivative. It stays where all
// masses of the table vanish.
func (d truncatedCountsDist) inward(table torch.Tensor) Distribution {
	some := torch.Of(table.T().MustDetach(false).MustAmax([]int64{0}, false, true)).Gt(math.Inf(-1))
	off := func(p torch.Tensor, end, step float64) torch.Tensor {
		p = dense(p)
		dtype := p.T().DType()
		if dtype == gotch.Float {
			step = math.Copysign(max(1e-18, math.Abs(step)*0x1p29), step) // to 2⁻²⁴
		}
		at := torch.Of(p.Eq(end).T().MustLogicalAnd(some.T(), false).MustTotype(dtype, true))
		return p.Add(at.Mul(step))
	}
	const tiny, rounding = 1e-150, -0x1p-53
	switch of := d.of.(type) {
	case poissonDist:
		if !of.fromLog {
			of.rate = off(of.rate, 0, tiny)
		}
		return of
	case binomialDist:
		if !of.fromLogits {
			of.probs = off(off(of.probs, 0, tiny), 1, rounding)
		}
		return of
	case geometricDist:
		of.probs = off(of.probs, 1, rounding)
		return of
	case negativeBinomialDist:
		if of.kind != "logits" {
			of.second = off(of.second, 0, tiny)
		}
		return of
	case zeroInflatedDist:
		of.gate = off(of.gate, 1, rounding)
		return of
	}
	return d.of
}

// table is the log mass at all values, of shape [K] + batch, total the logarithm of what it was divided by, and of the
// distribution that it is of. Where all masses are 0, total has no gradient.
func (d truncatedCountsDist) table() (table, total torch.Tensor, of Distribution) {
	values := d.EnumerateSupport()
	exact := masses(d.of, values)
	of = d.inward(exact)
	table = masses(of, values)
	total = logSumExp(torch.Of(table.T().MustMovedimInt(0, -1, false)))
	log := torch.Of(d.limit(values, table, total).T().MustMovedimInt(0, -1, false))
	return possible(exact, torch.Of(sure(log, log.Exp()).T().MustMovedimInt(-1, 0, false))), total, of
}

// possible is log masses, without what inward has made of impossible ones; of limit they are 0.
func possible(exact, logp torch.Tensor) torch.Tensor {
	never := exact.Eq(math.Inf(-1)).T().MustLogicalAnd(logp.Lt(0).T(), false)
	return fill(logp, torch.Of(never), math.Inf(-1))
}

// limit is masses over total. Where all are 0 and the mean of d is outside the interval, as that of a Poisson
// distribution truncated to [1, n] is at rate 0, they tend to 1 at the nearest value.
func (d truncatedCountsDist) limit(value, masses, total torch.Tensor) torch.Tensor {
	none := total.T().MustEq(ts.FloatScalar(math.Inf(-1)), false)
	logp := masses.Sub(fill(total, torch.Of(none), 0))
	switch d.of.(type) {
	case poissonDist, binomialDist, negativeBinomialDist, geometricDist:
		nearest := d.of.Mean().AtLeast(float64(d.low)).AtMost(float64(d.low + d.size - 1))
		there := value.Sub(nearest).Eq(0).T()
		return fill(logp, torch.Of(there.MustLogicalAnd(none, false)), 0)
	}
	return logp
}

// EnumerateLogProb is the log mass at all values, of shape [K] + batch.
func (d truncatedCountsDist) EnumerateLogProb() torch.Tensor {
	table, _, _ := d.table()
	return table
}

// LeftOut is the probability of d outside the interval, of the batch shape; below 1e-16 it is rounding.
func (d truncatedCountsDist) LeftOut() torch.Tensor {
	return d.of.LogProb(d.EnumerateSupport()).LogSumExp(0).Expm1().Neg().AtLeast(0)
}

// LogProb is the log mass.
func (d truncatedCountsDist) LogProb(value torch.Tensor) torch.Tensor {
	table, total, of := d.table()
	x := floated(value)
	outside := either(below(x, torch.Of(float64(d.low))), above(x, torch.Of(float64(d.low+d.size-1))))
	x = fill(x, outside, float64(d.low))
	logp := possible(masses(d.of, x), d.limit(x, masses(of, x), total))
	whole := x.T().MustFloor(false)
	near := pick(d.family, torch.Of(table.T().MustMovedimInt(0, -1, false)), torch.Of(whole).Sub(float64(d.low)))
	sure := torch.Of(near.Gt(-0.1).T().MustLogicalAnd(x.T().MustEqTensor(whole, false), false))
	return d.masked(torch.Choose(sure, near, logp), outside)
}

// Sample draws whole numbers, in the parameters' type: the largest of log p + Gumbel noise.
func (d truncatedCountsDist) Sample(src *Source, sample ...int) torch.Tensor {
	dtype, device := typeOf(d.of)
	table, _, _ := d.table()
	logits := torch.Of(table.T().MustMovedimInt(0, -1, false))
	u := torch.Must(src.Uniform(join(sample, d.batch, []int{d.size}), gotch.Double, device))
	index := torch.Of(logits.Sub(u.Log().Neg().Log()).T().MustArgmax([]int64{-1}, false, false))
	return torch.Of(index.T().MustTotype(dtype, false)).Add(float64(d.low))
}

// moments are the mean and variance of the value less low.
func (d truncatedCountsDist) moments() (mean, variance torch.Tensor) {
	return indexMoments(torch.Of(d.EnumerateLogProb().Exp().T().MustMovedimInt(0, -1, false)))
}

// Mean is Σ k p(k).
func (d truncatedCountsDist) Mean() torch.Tensor {
	mean, _ := d.moments()
	return d.spread(mean.Add(float64(d.low)))
}

// Variance is Σ (k − mean)² p(k).
func (d truncatedCountsDist) Variance() torch.Tensor {
	_, variance := d.moments()
	return d.spread(variance)
}

// Expand broadcasts the batch shape.
func (d truncatedCountsDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	d.of = d.of.Expand(batch...)
	return d
}

// Validate checks the parameters of d, and that it has a mass in the interval.
func (d truncatedCountsDist) Validate() error {
	if err := d.of.Validate(); err != nil {
		return err
	}
	total := d.of.LogProb(d.EnumerateSupport()).LogSumExp(0)
	return d.validate("the log probability of the interval", dense(total), finite)
}

// Params are the base and the ends by name.
func (d truncatedCountsDist) Params() map[string]any {
	return map[string]any{"base": d.of, "low": torch.Of(float64(d.low)), "high": torch.Of(float64(d.low + d.size - 1))}
}
