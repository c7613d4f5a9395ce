package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Draws of a normal law are fitted by one, and draws of three that are apart by three or more, with a log density that
// is the truth's up to what so many draws tell: about half a nat for each parameter, over their number.
func TestFitMixture(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, d = 4000, 2
	centers := [][]float64{{-10, 0}, {10, 0}, {0, 8}}
	for modes := 1; modes <= 3; modes += 2 {
		truth := &mixture{}
		for _, c := range centers[:modes] {
			g, err := normalOfPrecision(c, []float64{1, 4})
			require.NoError(t, err)
			truth.parts, truth.log = append(truth.parts, g), append(truth.log, -math.Log(float64(modes)))
		}
		x := truth.draw(n, rng.Uint64())
		m, err := fitMixture([][]float64{x[:n*d/2], x[n*d/2:]}, d, 3)
		require.NoError(t, err)
		if modes == 1 {
			require.Len(t, m.parts, 1)
		} else {
			require.GreaterOrEqual(t, len(m.parts), 3)
		}
		fresh := truth.draw(n, rng.Uint64())
		lost, want := 0.0, truth.logDensities(fresh)
		for i, l := range m.logDensities(fresh) {
			lost += (want[i] - l) / n
		}
		// Each part has five moments and a weight; twice the expected loss is allowed.
		require.Less(t, lost, 2*0.5*6*float64(len(m.parts))/(0.75*n), "%d modes", modes)
		again := m.draw(n, 5)
		gap := 0.0
		for i, l := range m.logDensities(again) {
			gap += (truth.logDensity(again[i*d:(i+1)*d]) - l) / n
		}
		require.InDelta(t, 0, gap, 0.05, "its draws are of the law too")
	}
}
