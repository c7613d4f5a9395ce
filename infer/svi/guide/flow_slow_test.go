//go:build slow

package guide_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/svi/guide"
)

// divergence is KL(q‖p) of a fit to a density p of integral 1, and its standard error: the mean of log q − log p over
// draws of q, in 60 groups of n.
func divergence(t testing.TB, r *infer.Result, n int) (kl, se float64) {
	t.Helper()
	const groups = 60
	var all [groups]float64
	for i := range all {
		bound, err := r.State.(svi.State).Bound(svi.Trace{}, nil, n, uint64(100+i))
		require.NoError(t, err)
		all[i] = -bound[0]
		kl += all[i] / groups
	}
	for _, v := range all {
		se += (v - kl) * (v - kl)
	}
	return kl, math.Sqrt(se / (groups - 1) / groups)
}

// Flows follow a banana: they come nearer to it than 0.01 nats.
func TestFlowsOnABanana(t *testing.T) {
	samples = 64
	defer func() { samples = 16 }()
	for name, g := range map[string]builder{"IAF": guide.IAF{InitScale: 1},
		"Spline": guide.Spline{InitScale: 1, Layers: 2}} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := fitted(t, banana, g, 0.03, 4000, infer.Options{Draws: 4000})
			kl, se := divergence(t, r, 1000)
			t.Logf("KL %.4f ± %.4f", kl, se)
			require.Less(t, kl+4*se, 0.01)
			require.Greater(t, kl, -4*se)
			one, se := integral(t, r, 1000)
			require.InDelta(t, 1, one, 4*se+1e-3)
			// Of the banana: E[y] = 0.7, Var[y] = 0.25 + 0.49 · 2. The fit is as near as its divergence allows.
			require.InDelta(t, 0.7, must(r.Draws.Mean("y"))[0], 0.1)
			require.InDelta(t, math.Sqrt(1.23), must(r.Draws.SD("y"))[0], 0.1)
		})
	}
}
