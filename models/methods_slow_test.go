//go:build slow

package models_test

import "github.com/kelvin-ppl/kelvin/models"

// lengthsOf are the lengths for a model: all are compared with NUTS, with the default lengths of fits.
func lengthsOf(models.Model) lengths {
	return lengths{chains: 64, warmup: 500, draws: 200, updates: 2000, thin: 10, compare: true, guided: true}
}
