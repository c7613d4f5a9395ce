package ppl_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/data/large"
	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/infer/optim"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/infer/svi"
	"github.com/kelvin-ppl/kelvin/infer/vi"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
)

// withALast is a model of 25 data whose mean, 4, all comes from the last: batches of 8 and of 24 leave it alone.
func withALast(t *testing.T) (*ppl.Program, []float64) {
	t.Helper()
	y := make([]float64, 25)
	y[24] = 100
	p, err := ppl.Compile(func(c *ppl.Ctx) {
		m := c.Sample("m", dist.Normal(0, 1000))
		c.Plate("data", 0, func(c *ppl.Ctx) { c.Observe("y", dist.Normal(m, 1), c.Data("y")) })
	}, infer.Batch{"y": torch.New(y)})
	require.NoError(t, err)
	return p, y
}

// The mean over an epoch is the log posterior of all data, for every order and size, of batches in memory and from
// files, of a model and of a hand-written target, whose likelihood counts N/n times.
func TestEpochMean(t *testing.T) {
	p, y := withALast(t)
	path := filepath.Join(t.TempDir(), "y.npy")
	w, err := large.Create[float64](path)
	require.NoError(t, err)
	require.NoError(t, w.Write(y...))
	require.NoError(t, w.Close())
	table, err := large.Open(map[string]string{"y": path})
	require.NoError(t, err)
	written := infer.FromParts(func(q infer.Params, b infer.Batch) (prior, likelihood torch.Tensor) {
		m := q.Get("m")
		each := dist.Normal(m, 1).LogProb(b.Get("y"))
		return dist.Normal(0, 1000).LogProb(m), each.Mean().Mul(25)
	}, 25)
	at, err := infer.NewParams(p.Layout(), []float64{1})
	require.NoError(t, err)
	value := func(target infer.Target, b infer.Batch) float64 {
		v, _ := target.LogPosterior(at, b)
		return v.Item() * target.N()
	}
	want := value(p.Target(), p.Batch())
	for _, keep := range []bool{true, false} {
		for size := 1; size <= 25; size++ {
			memory, err := infer.Minibatches(p.Batch(), infer.MinibatchOptions{Size: size, KeepOrder: keep})
			require.NoError(t, err)
			files, err := batch.NewLoader(table, batch.LoaderOptions{Size: size, KeepOrder: keep})
			require.NoError(t, err)
			for _, batches := range []infer.Batches{memory, files} {
				for _, target := range []infer.Target{p.Target(), written} {
					require.NoError(t, batches.Seek(infer.Position{}))
					sum, n := 0.0, 0.0
					for ; batches.Position().Epoch == 0; n++ {
						b, err := batches.Next()
						require.NoError(t, err)
						sum += value(target, b)
					}
					require.InEpsilon(t, want, sum/n, 1e-9, "size %d", size)
				}
			}
		}
	}
}

// Batches that are not sought for are given one after the other.
type copied struct{ infer.Batches }

// Every method finds the mean of data whose last batch is smaller, in their order, with batches of the library's and of
// the user's own.
func TestMethodsOnUnevenBatches(t *testing.T) {
	p, _ := withALast(t)
	fall := optim.SGD{LR: infer.Linear(0.05, 0.0005, 0, 4000)}
	for name, method := range map[string]infer.Method{
		"SGD": fall, "SGHMC": sgmcmc.SGHMC{LR: infer.Constant(0.01)}, "SGLD": sgmcmc.SGLD{LR: infer.Constant(0.01)},
		"Laplace": laplace.DiagFisher{Optimizer: fall}, "vi": vi.Diag{}, "SVI": svi.SVI{},
	} {
		for _, own := range []bool{false, true} {
			b, err := infer.Minibatches(p.Batch(), infer.MinibatchOptions{Size: 24, KeepOrder: true})
			require.NoError(t, err)
			if own {
				b = copied{b}
			}
			d, err := infer.Sample(context.Background(), p, method, infer.Options{Chains: 1, Warmup: 4000, Draws: 2000,
				Batches: b, Observer: infer.Silent})
			require.NoError(t, err, name)
			m, err := d.Mean("m")
			require.NoError(t, err)
			// Data that count by the size of their batch would give 50.
			require.InDelta(t, 4, m[0], 0.7, "%s, own %v", name, own)
		}
	}
}
