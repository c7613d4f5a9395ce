package native

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Large models have the same bits on 1, 2 and 16 threads, in repeats and where several callers share the threads: a
// matrix in blocks of rows, few columns that are a loop, and a network.
func TestThreads(t *testing.T) {
	defer func() { require.NoError(t, torch.SetThreads(1)) }()
	logistic := func(x, w, _ torch.Tensor) torch.Tensor { return x.MatMul(w.Unsqueeze(-1)).LogSigmoid().Sum() }
	network := func(x, w, y torch.Tensor) torch.Tensor {
		h := x.MatMul(w.Slice(0, 0, 256).Reshape(8, 32)).Tanh()
		h = h.MatMul(w.Slice(0, 256, 1280).Reshape(32, 32)).Tanh()
		return h.MatMul(w.Slice(0, 1280, 1312).Unsqueeze(-1)).Squeeze(-1).Sub(y).Square().Sum().Mul(-0.5)
	}
	for name, m := range map[string]struct {
		rows, columns, dim int
		of                 func(x, w, y torch.Tensor) torch.Tensor
	}{"blocks": {5003, 120, 120, logistic}, "columns": {200_003, 5, 5, logistic}, "network": {10_003, 8, 1312, network}} {
		t.Run(name, func(t *testing.T) {
			x, w := somewhere(m.rows*m.columns, 1), somewhere(m.dim, 2)
			batch := map[string]torch.Tensor{"x": torch.New(x, m.rows, m.columns),
				"y": torch.New(somewhere(m.rows, 3))}
			s := Source{Dim: m.dim, Batch: batch, Evaluate: func(w torch.Tensor, b map[string]torch.Tensor) (values,
				grads []torch.Tensor, aux map[string]torch.Tensor, err error) {
				v, g, err := torch.ValueAndGrad(func(w torch.Tensor) torch.Tensor { return m.of(b["x"], w, b["y"]) }, w)
				return []torch.Tensor{v}, []torch.Tensor{g}, nil, err
			}}
			f, report, err := Compile(s, [][]float64{w, somewhere(m.dim, 4)}, Options{Tier: C})
			require.NoError(t, err)
			require.Less(t, report.Error, 1e-10)
			parts := 0
			for _, step := range f.plan.Steps {
				parts += step.Parts
			}
			require.Greater(t, parts, 0)
			var first []uint64
			for _, n := range []int{1, 2, 16, 2} {
				require.NoError(t, torch.SetThreads(n))
				all := make(chan []uint64, 15)
				var callers sync.WaitGroup
				for range 3 {
					callers.Go(func() {
						for range cap(all) / 3 {
							all <- bitsOf(f, w)
						}
					})
				}
				callers.Wait()
				close(all)
				for bits := range all {
					if first == nil {
						first = bits
					}
					assert.Equal(t, first, bits, "%d threads", n)
				}
			}
		})
	}
}

// bitsOf are those of value and gradient.
func bitsOf(f *Func, x []float64) []uint64 {
	grad := make([]float64, f.Dim())
	value, err := f.Eval(x, 0, grad)
	if err != nil {
		return nil
	}
	bits := []uint64{math.Float64bits(value)}
	for _, g := range grad {
		bits = append(bits, math.Float64bits(g))
	}
	return bits
}

// somewhere is n numbers from N(0, 0.09).
func somewhere(n int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 5))
	out := make([]float64, n)
	for i := range out {
		out[i] = 0.3 * rng.NormFloat64()
	}
	return out
}
