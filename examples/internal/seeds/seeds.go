// Package seeds has estimates over runs with different seeds.
package seeds

import (
	"fmt"

	"gonum.org/v1/gonum/stat"
)

// Estimate is a mean over seeds and its standard error, 0 with one seed.
type Estimate struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"`
}

// Over is the estimate of what each seed gave.
func Over(x []float64) Estimate {
	if len(x) == 1 {
		return Estimate{Mean: x[0]}
	}
	mean, sd := stat.MeanStdDev(x, nil)
	return Estimate{Mean: mean, SE: stat.StdErr(sd, float64(len(x)))}
}

// Positive says whether the mean of what each seed gave is above 0 by more than two standard errors. One seed, which
// has no standard error, never tells.
func Positive(x []float64) bool {
	e := Over(x)
	return len(x) > 1 && e.Mean > 0 && e.Mean > 2*e.SE
}

// Verdict is how a table says whether a claim about n seeds holds: "?" for one.
func Verdict(n int, holds bool) string {
	switch {
	case n == 1:
		return "?"
	case holds:
		return "yes"
	}
	return "no"
}

// Count says how many seeds there are.
func Count(n int) string {
	if n == 1 {
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", n)
}
