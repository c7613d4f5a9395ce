package dist

import (
	"math"

	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// deltaDist is all mass at one value; see [Delta].
type deltaDist struct {
	base
	value, logDensity torch.Tensor
}

var deltaFamily = &family{"Delta", itsOwn, func(b base) Distribution { return deltaDist{b, b.at(0), b.at(1)} },
	[]parameter{{"value", notNaN}, {"logDensity", notNaN}}}

// Delta is the distribution with all mass at value, a number or a tensor of independent ones. Its log density there is
// 0, or logDensity where it is given, and minus infinity elsewhere.
func Delta(value any, logDensity ...any) (made Distribution) {
	defer orMisfit(&made)
	there := any(0)
	if len(logDensity) > 0 {
		there = logDensity[0]
	}
	d := deltaFamily.build(value, there).(deltaDist)
	if operand.IsNumber(d.value) {
		return d
	}
	return d.with(torch.Of(value), d.logDensity) // draws keep its type, which may be of whole numbers
}

// Support is the value.
func (d deltaDist) Support() support.Support { return support.At(d.value) }

// LogProb is logDensity at the value.
func (d deltaDist) LogProb(value torch.Tensor) torch.Tensor {
	var elsewhere torch.Tensor
	if operand.IsNumber(d.value) {
		elsewhere = torch.Of(value.T().MustNe(ts.FloatScalar(operand.Number(d.value)), false))
	} else {
		elsewhere = torch.Of(value.T().MustNeTensor(d.value.T(), false))
	}
	// The difference is 0 where it is not filled; it keeps the graph and the type of the value.
	zero := fill(floating(value, d.logDensity), isInfinite(value), 0).Mul(0)
	shape := broadcast(d.family, elsewhere.Shape(), d.logDensity.Shape())
	there := zero.Add(d.logDensity).Expand(shape...).T()
	return d.full(torch.Of(there.MustMaskedFill(elsewhere.T(), ts.FloatScalar(math.Inf(-1)), false)))
}

func isInfinite(t torch.Tensor) torch.Tensor { return torch.Of(t.T().MustIsinf(false)) }

// Sample is the value; gradients flow.
func (d deltaDist) Sample(_ *Source, sample ...int) torch.Tensor {
	return filled(d.value, join(sample, d.batch), d.value, d.logDensity)
}

// Mean is the value.
func (d deltaDist) Mean() torch.Tensor { return d.spread(d.value) }

// Variance is 0.
func (d deltaDist) Variance() torch.Tensor { return d.constantLike(0, d.value, d.logDensity) }
