package support

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/dist/internal/operand"
	"github.com/kelvin-ppl/kelvin/torch"
)

var zero, infinity = torch.Of(0), torch.Of(math.Inf(1))

// The supports without parameters.
var (
	Real            = Support{Kind: KindReal}                                                 // all finite numbers
	Positive        = Support{Kind: KindInterval, Low: zero, High: infinity}                  // x > 0
	Nonnegative     = Support{Kind: KindInterval, Low: zero, High: infinity, Closed: true}    // x ≥ 0
	UnitInterval    = Support{Kind: KindInterval, Low: zero, High: torch.Of(1), Closed: true} // 0 ≤ x ≤ 1
	Simplex         = Support{Kind: KindSimplex}                                              // vectors, xᵢ ≥ 0, Σ xᵢ = 1
	Ordered         = Support{Kind: KindOrdered}                                              // vectors, x₁ < x₂ < …
	PositiveOrdered = Support{Kind: KindPositiveOrdered}                                      // vectors, 0 < x₁ < x₂ < …
	UnitVector      = Support{Kind: KindUnitVector}                                           // vectors, Σ xᵢ² = 1
	ZeroSum         = Support{Kind: KindZeroSum}                                              // vectors, Σ xᵢ = 0
	// lower triangular, positive diagonal
	LowerCholesky      = Support{Kind: KindLowerCholesky}
	CorrCholesky       = Support{Kind: KindCorrCholesky}                       // the same, rows of length 1
	PositiveDefinite   = Support{Kind: KindPositiveDefinite}                   // symmetric, all eigenvalues > 0
	Boolean            = Support{Kind: KindBoolean}                            // 0 or 1
	NonnegativeInteger = Support{Kind: KindInteger, Low: zero, High: infinity} // 0, 1, 2, …
	Point              = Support{Kind: KindPoint}                              // any single value
)

// At is the single value, a number or a tensor of the batch shape.
func At(value any) Support {
	s := Support{Kind: KindPoint, Closed: true}
	s.Low = end("At", "value", value)
	s.High = s.Low
	return s
}

// Interval is low ≤ x ≤ high, the ends numbers or tensors of the batch shape.
func Interval(low, high any) Support {
	s := Support{Kind: KindInterval, Closed: true}
	s.Low = end("Interval", "low", low)
	s.High = end("Interval", "high", high)
	s.nonEmpty("Interval", func(low, high float64) bool { return low < high }, "less than")
	return s
}

// GreaterThan is x > low, a number or a tensor of the batch shape.
func GreaterThan(low any) Support {
	s := Support{Kind: KindInterval, High: infinity}
	s.Low = end("GreaterThan", "low", low)
	return s
}

// LessThan is x < high, a number or a tensor of the batch shape.
func LessThan(high any) Support {
	s := Support{Kind: KindInterval, Low: torch.Of(math.Inf(-1))}
	s.High = end("LessThan", "high", high)
	return s
}

// IntegerInterval is the whole numbers from low to high, the ends numbers or tensors of the batch shape.
func IntegerInterval(low, high any) Support {
	s := Support{Kind: KindInteger}
	s.Low = end("IntegerInterval", "low", low)
	s.High = end("IntegerInterval", "high", high)
	s.nonEmpty("IntegerInterval", func(low, high float64) bool { return low <= high }, "at most")
	return s
}

// Counts is the vectors of whole numbers from 0 with sum total, a number or a tensor of the batch shape.
func Counts(total any) Support {
	s := Support{Kind: KindCounts}
	s.High = end("Counts", "total", total)
	return s
}

// end reads an end of an interval.
func end(constructor, name string, x any) torch.Tensor {
	t, found, allowed := operand.Of(x)
	if c, ok := t.Number(); allowed == "" && ok && math.IsNaN(c) {
		found, allowed = "NaN", "a number is required"
	}
	if allowed != "" {
		panic(&Error{"support." + constructor + ": " + name, found, allowed})
	}
	return t
}

// nonEmpty refuses numbers as ends with nothing between them; tensors cannot be read here.
func (s Support) nonEmpty(constructor string, ok func(low, high float64) bool, allowed string) {
	low, isLow := s.Low.Number()
	high, isHigh := s.High.Number()
	if isLow && isHigh && !ok(low, high) {
		panic(&Error{"support." + constructor + ": low", fmt.Sprint(low),
			fmt.Sprintf("it must be %s high, which is %v", allowed, high)})
	}
}
