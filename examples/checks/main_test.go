package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/stretchr/testify/require"
)

// The page shows what the program prints, and the pictures can be drawn.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	*pictures = dir
	defer func() { *pictures = "" }()
	var printed strings.Builder
	require.NoError(t, tables(context.Background(), &printed))
	shown.Printed(t, "../../docs/checks.md", printed.String())
	for _, name := range []string{"checks-Poisson.png", "checks-negative-binomial.png", "checks-pit.png"} {
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}
}

// The data are those that were published: 172 mites on 150 leaves, and 66 measurements of mean 26.21 and standard
// deviation 10.75 (Gelman et al. 2013, section 3.2, rounds them to 26.2 and 10.8).
func TestData(t *testing.T) {
	sum := func(y []float64) (s float64) {
		for _, v := range y {
			s += v
		}
		return s
	}
	require.Len(t, mites(), 150)
	require.Equal(t, 172., sum(mites()))
	require.Len(t, newcomb, 66)
	mean, squares := sum(newcomb)/66, 0.0
	for _, v := range newcomb {
		squares += (v - mean) * (v - mean)
	}
	require.InDelta(t, 26.2, mean, 0.05)
	require.InDelta(t, 10.75, math.Sqrt(squares/65), 0.005)
}
