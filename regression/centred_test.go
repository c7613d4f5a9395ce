package regression_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/regression"
	"github.com/stretchr/testify/require"
)

// Effects are sampled themselves where levels differ more than their rows explain, which for shares depends on how many
// trials each row has; of few levels and of slopes they must differ far more.
func TestCentred(t *testing.T) {
	const rows = 6
	centred := func(right string, levels int, spread, trials float64) bool {
		var y, x, n, count []float64
		var g []string
		for i := range levels * rows {
			level, noise := i/rows, math.Sqrt2*math.Sin(float64(7*i*i+1))
			effect := spread * math.Sqrt2 * math.Sin(float64(5*level*level+2))
			y, x, g = append(y, effect+noise), append(x, float64(i%rows)), append(g, fmt.Sprint(level))
			// Rows of ten times fewer trials have shares of three times the noise: they weigh little.
			of, share := trials, 0.5+0.05*effect+0.05*noise
			if i%2 == 0 {
				of, share = trials/10, 0.5+0.05*effect+0.2*noise
			}
			n, count = append(n, of), append(count, min(of, max(0, math.Round(of*share))))
		}
		f := regression.Formula{Mean: "y ~ " + right}
		if trials > 0 {
			f = regression.Formula{Mean: "count | trials(n) ~ " + right, Family: regression.Binomial{}}
		} else {
			n, count = x, x
		}
		m, err := f.Fit(tableOf(t, numbers("y", y...), numbers("x", x...), numbers("n", n...), numbers("count", count...),
			labels("g", g...)))
		require.NoError(t, err)
		return !slices.Contains(m.Latents(), "z_g")
	}
	require.False(t, centred("x + (1 | g)", 20, 0.1, 0))
	require.True(t, centred("x + (1 | g)", 20, 0.7, 0)) // F is about 1 + 6·0.7², 4
	require.False(t, centred("x + (1 | g)", 5, 0.7, 0))
	require.False(t, centred("x + (1 + x | g)", 20, 0.7, 0))
	require.True(t, centred("x + (1 + x | g)", 20, 2, 0))
	require.True(t, centred("x + (1 | g)", 20, 0.9, 100))
	require.False(t, centred("x + (1 | g)", 20, 0.1, 100))
}
