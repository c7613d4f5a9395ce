package regression

import (
	"fmt"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// observed is a law of which something else than the outcome itself was seen. Draws and moments are those of the law.
type observed struct {
	dist.Distribution
	how     string
	logProb func(d dist.Distribution, y torch.Tensor) torch.Tensor
}

// Name says how it was seen.
func (d observed) Name() string { return fmt.Sprintf("%s(%s)", d.how, d.Distribution.Name()) }

// Expand broadcasts the batch shape.
func (d observed) Expand(batch ...int) dist.Distribution {
	d.Distribution = d.Distribution.Expand(batch...)
	return d
}

// LogProb is the log density, or log probability, of what was seen.
func (d observed) LogProb(y torch.Tensor) torch.Tensor { return d.logProb(d.Distribution, y) }

// censorable are the families whose laws have a distribution function.
var censorable = []string{"gaussian", "student", "lognormal", "gamma", "inverse_gaussian", "exponential", "weibull"}

// seen is the law of what is known of the outcome: within its bounds, censored, and with weights on log densities.
func (m *Model) seen(a args, data dataOf) dist.Distribution {
	d := m.truncated(m.family.dist(a), data)
	if kinds := m.rows.Added["cens"]; kinds != nil {
		c := censoring{data("cens"), data("upper"), slices.Contains(kinds, 2)}
		d = observed{d, "Censored", c.logProb}
	}
	return d
}

// weighted is a law whose log density counts so often in each row.
func (m *Model) weighted(d dist.Distribution, data dataOf) dist.Distribution {
	if m.rows.Added["weights"] == nil {
		return d
	}
	return observed{d, "Weighted", func(d dist.Distribution, y torch.Tensor) torch.Tensor {
		return d.LogProb(y).Mul(data("weights"))
	}}
}

// censoring is that of an outcome of which only bounds are known in some rows. With F the distribution function of the
// law and c -1, 0, 1 or 2, the log density of y is
//
//	log F(y), log p(y), log(1 - F(y)) or log(F(upper) - F(y))
type censoring struct {
	kind     torch.Tensor // c of each row
	end      torch.Tensor // upper, or a number above y
	interval bool         // some row is an interval
}

func (c censoring) logProb(d dist.Distribution, y torch.Tensor) torch.Tensor {
	seen := torch.Where(c.kind.Eq(1), dist.LogSurvival(d, y), dist.LogCDF(d, y))
	out := torch.Where(c.kind.Eq(0), d.LogProb(y), seen)
	if !c.interval {
		return out
	}
	return torch.Where(c.kind.Eq(2), dist.LogInterval(d, y, c.end), out)
}
