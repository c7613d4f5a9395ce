package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fixed effects are those of lme4's restricted maximum likelihood, 251.405 and 10.467: the posterior is nearly
// symmetric in them, and the priors are weak. The page has the figures that the program prints.
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
	page, err := os.ReadFile("../../docs/regression.md")
	require.NoError(t, err)
	number := func(text []byte, pattern string) float64 {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		require.NotNil(t, found, "%s in\n%s", pattern, text)
		v, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(t, err)
		return v
	}
	// The standard error of a mean is 1/30 of the standard deviation with 900 effective draws.
	for _, c := range []struct {
		pattern  string
		want, sd float64
	}{
		{`(?m)^intercept +([0-9.]+)`, 251.405, 7.4}, {`(?m)^b\[days\] +([0-9.]+)`, 10.467, 1.7},
		{`(?m)^sigma +([0-9.]+)`, 25.9, 1.5}, {`driver 308 +median ([0-9]+)`, 431, 30},
		{`a new driver +median ([0-9]+)`, 347, 76},
	} {
		require.InDelta(t, c.want, number(text, c.pattern), 4*c.sd/30+0.5, c.pattern)
		require.InDelta(t, number(page, c.pattern), number(text, c.pattern), 6*c.sd/30+0.5, c.pattern)
	}
	require.Regexp(t, `slopes differ +0 `, string(text))
}
