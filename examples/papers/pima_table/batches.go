package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

// resampled gives batches whose data are chosen with replacement, each by itself; [infer.Minibatches] shuffles, and has
// every datum once an epoch. Batch t depends on the seed and t alone (PCG). With copies K above 0 each batch has the
// shape [size, K, ...]: data of its own for each of K copies.
type resampled struct {
	data         infer.Batch
	total        int // data to choose from
	size, copies int
	seed, stream uint64
	given        int
}

func newResampled(data infer.Batch, size, copies int, seed, stream uint64) (*resampled, error) {
	total, err := data.Size()
	return &resampled{data: data, total: total, size: size, copies: copies, seed: seed, stream: stream}, err
}

// Next is the next batch.
func (r *resampled) Next() (infer.Batch, error) {
	out := infer.Batch{}
	err := torch.Do(func(s *torch.Scope) error {
		// Two numbers, of the batch and of the stream, make the second seed: streams are fewer than 2^20.
		rng := rand.New(rand.NewPCG(r.seed, uint64(r.given)<<20|r.stream))
		index := make([]int, r.size*max(r.copies, 1))
		for i := range index {
			index[i] = int(rng.Int64N(int64(r.total)))
		}
		at, err := torch.FromSlice(index)
		if err != nil {
			return err
		}
		for name, t := range r.data {
			rows, err := t.T().IndexSelect(0, at.T(), false)
			if err != nil {
				return fmt.Errorf("batch tensor %q: %w", name, err)
			}
			if r.copies > 0 {
				shape := append([]int{r.size, r.copies}, torch.Ints(rows.MustSize()[1:])...)
				if rows, err = rows.View(torch.Int64s(shape), false); err != nil {
					return fmt.Errorf("batch tensor %q: %w", name, err)
				}
			}
			out[name] = torch.Of(rows)
			s.Keep(torch.Of(rows))
		}
		return nil
	})
	r.given++
	return out, err
}

// Position counts batches as epochs.
func (r *resampled) Position() infer.Position { return infer.Position{Epoch: r.given} }

// Seek goes to a batch.
func (r *resampled) Seek(p infer.Position) error {
	r.given = p.Epoch
	return nil
}

// Fingerprint names the choice and the data.
func (r *resampled) Fingerprint() (string, error) {
	data, err := infer.Full(r.data).Fingerprint()
	return fmt.Sprintf("%d of %d with replacement, %d copies, seed %d, stream %d, %s", r.size, r.total, r.copies, r.seed,
		r.stream, data), err
}
