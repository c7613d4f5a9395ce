package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program ends with a table of all variables and a report that finds nothing.
func TestRun(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	screen := os.Stdout
	os.Stdout = write
	err = run(context.Background())
	os.Stdout = screen
	require.NoError(t, write.Close())
	require.NoError(t, err)
	text, err := io.ReadAll(read)
	require.NoError(t, err)
	for _, name := range []string{"mu ", "tau ", "theta[7] ", "r_hat", "No problems found."} {
		assert.Contains(t, string(text), name)
	}
	assert.Less(t, strings.Index(string(text), "mu "), strings.Index(string(text), "tau "))
}
