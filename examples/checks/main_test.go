package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/kelvin-ppl/kelvin/infer"
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

// The parts are the log densities of the model's distributions, by their formulas, without the Jacobian of log σ.
func TestPart(t *testing.T) {
	program, err := compile(light, newcomb)
	require.NoError(t, err)
	unconstrained, err := draws.New([]draws.Site{{Name: "mu", Size: 1}, {Name: "sigma", Offset: 1, Size: 1}}, nil, 2)
	require.NoError(t, err)
	points := [][2]float64{{20, 3}, {26, 2.4}, {30, 1}, {-4, 2}}
	for i := 0; i < len(points); i += 2 {
		flat := append(points[i][:], points[i+1][:]...)
		require.NoError(t, unconstrained.Append(flat, nil))
	}
	prior, err := part(program, unconstrained, infer.Weights{Prior: 1})
	require.NoError(t, err)
	likelihood, err := part(program, unconstrained, infer.Weights{Likelihood: 1})
	require.NoError(t, err)
	for i, chain := range []int{0, 2, 1, 3} { // draws of the first chain come first
		mu, sigma := points[chain][0], math.Exp(points[chain][1])
		logPrior := -(mu-20)*(mu-20)/8 - sigma*sigma/800 - math.Log(2*math.Sqrt(2*math.Pi)) +
			math.Log(2/(20*math.Sqrt(2*math.Pi)))
		logLikelihood := 0.0
		for _, y := range newcomb {
			logLikelihood -= (y-mu)*(y-mu)/(2*sigma*sigma) + math.Log(sigma*math.Sqrt(2*math.Pi))
		}
		require.InDelta(t, logPrior, prior[i], 1e-9*math.Abs(logPrior))
		require.InDelta(t, logLikelihood, likelihood[i], 1e-9*math.Abs(logLikelihood))
	}
}
