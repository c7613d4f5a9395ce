// Package batch makes tensors of data: the way from packages data and data/large, which are plain Go, to a model.
//
// [Of] is the batch of a frame. A [Loader] makes batches of data that do not fit in memory: rows of a [large.Table],
// shuffled anew in each epoch, read ahead while a run computes.
//
//	table, err := large.Open(map[string]string{"x": "x.npy", "y": "y.npy"})
//	defer table.Close()
//	batches, err := batch.NewLoader(table, batch.LoaderOptions{Size: 256, Seed: 1})
//	posterior, err := infer.Sample(ctx, program, sgmcmc.SGHMC{}, infer.Options{Batches: batches})
//
// A run with a checkpoint goes on with the next batch, to the bit, and refuses files that have changed. The model is
// compiled on some rows, such as the first batch, and its plate has the option ppl.Minibatch and the size table.Rows().
package batch

import (
	"fmt"

	"github.com/kelvin-ppl/kelvin/data"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// Of is the batch of a frame, of n rows, in main memory:
//
//	x      float64 [n, columns]   the matrix, where the design has terms
//	y      float64 [n]            the outcome, where there is one
//	name   float64 [n]            each column of numbers of its own
//	name   int64 [n]              each factor of its own, as indices from 0
//
// It is what ppl.Compile takes; [infer.Minibatches] parts it. The tensors belong to no scope. Columns of other lengths
// than Rows, in a frame that was not made by a design, are errors.
func Of(f *data.Frame) (infer.Batch, error) {
	if f == nil || f.Rows < 1 {
		return nil, fmt.Errorf("batch.Of: the frame has no rows: %w", infer.ErrConfig)
	}
	out := infer.Batch{}
	if f.X != nil {
		flat := make([]float64, 0, len(f.X)*len(f.Names))
		for i, row := range f.X {
			if len(row) != len(f.Names) {
				return nil, fmt.Errorf("batch.Of: row %d of X has %d numbers, expected %d, one for each name: %w", i, len(row),
					len(f.Names), infer.ErrConfig)
			}
			flat = append(flat, row...)
		}
		if err := add(out, f, "x", flat, len(f.X), len(f.Names)); err != nil {
			return nil, err
		}
	}
	if f.Y != nil {
		if err := add(out, f, "y", f.Y, len(f.Y)); err != nil {
			return nil, err
		}
	}
	for name, column := range f.Numbers {
		if err := add(out, f, name, column, len(column)); err != nil {
			return nil, err
		}
	}
	for name, column := range f.Indices {
		if err := add(out, f, name, column, len(column)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// add makes a tensor of a column, of shape [rows, more...].
func add[T torch.Number](b infer.Batch, f *data.Frame, name string, values []T, rows int, more ...int) error {
	if _, twice := b[name]; twice || rows != f.Rows {
		return fmt.Errorf("batch.Of: %q has %d rows, expected %d, under a name of its own: %w", name, rows, f.Rows,
			infer.ErrConfig)
	}
	t, err := torch.FromSlice(values, append([]int{rows}, more...)...)
	if err != nil {
		return fmt.Errorf("batch.Of: %q: %w", name, err)
	}
	torch.Detach(t)
	b[name] = t
	return nil
}
