package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both services answer, and the table has a row for each.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two programs")
	}
	var out strings.Builder
	require.NoError(t, run(context.Background(), []string{"-clients", "2", "-seconds", "0.2", "-turns", "1", "-requests",
		"20"}, &out))
	require.Regexp(t, `(?s)^service  predictions/s .*\nkelvin serve  [1-9].*\nexamples/service, libtorch  [1-9]`,
		out.String())
	require.Contains(t, out.String(), "after 20 more requests")
}

func TestGradients(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(context.Background(), []string{"-gradients"}, &out))
	require.Regexp(t, `(?s)^model  Go µs.*\neight_schools  [0-9.]+  [0-9.]+  .*\nPima, made up  [0-9.]+  `, out.String())
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-clients", "0"}, {"-seconds", "0"}, {"-turns", "-1"}, {"-requests", "0"}} {
		require.ErrorContains(t, run(context.Background(), args, io.Discard), "at least 1", args)
	}
}
