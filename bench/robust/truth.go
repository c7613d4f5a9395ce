package main

import "github.com/kelvin-ppl/kelvin/diag"

// moments is the mean and standard deviation of a number, with their standard errors: 0 where they are exact.
type moments struct{ mean, sd, meanError, sdError float64 }

// momentsOf is the moments of draws, chain by chain.
func momentsOf(x [][]float64) moments {
	mean, sd := meanSD(x)
	return moments{mean, sd, diag.MCSEMean(x), diag.MCSESD(x)}
}

// truth is the moments of judged numbers by their names in Stan.
type truth map[string]moments
