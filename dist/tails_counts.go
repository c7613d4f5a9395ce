package dist

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// Tails of whole numbers, at whole numbers below the last of the support.

// P(X ≤ x) is Q(x + 1, rate).
func (d poissonDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	upper, lower = gammaTails(x.Add(1), dense(d.mean()))
	return lower, upper
}

func (d geometricDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	sure := dense(d.probs).Eq(1)
	upper = x.Add(1).Mul(fill(d.probs, sure, 0.5).Neg().Log1p())
	return fill(logOneMinusExp(upper), sure, 0), fill(upper, sure, math.Inf(-1))
}

func (d zeroInflatedDist) logTails(x torch.Tensor) (lower, upper torch.Tensor) {
	low, high := tailsAnywhere(d.counts, x)
	g := dense(d.gate)
	// A probability that would underflow matters at gate 0 only.
	floor := low.AtLeast(-700)
	lower = floor.Exp().Mul(torch.Of(1).Sub(g)).Add(g).Log().Add(torch.Choose(g.Eq(0), low.Sub(floor), 0))
	return paired(d.full(lower), d.full(logProbs(torch.Of(1).Sub(g)).Add(high)))
}

// tableTails are sums of the masses of a distribution of finitely many values.
func tableTails(d Distribution, x torch.Tensor) (lower, upper torch.Tensor) {
	last := func(v torch.Tensor) torch.Tensor { return torch.Of(v.T().MustMovedimInt(0, -1, false)) }
	values := d.(Enumerable).EnumerateSupport()
	var table torch.Tensor
	if of, ok := d.(interface{ EnumerateLogProb() torch.Tensor }); ok {
		table = of.EnumerateLogProb()
	} else {
		table = d.LogProb(values)
	}
	at, table := last(values).Reshape(-1), last(table)
	within := at.Sub(x.Unsqueeze(-1)).Le(0)
	lower = logSumExp(torch.Choose(within, table, math.Inf(-1)))
	return paired(lower, logSumExp(torch.Choose(within, math.Inf(-1), table)))
}
