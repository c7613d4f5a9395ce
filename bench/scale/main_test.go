package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command measures the models that it is asked for, and says what it does not know.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), []string{"-models", "gp 50", "-seconds", "0.01", "-rounds", "1"}, &out))
	require.Regexp(t, `^model  +µs +compile s\ngp 50 +[\d.]+ +[\d.]+\n$`, out.String())
	for _, args := range [][]string{{"-models", "no"}, {"-tier", "no", "-models", "gp 50"}, {"-no"}} {
		require.Error(t, run(context.Background(), args, &out), args)
	}
}
