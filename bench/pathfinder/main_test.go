package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A flag that is wrong is an error that names it.
func TestFlags(t *testing.T) {
	require.ErrorContains(t, run(context.Background(), []string{"-seeds", "0"}, &bytes.Buffer{}), "-seeds 0")
}
