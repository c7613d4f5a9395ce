package main

import (
	"testing"

	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/stretchr/testify/require"
)

// The model predicts without libtorch what it predicts with it.
func TestExports(t *testing.T) {
	p, err := compile()
	require.NoError(t, err)
	infertest.Exports(t, p)
}
