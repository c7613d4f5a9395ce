package main

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The model predicts without libtorch what it predicts with it.
func TestExports(t *testing.T) {
	for name, model := range map[string]ppl.Model{"poisson": poisson, "negative binomial": negativeBinomial,
		"light": light} {
		t.Run(name, func(t *testing.T) {
			p, err := compile(model, mites())
			require.NoError(t, err)
			infertest.Exports(t, p)
		})
	}
}
