package dist

import (
	"cmp"

	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/dist/support"
	"github.com/kelvin-ppl/kelvin/torch"
)

// zeroInflatedDist is a distribution of counts with more zeros; see [ZeroInflated].
type zeroInflatedDist struct {
	base
	gate   torch.Tensor
	counts Distribution
}

// ZeroInflated is 0 with probability gate, from 0 to 1, and else a draw from a distribution of single counts:
//
//	log p(0) = log(gate + (1 − gate) p_base(0)),  log p(x) = log(1 − gate) + log p_base(x) for x > 0
func ZeroInflated(gate any, counts Distribution) (made Distribution) {
	defer orMisfit(&made)
	const family = "ZeroInflated"
	g := param(family, "gate", gate)
	requireCounts(family, "base", counts)
	d := zeroInflatedDist{
		base:   base{family: family, batch: broadcast(family, g.Shape(), counts.BatchShape())},
		gate:   g,
		counts: counts,
	}
	d.checkNumber("gate", g, probability)
	return d
}

// Support is that of the distribution inside.
func (d zeroInflatedDist) Support() support.Support { return d.counts.Support() }

// LogProb is the log mass.
func (d zeroInflatedDist) LogProb(value torch.Tensor) torch.Tensor {
	lp := d.counts.LogProb(value)
	x := floating(value, lp)
	zero := x.Eq(0)
	g := alike(d.gate, lp)

	// Zero: the mixture by its distance from 1 where that is small, else by its sum. An e^lp that would underflow matters
	// at gate 0 only.
	floor := torch.Of(-700)
	if lp.T().DType() == gotch.Float {
		floor = torch.Of(-80)
	}
	e := lp.Max(operand.Number(floor))
	short := e.Expm1().Mul(torch.Of(1).Sub(g)) // p(0) − 1
	sum := e.Exp().Mul(torch.Of(1).Sub(g)).Add(g)
	below := torch.Choose(g.Eq(0), lp.Sub(e), 0)
	near := short.Max(-0.5).Log1p()
	atZero := torch.Choose(short.Gt(-0.5), near, sum.Log()).Add(below)

	// More: at 0 the gate is left out, and where it is 1, so that log(1 − 1) has no gradient there.
	shut := g.Eq(1)
	more := torch.Choose(either(zero, shut), 0, g).Neg().Log1p().Add(lp)
	outside := torch.Of(not(zero).T().MustLogicalAnd(either(isInfinite(lp), shut).T(), false))
	return d.masked(torch.Choose(zero, atZero, more), outside)
}

// Sample draws counts and sets some to 0.
func (d zeroInflatedDist) Sample(src *Source, sample ...int) torch.Tensor {
	_, device := like(d.gate)
	u := torch.Must(src.Uniform(join(sample, d.batch), gotch.Double, device))
	x := d.counts.Expand(d.batch...).Sample(src, sample...)
	keep := u.Ge(tensorOf(d.gate, gotch.Double, device))
	return x.Mul(torch.Of(keep.T().MustTotype(x.T().DType(), false)))
}

// Mean is (1 − gate) times the mean inside.
func (d zeroInflatedDist) Mean() torch.Tensor {
	return d.spread(torch.Of(1).Sub(d.gate).Mul(d.counts.Mean()))
}

// Variance is (1 − gate)(v + gate m²), for mean m and variance v inside.
func (d zeroInflatedDist) Variance() torch.Tensor {
	m := d.counts.Mean()
	return d.spread(m.Square().Mul(d.gate).Add(d.counts.Variance()).Mul(torch.Of(1).Sub(d.gate)))
}

// Expand broadcasts the batch shape.
func (d zeroInflatedDist) Expand(batch ...int) Distribution {
	d.base = d.expand(batch)
	return d
}

// Validate checks gate and the distribution inside.
func (d zeroInflatedDist) Validate() error {
	return cmp.Or(d.validate("gate", d.gate, probability), d.counts.Validate())
}

// Params are the parameters by name.
func (d zeroInflatedDist) Params() map[string]any {
	return map[string]any{"gate": d.gate, "base": d.counts}
}
