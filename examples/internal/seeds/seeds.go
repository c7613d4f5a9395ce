// Package seeds has estimates over runs with different seeds.
package seeds

import "gonum.org/v1/gonum/stat"

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
