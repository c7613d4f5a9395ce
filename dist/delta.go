package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/sugarme/gotch/ts"
)

// DeltaDist is all mass at one value; see [Delta].
type DeltaDist struct {
	base
	value, logDensity val
}

// Delta is the distribution with all mass at value, a number or a tensor of independent ones. Its log density there is 0, or
// logDensity where it is given, and minus infinity elsewhere.
func Delta(value any, logDensity ...any) DeltaDist {
	v, l := param("Delta", "value", value), num(0)
	if t, ok := value.(*ts.Tensor); ok {
		v = ten(t) // draws keep its type, which may be of whole numbers
	}
	if len(logDensity) > 0 {
		l = param("Delta", "logDensity", logDensity[0])
	}
	d := DeltaDist{base: newBase("Delta", v, l), value: v, logDensity: l}
	d.checkNumber("value", v, notNaN)
	d.checkNumber("logDensity", l, notNaN)
	return d
}

// Support is the value.
func (d DeltaDist) Support() support.Support { return support.At(d.value.any()) }

// LogProb is logDensity at the value.
func (d DeltaDist) LogProb(value *ts.Tensor) *ts.Tensor {
	var elsewhere *ts.Tensor
	if d.value.isNum() {
		elsewhere = value.MustNe(ts.FloatScalar(d.value.c), false)
	} else {
		elsewhere = value.MustNeTensor(d.value.t, false)
	}
	// The difference is 0 where it is not filled; it keeps the graph and the type of the value.
	zero := ten(floating(value, d.logDensity)).fill(isInfinite(value), 0).mul(num(0))
	return d.full(zero.add(d.logDensity).t.MustExpand(broadcast(d.family, ten(elsewhere).shape(), d.logDensity.shape()), true, false).
		MustMaskedFill(elsewhere, ts.FloatScalar(math.Inf(-1)), false))
}

func isInfinite(t *ts.Tensor) *ts.Tensor { return t.MustIsinf(false) }

// Sample is the value; gradients flow.
func (d DeltaDist) Sample(_ *Source, sample ...int64) *ts.Tensor {
	return filled(d.value, join(sample, d.batch), d.value, d.logDensity)
}

// Mean is the value.
func (d DeltaDist) Mean() *ts.Tensor { return d.spread(d.value) }

// Variance is 0.
func (d DeltaDist) Variance() *ts.Tensor { return d.constantLike(0, d.value, d.logDensity) }

// Expand broadcasts the batch shape.
func (d DeltaDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks value and logDensity.
func (d DeltaDist) Validate() error {
	return first(d.validate("value", d.value, notNaN), d.validate("logDensity", d.logDensity, notNaN))
}

// Params are the parameters by name.
func (d DeltaDist) Params() map[string]any {
	return map[string]any{"value": d.value.any(), "logDensity": d.logDensity.any()}
}
