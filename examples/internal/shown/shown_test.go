package shown

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDigit(t *testing.T) {
	require.Equal(t, 0.01, digit("-1.25"))
	require.Equal(t, 1.0, digit("37"))
	require.Equal(t, []string{"age", "0.18", "5", "high"}, words("age: 0.18, 5 %\nhigh"))
}

// A figure passes where two runs may differ so far, and fails where they may not.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		same           bool
	}{
		{"mean 1.25, of two", "mean 1.26 of two", true},
		{"mean 1.25", "mean 1.27", false},
		{"mean 1.25", "mode 1.25", false},
		{"mean 1.25 high", "mean 1.25", false},
		{"1.00 ± 0.10", "1.50 ± 0.10", true}, // four times 0.105·√2, and a digit, are 0.60
		{"1.00 ± 0.10", "1.61 ± 0.10", false},
		{"1.00 ± 0.10", "1.00 ± 0.20", true},
		{"1.00 ± 0.10", "1.00 ± 0.25", false},
		{"0.43 ± 0.00", "0.45 ± 0.00", true}, // four times 0.005·√2, and a digit, are 0.038
		{"about 100", "about 190", true},
		{"about 100", "about 210", false},
		{"1.00", "NaN", false},
	} {
		require.Equal(t, c.same, difference(c.shown, c.printed) == "", "%s, %s: %s", c.shown, c.printed,
			difference(c.shown, c.printed))
	}
}
