//go:build !slow

package models_test

import "github.com/kelvin-ppl/kelvin/models"

// lengthsOf are the lengths for a model: all that are not expensive are compared with NUTS, the others run.
func lengthsOf(m models.Model) lengths {
	switch m.Name {
	case "hidden_markov", "wave_gp", "mixture":
		return glance
	}
	return lengths{chains: 32, warmup: 100, draws: 30, updates: 100, thin: 5, compare: true,
		guided: m.Name == "radon" || m.Name == "salmonella"}
}

// glance is a table that shows that everything runs and that optimisers arrive, and compares nothing.
var glance = lengths{chains: 8, warmup: 40, draws: 10, updates: 10, thin: 2, fit: 20}
