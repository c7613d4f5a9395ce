//go:build cgo

package serve_test

import (
	"bytes"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// posteriorAt are named draws of a program, in two chains.
func posteriorAt(t testing.TB, p *ppl.Program, n int) *draws.Draws {
	u, err := draws.New(p.Layout().Sites, nil, 2)
	require.NoError(t, err)
	for i, x := range points(2*n, u.Dim()) {
		require.NoError(t, u.AppendChain(i/n, x, nil))
	}
	u.SetSpace(draws.Unconstrained)
	named, err := p.Draws(u, p.Batch())
	require.NoError(t, err)
	return named
}

// Predictions of a loaded model are those of ppl.Predictive: the same numbers from the same streams.
func TestPredictions(t *testing.T) {
	for _, m := range all(t) {
		t.Run(m.Name, func(t *testing.T) {
			p, err := m.Compile()
			require.NoError(t, err)
			posterior := posteriorAt(t, p, 20)
			var file bytes.Buffer
			require.NoError(t, p.ExportFitted(&file, posterior, nil))
			loaded, err := serve.Load(&file)
			require.NoError(t, err)
			want, err := ppl.Predictive{Model: p.Model(), Batch: p.Batch(), Seed: 5}.Posterior(posterior)
			require.NoError(t, err)
			got, err := loaded.Predict(nil, loaded.Rows(), nil, 5)
			require.NoError(t, err)
			require.Len(t, got.Sites(), len(want))
			worst := 0.0
			for _, s := range got.Sites() {
				flat, err := torch.ToSlice[float64](torch.Of(want[s.Name].T().MustTotype(7, false)))
				require.NoError(t, err)
				var mine []float64
				for chain := range 2 {
					for k := range 20 {
						mine = append(mine, got.Row(chain, k)[s.Offset:s.Offset+s.Size]...)
					}
				}
				worst = max(worst, distance(t, mine, flat))
			}
			t.Logf("%d sites; differences up to %.1e; rows %v", len(want), worst, loaded.FreeRows())
			require.Less(t, worst, 1e-12)
		})
	}
}
