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

var poissonLogFamily = &family{"PoissonLog", support.NonnegativeInteger,
	func(b base) Distribution { return poissonDist{b, torch.Tensor{}, b.at(0), true} },
	[]parameter{{"logRate", belowInfinity}}}

var poissonFamily = &family{"Poisson", support.NonnegativeInteger,
	func(b base) Distribution { return poissonDist{base: b, rate: b.at(0)} },
	[]parameter{{"rate", nonNegative}}}

// Poisson is the Poisson distribution with mean rate ≥ 0:
//
//	log p(x) = x log rate − rate − log x!
//
// It is computed by Loader's saddle-point expansion (2000) and loses no digits at large rates.
func Poisson(rate any) Distribution { return poissonFamily.with(rate) }

// PoissonLog is the Poisson distribution from the logarithm of its mean:
//
//	log p(x) = x logRate − exp(logRate) − log x!
func PoissonLog(logRate any) (made Distribution) {
	defer orMisfit(&made)
	return poissonLog("PoissonLog", logRate)
}

func poissonLog(name string, logRate any) poissonDist {
	return poissonLogFamily.of(poissonLogFamily.base(name, logRate)).(poissonDist)
}

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
func (d poissonDist) Sample(src *Source, sample ...int) torch.Tensor {
	return torch.Must(src.Poisson(filled(d.mean(), join(sample, d.batch), d.rate, d.logRate)))
}

// Mean is the rate.
func (d poissonDist) Mean() torch.Tensor { return d.spread(d.mean()) }

// Variance is the rate.
func (d poissonDist) Variance() torch.Tensor { return d.spread(d.mean()) }
