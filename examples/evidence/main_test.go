package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The labels were made of the first column, so that the model of that column alone is the most probable.
func TestCompare(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, compare(context.Background(), &b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 6)
	p := func(line string) string { return strings.Fields(strings.SplitAfter(line, "probability")[1])[0] }
	require.Greater(t, p(lines[3]), p(lines[4]))
	require.Greater(t, p(lines[3]), p(lines[5]))
}
