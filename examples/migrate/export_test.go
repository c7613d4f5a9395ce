package main

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
)

// The model predicts without libtorch what it predicts with it.
func TestExports(t *testing.T) {
	batch, err := batch()
	require.NoError(t, err)
	p, err := ppl.Compile(line, batch)
	require.NoError(t, err)
	infertest.Exports(t, p)
}
