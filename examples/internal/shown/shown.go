// Package shown compares what a document shows with what its program prints.
package shown

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Printed checks the text blocks of a document against what its program prints: each line, in order, and no other.
//
// Words are the same. A number that is followed by ± and its standard error may be off by four standard errors of the
// difference of two independent runs, and by one of its last digit, which is rounding; the error itself, an estimate
// too, by a factor of 2. So may a number that follows "about": an effective sample size, whose estimate has a standard
// error of 10 to 20 %. Any other number may be one and a half of its last digit off: either it is exact, or the
// digits shown are such that four standard errors of a difference of two runs are less. The last bits of a machine
// decide where chains go, so that two machines make independent runs.
func Printed(t *testing.T, document, printed string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	var blocks []string
	for i, block := range strings.Split(string(text), "```") {
		if lines, ok := strings.CutPrefix(block, "text\n"); ok && i%2 == 1 {
			blocks = append(blocks, lines)
		}
	}
	require.NotEmpty(t, blocks, "%s has no text blocks", document)
	problem := difference(strings.Join(blocks, "\n"), printed)
	require.Empty(t, problem, "%s: the program prints:\n%s", document, printed)
}

// difference says where two texts differ; "" is nowhere.
func difference(shown, printed string) string {
	want, got := words(shown), words(printed)
	for i := range min(len(want), len(got)) {
		a, errA := strconv.ParseFloat(want[i], 64)
		b, errB := strconv.ParseFloat(got[i], 64)
		if errA != nil || errB != nil {
			if want[i] != got[i] {
				return "shown is " + around(want, i) + ", printed is " + around(got, i)
			}
			continue
		}
		allowed := 1.5 * digit(want[i])
		switch {
		case i > 0 && (want[i-1] == "±" || want[i-1] == "about"):
			allowed = digit(want[i]) + max(a, b)/2
		case i+2 < min(len(want), len(got)) && want[i+1] == "±":
			own, _ := strconv.ParseFloat(want[i+2], 64)
			other, _ := strconv.ParseFloat(got[i+2], 64)
			half := digit(want[i+2]) / 2 // what rounding may have taken from an error
			allowed = digit(want[i]) + 4*math.Hypot(own+half, other+half)
		}
		if !(math.Abs(a-b) <= allowed*(1+1e-9)) {
			return "shown is " + around(want, i) + ", printed is " + around(got, i)
		}
	}
	if len(want) != len(got) {
		return "shown are " + strconv.Itoa(len(want)) + " words, printed are " + strconv.Itoa(len(got))
	}
	return ""
}

// around is a word with its neighbours.
func around(words []string, i int) string {
	return strconv.Quote(strings.Join(words[max(i-4, 0):min(i+4, len(words))], " "))
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
