package main

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/shown"
	"github.com/stretchr/testify/require"
)

// The tutorial shows what the program prints.
func TestTutorialShowsWhatIsPrinted(t *testing.T) {
	var printed strings.Builder
	require.NoError(t, workflow(context.Background(), &printed, "../internal/pima/pima.csv"))
	shown.Printed(t, "../../docs/tutorials/1-logistic-regression.md", printed.String())
}

// The costs that are shown do not hang on the last bits: patients whose mean probability is so close to a threshold
// that two runs may differ about them change a cost by less than one of its last digit.
func TestDecisionsAreStable(t *testing.T) {
	table, err := read("../internal/pima/pima.csv")
	require.NoError(t, err)
	train, test, err := split(table)
	require.NoError(t, err)
	second, err := fit(context.Background(), curved, train)
	require.NoError(t, err)
	p, err := predict(second, test)
	require.NoError(t, err)
	frame, err := second.design.Frame(test)
	require.NoError(t, err)
	for _, threshold := range []float64{examination / missed, 0.5} {
		change := 0.0
		for i := range p {
			m, squares := mean(p[i]), 0.0
			for _, v := range p[i] {
				squares += (v - m) * (v - m)
			}
			draws := float64(len(p[i]))
			difference := math.Sqrt2 * math.Sqrt(squares/draws/(draws/2)) // of two runs, with half the draws effective
			if math.Abs(m-threshold) < 4*difference {
				change += math.Abs(missed*frame.Y[i] - examination)
			}
		}
		require.Less(t, change/float64(len(p)), 0.01, "threshold %v", threshold)
	}
}

// A mistake in the file is told with its line and column.
func TestBadFile(t *testing.T) {
	text, err := os.ReadFile("../internal/pima/pima.csv")
	require.NoError(t, err)
	path := t.TempDir() + "/pima.csv"
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "33.6", "33,6", 1)), 0o600))
	err = workflow(context.Background(), &strings.Builder{}, path)
	require.ErrorContains(t, err, path+", line 2: it has 10 fields, expected 9")
}
