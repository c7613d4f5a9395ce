package regression

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/regression/internal/formula"
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
	kind     torch.Tensor // c of each row
	end      torch.Tensor // upper, or a number above y
	interval bool         // some row is an interval
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
	lower, upper := dist.LogTails(d.Distribution, y)
	out := torch.Where(d.kind.Eq(0), d.Distribution.LogProb(y), torch.Where(d.kind.Eq(1), upper, lower))
	if !d.interval {
		return out
	}
	// Of an interval the difference is taken in the tail that has less: log(e^a - e^b) = a + log(1 - e^(b-a)), a > b.
	below, above := dist.LogTails(d.Distribution, d.end)
	less := func(a, b torch.Tensor) torch.Tensor { return a.Add(b.Sub(a).Exp().Neg().Log1p()) }
	mass := torch.Where(lower.Lt(-math.Ln2), less(below, lower), less(upper, above))
	return torch.Where(d.kind.Eq(2), mass, out)
}

// censorable are the families whose laws have a distribution function.
var censorable = map[string]bool{"gaussian": true, "student": true, "lognormal": true, "gamma": true,
	"inverse_gaussian": true, "exponential": true, "weibull": true}

// withCensoring is the law of a censored outcome.
func (m *Model) withCensoring(d dist.Distribution, data func(string) torch.Tensor) dist.Distribution {
	if m.rows.Censored == nil {
		return d
	}
	return censored{d, data("cens"), data("cens_end"), slices.Contains(m.rows.Censored, 2)}
}

// addCensoring gives the kinds of rows and the ends of intervals.
func addCensoring(rows *formula.Rows, numbers func(key string, x []float64, shape ...int64)) {
	kinds, ends := make([]float64, rows.N), make([]float64, rows.N)
	for i, kind := range rows.Censored {
		kinds[i], ends[i] = float64(kind), rows.Y[i]+1
		if kind == 2 {
			ends[i] = rows.Upper[i]
		}
	}
	numbers("cens", kinds)
	numbers("cens_end", ends)
}
