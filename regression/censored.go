package regression

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/torch"
)

// censored is the law of an outcome of which only bounds are known in some rows. With F the distribution function of
// the law and c -1, 0, 1 or 2, the log density of y is
//
//	log F(y), log p(y), log(1 - F(y)) or log(F(upper) - F(y))
//
// Draws and moments are those of the law: of what would have been seen.
type censored struct {
	dist.Distribution
	kind  []float64 // c of each row
	upper []float64
}

// Name says what is censored.
func (d censored) Name() string { return fmt.Sprintf("Censored(%s)", d.Distribution.Name()) }

// Expand broadcasts the batch shape.
func (d censored) Expand(batch ...int64) dist.Distribution {
	d.Distribution = d.Distribution.Expand(batch...)
	return d
}

// LogProb is the log density or the log probability of the bounds.
func (d censored) LogProb(y torch.Tensor) torch.Tensor {
	kind := torch.Of(torch.Must(torch.FromSlice(d.kind)))
	lower, upper := dist.LogTails(d.Distribution, y)
	out := torch.Where(kind.Eq(0), d.Distribution.LogProb(y), torch.Where(kind.Eq(1), upper, lower))
	if d.upper == nil {
		return out
	}
	// Of an interval the difference is taken in the tail that has less: log(e^a - e^b) = a + log(1 - e^(b-a)), a > b.
	between := kind.Eq(2)
	end := torch.Where(between, torch.Of(torch.Must(torch.FromSlice(d.upper))), y.Add(1))
	below, above := dist.LogTails(d.Distribution, end)
	less := func(a, b torch.Tensor) torch.Tensor { return a.Add(b.Sub(a).Exp().Neg().Log1p()) }
	mass := torch.Where(lower.Lt(-math.Ln2), less(below, lower), less(upper, above))
	return torch.Where(between, mass, out)
}

// censorable are the families whose laws have a distribution function.
var censorable = map[string]bool{"gaussian": true, "student": true, "lognormal": true, "gamma": true,
	"inverse_gaussian": true, "exponential": true, "weibull": true, "beta": true}

// withCensoring is the law of a censored outcome.
func (m *Model) withCensoring(d dist.Distribution) dist.Distribution {
	if m.rows.Censored == nil {
		return d
	}
	c := censored{Distribution: d}
	for _, kind := range m.rows.Censored {
		c.kind = append(c.kind, float64(kind))
		if kind == 2 {
			c.upper = m.rows.Upper
		}
	}
	return c
}
