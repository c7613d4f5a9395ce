package dist

import (
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// ZeroInflatedDist is a distribution of counts with more zeros; see [ZeroInflated].
type ZeroInflatedDist struct {
	base
	gate   val
	counts Distribution
}

// ZeroInflated is 0 with probability gate, from 0 to 1, and else a draw from a distribution of single counts:
//
//	log p(0) = log(gate + (1 − gate) p_base(0)),  log p(x) = log(1 − gate) + log p_base(x) for x > 0
func ZeroInflated(gate any, counts Distribution) ZeroInflatedDist {
	const family = "ZeroInflated"
	g := param(family, "gate", gate)
	requireCounts(family, "base", counts)
	d := ZeroInflatedDist{base: base{family: family, batch: broadcast(family, g.shape(), counts.BatchShape())}, gate: g, counts: counts}
	d.checkNumber("gate", g, probability)
	return d
}

// Support is that of the distribution inside.
func (d ZeroInflatedDist) Support() support.Support { return d.counts.Support() }

// LogProb is the log mass.
func (d ZeroInflatedDist) LogProb(value *ts.Tensor) *ts.Tensor {
	lp := d.counts.LogProb(value)
	x := floating(value, ten(lp))
	zero := x.MustEq(ts.FloatScalar(0), false)
	g := ten(d.gate.tensorOf(like(ten(lp))))

	// Zero: the mixture by its distance from 1 where that is small, else by its sum. An e^lp that would underflow matters
	// at gate 0 only.
	floor := num(-700)
	if lp.DType() == gotch.Float {
		floor = num(-80)
	}
	e := ten(lp.MustClampMin(ts.FloatScalar(floor.c), false))
	short := ten(e.t.MustExpm1(false)).mul(num(1).sub(g)) // p(0) − 1
	sum := e.exp().mul(num(1).sub(g)).add(g)
	below := where(g.t.MustEq(ts.FloatScalar(0), false), ten(lp).sub(e), num(0))
	near := ten(short.t.MustClampMin(ts.FloatScalar(-0.5), false)).log1p()
	atZero := ten(where(short.t.MustGt(ts.FloatScalar(-0.5), false), near, sum.log())).add(ten(below))

	// More: at 0 the gate is left out, so that log(1 − 1) has no gradient there.
	more := ten(where(zero, num(0), g)).neg().log1p().add(ten(lp))
	outside := not(zero).MustLogicalAnd(isInfinite(lp), false)
	return d.masked(ten(where(zero, atZero, more)), outside)
}

// Sample draws counts and sets some to 0.
func (d ZeroInflatedDist) Sample(src *Source, sample ...int64) *ts.Tensor {
	_, device := like(d.gate)
	u := torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device))
	x := d.counts.Expand(d.batch...).Sample(src, sample...)
	keep := ten(u).t.MustGeTensor(d.gate.tensorOf(gotch.Double, device), false)
	return x.MustMul(keep.MustTotype(x.DType(), false), false)
}

// Mean is (1 − gate) times the mean inside.
func (d ZeroInflatedDist) Mean() *ts.Tensor {
	return d.spread(num(1).sub(d.gate).mul(ten(d.counts.Mean())))
}

// Variance is (1 − gate)(v + gate m²), for mean m and variance v inside.
func (d ZeroInflatedDist) Variance() *ts.Tensor {
	m := ten(d.counts.Mean())
	return d.spread(m.square().mul(d.gate).add(ten(d.counts.Variance())).mul(num(1).sub(d.gate)))
}

// Expand broadcasts the batch shape.
func (d ZeroInflatedDist) Expand(batch ...int64) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks gate and the distribution inside.
func (d ZeroInflatedDist) Validate() error {
	return first(d.validate("gate", d.gate, probability), d.counts.Validate())
}

// Params are the parameters by name.
func (d ZeroInflatedDist) Params() map[string]any {
	return map[string]any{"gate": d.gate.any(), "base": d.counts}
}
