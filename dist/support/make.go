package support

import (
	"fmt"
	"math"

	"github.com/sugarme/gotch/ts"
)

// The supports without parameters.
var (
	Real               = Support{Kind: KindReal}                                              // all finite numbers
	Positive           = Support{Kind: KindInterval, Low: 0, High: math.Inf(1)}               // x > 0
	Nonnegative        = Support{Kind: KindInterval, Low: 0, High: math.Inf(1), Closed: true} // x ≥ 0
	UnitInterval       = Support{Kind: KindInterval, Low: 0, High: 1, Closed: true}           // 0 ≤ x ≤ 1
	Simplex            = Support{Kind: KindSimplex}                                           // vectors, xᵢ ≥ 0, Σ xᵢ = 1
	Ordered            = Support{Kind: KindOrdered}                                           // vectors, x₁ < x₂ < …
	PositiveOrdered    = Support{Kind: KindPositiveOrdered}                                   // vectors, 0 < x₁ < x₂ < …
	UnitVector         = Support{Kind: KindUnitVector}                                        // vectors, Σ xᵢ² = 1
	LowerCholesky      = Support{Kind: KindLowerCholesky}                                     // lower triangular, positive diagonal
	CorrCholesky       = Support{Kind: KindCorrCholesky}                                      // the same, rows of length 1
	PositiveDefinite   = Support{Kind: KindPositiveDefinite}                                  // symmetric, all eigenvalues > 0
	Boolean            = Support{Kind: KindBoolean}                                           // 0 or 1
	NonnegativeInteger = Support{Kind: KindInteger, Low: 0, High: math.Inf(1)}                // 0, 1, 2, …
	Point              = Support{Kind: KindPoint}                                             // any single value
)

// At is the single value, a number or a tensor of the batch shape.
func At(value any) Support {
	s := Support{Kind: KindPoint, Closed: true}
	s.Low, s.LowT = end("At", "value", value)
	s.High, s.HighT = s.Low, s.LowT
	return s
}

// Interval is low ≤ x ≤ high, the ends numbers or tensors of the batch shape.
func Interval(low, high any) Support {
	s := Support{Kind: KindInterval, Closed: true}
	s.Low, s.LowT = end("Interval", "low", low)
	s.High, s.HighT = end("Interval", "high", high)
	s.nonEmpty("Interval", s.Low < s.High, "less than")
	return s
}

// GreaterThan is x > low, a number or a tensor of the batch shape.
func GreaterThan(low any) Support {
	s := Support{Kind: KindInterval, High: math.Inf(1)}
	s.Low, s.LowT = end("GreaterThan", "low", low)
	return s
}

// LessThan is x < high, a number or a tensor of the batch shape.
func LessThan(high any) Support {
	s := Support{Kind: KindInterval, Low: math.Inf(-1)}
	s.High, s.HighT = end("LessThan", "high", high)
	return s
}

// IntegerInterval is the whole numbers from low to high, the ends numbers or tensors of the batch shape.
func IntegerInterval(low, high any) Support {
	s := Support{Kind: KindInteger}
	s.Low, s.LowT = end("IntegerInterval", "low", low)
	s.High, s.HighT = end("IntegerInterval", "high", high)
	s.nonEmpty("IntegerInterval", s.Low <= s.High, "at most")
	return s
}

// Counts is the vectors of whole numbers from 0 with sum total, a number or a tensor of the batch shape.
func Counts(total any) Support {
	s := Support{Kind: KindCounts}
	s.High, s.HighT = end("Counts", "total", total)
	return s
}

// end reads an end of an interval.
func end(constructor, name string, x any) (float64, *ts.Tensor) {
	var c float64
	switch v := x.(type) {
	case float64:
		c = v
	case float32:
		c = float64(v)
	case int:
		c = float64(v)
	case int64:
		c = float64(v)
	case *ts.Tensor:
		if v != nil {
			return 0, v
		}
		panic(&Error{"support." + constructor + ": " + name, "nil", "a number or a tensor is required"})
	default:
		panic(&Error{"support." + constructor + ": " + name, fmt.Sprintf("a %T", x), "a number or a *ts.Tensor is required"})
	}
	if math.IsNaN(c) {
		panic(&Error{"support." + constructor + ": " + name, "NaN", "a number is required"})
	}
	return c, nil
}

// nonEmpty refuses numbers as ends with nothing between them; tensors cannot be read here.
func (s Support) nonEmpty(constructor string, ok bool, allowed string) {
	if s.LowT == nil && s.HighT == nil && !ok {
		panic(&Error{"support." + constructor + ": low", fmt.Sprint(s.Low), fmt.Sprintf("it must be %s high, which is %v", allowed, s.High)})
	}
}
