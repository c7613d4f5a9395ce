package main

import (
	"context"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tutorial shows what the program prints: each line of its text blocks, in order, and no other. Words are the same.
// A number may be one of the last digit off, and half a digit of rounding: the last bits of a machine decide where the
// chains go, and the digits shown are such that four standard errors of a difference of two runs are less.
func TestTutorialShowsWhatIsPrinted(t *testing.T) {
	var printed strings.Builder
	require.NoError(t, workflow(context.Background(), &printed, "../internal/pima/pima.csv"))
	text, err := os.ReadFile("../../docs/tutorials/1-logistic-regression.md")
	require.NoError(t, err)
	var shown []string
	for i, block := range strings.Split(string(text), "```") {
		if lines, ok := strings.CutPrefix(block, "text\n"); ok && i%2 == 1 {
			shown = append(shown, lines)
		}
	}
	want, got := words(strings.Join(shown, "\n")), words(printed.String())
	require.Len(t, got, len(want), "the program prints:\n%s", &printed)
	for i := range want {
		a, errA := strconv.ParseFloat(want[i], 64)
		b, errB := strconv.ParseFloat(got[i], 64)
		if errA != nil || errB != nil {
			require.Equal(t, want[i], got[i], "word %d of:\n%s", i, &printed)
			continue
		}
		require.InDelta(t, a, b, 1.5*digit(want[i]), "word %d of:\n%s", i, &printed)
	}
}

// words are the words and the numbers of a text, without the punctuation around them.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n,:%", r) })
}

// digit is one of the last digit of a number.
func digit(number string) float64 {
	_, decimals, _ := strings.Cut(number, ".")
	return math.Pow(10, -float64(len(decimals)))
}

// The comparison sees a figure that is two digits off.
func TestDigit(t *testing.T) {
	require.Equal(t, 0.01, digit("-1.25"))
	require.Equal(t, 1.0, digit("37"))
	require.Equal(t, []string{"age", "0.18", "5", "high"}, words("age: 0.18, 5 %\nhigh"))
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
