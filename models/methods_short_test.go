//go:build !slow

package models_test

import "github.com/kelvin-ppl/kelvin/models"

// lengthsOf are the lengths for a model: two are compared with NUTS, the others run.
func lengthsOf(m models.Model) lengths {
	switch m.Name {
	case "beetles", "eight_schools":
		return lengths{chains: 32, warmup: 100, draws: 30, updates: 100, thin: 5, fit: 300, compare: true}
	}
	return glance
}

// glance is a table that shows that everything runs, and compares nothing.
var glance = lengths{chains: 8, warmup: 40, draws: 10, updates: 10, thin: 2, fit: 20}
