package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// poissonDist is the Poisson distribution; see [Poisson] and [PoissonLog].
type poissonDist struct {
	base
	rate, logRate torch.Tensor
	fromLog       bool
}

// Poisson is the Poisson distribution with mean rate ≥ 0:
//
//	log p(x) = x log rate − rate − log x!
//
// It is computed by Loader's saddle-point expansion (2000) and loses no digits at large rates.
func Poisson(rate any) (made Distribution) {
	defer orMisfit(&made)
	r := param("Poisson", "rate", rate)
	d := poissonDist{base: newBase("Poisson", r), rate: r}
	d.checkNumber("rate", r, nonNegative)
	return d
}

// PoissonLog is the Poisson distribution from the logarithm of its mean:
//
//	log p(x) = x logRate − exp(logRate) − log x!
func PoissonLog(logRate any) (made Distribution) {
	defer orMisfit(&made)
	return poissonLog("PoissonLog", logRate)
}

func poissonLog(family string, logRate any) poissonDist {
	l := param(family, "logRate", logRate)
	d := poissonDist{base: newBase(family, l), logRate: l, fromLog: true}
	d.checkNumber("logRate", l, belowInfinity)
	return d
}

// Support is 0, 1, 2, …
func (d poissonDist) Support() support.Support { return support.NonnegativeInteger }

// LogProb is the log mass.
func (d poissonDist) LogProb(value torch.Tensor) torch.Tensor {
	x, outside := whole(floating(value, d.rate, d.logRate), torch.Of(math.Inf(1)))
	if d.fromLog {
		return d.masked(logPoissonLog(x, d.logRate).logProb(), outside)
	}
	return d.masked(logPoisson(x, d.rate).logProb(), outside)
}

// mean is the rate.
func (d poissonDist) mean() torch.Tensor {
	if d.fromLog {
		return d.logRate.Exp()
	}
	return d.rate
}

// Sample draws counts, in the parameter's type.
func (d poissonDist) Sample(src *Source, sample ...int64) torch.Tensor {
	return torch.Of(torch.Must(src.Poisson(filled(d.mean(), join(sample, d.batch), d.rate, d.logRate).T())))
}

// Mean is the rate.
func (d poissonDist) Mean() torch.Tensor { return d.spread(d.mean()) }

// Variance is the rate.
func (d poissonDist) Variance() torch.Tensor { return d.spread(d.mean()) }

// Expand broadcasts the batch shape.
func (d poissonDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks the parameter.
func (d poissonDist) Validate() error {
	if d.fromLog {
		return d.validate("logRate", d.logRate, belowInfinity)
	}
	return d.validate("rate", d.rate, nonNegative)
}

// Params is the parameter by name.
func (d poissonDist) Params() map[string]any {
	if d.fromLog {
		return map[string]any{"logRate": d.logRate}
	}
	return map[string]any{"rate": d.rate}
}
