package main

import (
	"io"
	"os"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/stretchr/testify/require"
)

// The page shows what the program prints.
func TestPage(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	printed, err := io.ReadAll(r)
	require.NoError(t, err)
	shown.Printed(t, "../../docs/diagnostics.md", string(printed))
}
