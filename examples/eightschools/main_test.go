package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// diverged is what the report says of divergences.
var diverged = regexp.MustCompile(`serious: (\d+) of 4000 transitions diverged`)

// The program ends with a table of all variables and a report that finds nothing, but for a few divergences: at most
// about one in 4000 transitions, so that more than 10 have a probability below 1e-7. Their number depends on the last
// bits, which the machine decides.
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
	for _, name := range []string{"mu ", "tau ", "theta[7] ", "r_hat", "4 chains of 1000 draws"} {
		assert.Contains(t, string(text), name)
	}
	if found := diverged.FindStringSubmatch(string(text)); found != nil {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		assert.LessOrEqual(t, n, 10)
		assert.Contains(t, string(text), "Set hmc.NUTS{TargetAccept: 0.95}")
		assert.Equal(t, 1, strings.Count(string(text), "serious: "))
	} else {
		assert.Contains(t, string(text), "No problems found.")
	}
	assert.Less(t, strings.Index(string(text), "mu "), strings.Index(string(text), "tau "))
}
