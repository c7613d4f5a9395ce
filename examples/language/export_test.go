package main

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The model predicts without libtorch what it predicts with it.
func TestExports(t *testing.T) {
	schoolsData, err := data()
	require.NoError(t, err)
	r, err := returns()
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		model ppl.Model
		batch infer.Batch
	}{{"schools", schools, schoolsData}, {"volatility", volatility, r}} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ppl.Compile(c.model, c.batch)
			require.NoError(t, err)
			infertest.Exports(t, p)
		})
	}
}
