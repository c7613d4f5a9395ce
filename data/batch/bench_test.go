package batch_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/data/batch"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// BenchmarkNext makes batches of 100,000 rows of x (2 numbers), y and id: from files that the system has in its cache,
// read ahead or not, and from memory.
func BenchmarkNext(b *testing.B) {
	const n = 100_000
	table, _ := write(b, n)
	x, y, id := rows(n)
	memory := infer.Batch{"x": torch.New(x, n, 2), "y": torch.New(y),
		"id": torch.New(id)}
	for _, size := range []int{32, 512} {
		inMemory, err := infer.Minibatches(memory, infer.MinibatchOptions{Size: size})
		require.NoError(b, err)
		for _, c := range []struct {
			name    string
			batches infer.Batches
		}{
			{"memory", inMemory},
			{"ahead", load(b, table, batch.LoaderOptions{Size: size})},
			{"none-ahead", load(b, table, batch.LoaderOptions{Size: size, Ahead: infer.None})},
			{"in-order", load(b, table, batch.LoaderOptions{Size: size, KeepOrder: true})},
		} {
			b.Run(fmt.Sprintf("%s-%d", c.name, size), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, torch.Do(func(*torch.Scope) error {
						_, err := c.batches.Next()
						return err
					}))
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
			})
		}
	}
}
