package sgmcmc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
)

// own are batches of the user's, in a row that begins anew: 50 data in parts of the given sizes.
type own struct {
	parts []infer.Batch
	at    int
	fails int // the batch that is an error; 0 for none
	asked int

	refill bool // hand out the same tensors again, with other numbers
	room   map[string]torch.Tensor
	turn   bool // hand out x column by column in memory
}

var errNoMore = errors.New("there are no more data")

func ownBatches(t *testing.T, sizes ...int) *own {
	t.Helper()
	_, batch := logistic(t, 1)
	o := &own{room: map[string]torch.Tensor{}}
	from := 0
	for _, n := range sizes {
		part := infer.Batch{}
		for name, x := range batch {
			part[name] = must(torch.Copy(torch.Of(x.T().MustNarrow(0, int64(from), int64(n), false))))
		}
		o.parts = append(o.parts, part)
		from += n
	}
	return o
}

func (o *own) Next() (infer.Batch, error) {
	if o.asked++; o.fails > 0 && o.at >= o.fails {
		return nil, errNoMore
	}
	b := o.parts[o.at%len(o.parts)]
	o.at++
	switch {
	case o.turn:
		x := b["x"].T().MustT(false).MustContiguous(false).MustT(false)
		return infer.Batch{"x": torch.Of(x), "y": b["y"]}, nil
	case o.refill:
		for name, x := range b {
			if o.room[name] == (torch.Tensor{}) {
				o.room[name] = must(torch.Copy(x))
				torch.Detach(o.room[name])
			}
			if err := torch.CopyFrom(o.room[name], values(x.T())); err != nil {
				return nil, err
			}
		}
		return infer.Batch{"x": o.room["x"], "y": o.room["y"]}, nil
	}
	return b, nil
}

func (o *own) Position() infer.Position     { return infer.Position{Index: o.at} }
func (o *own) Seek(p infer.Position) error  { o.at = p.Index; return nil }
func (o *own) Fingerprint() (string, error) { return "own", nil }
func (o *own) with(f func(*own)) *own       { c := *o; f(&c); return &c }

// A run takes batches of the user's ahead, many for a call, and has the bits of a run that takes one after the other,
// as it does where somebody watches: whatever their shapes, also where an iterator fills the same tensors again or has
// them in another order in memory.
func TestBatchesOfTheUser(t *testing.T) {
	for what, batches := range map[string]*own{
		"one shape":                ownBatches(t, 10, 10, 10),
		"a shorter one at the end": ownBatches(t, 10, 10, 10, 4),
		"nine shapes":              ownBatches(t, 1, 2, 3, 4, 5, 6, 7, 8, 9),
		"filled again":             ownBatches(t, 10, 10, 10).with(func(o *own) { o.refill = true }),
		"column by column":         ownBatches(t, 10, 10, 10).with(func(o *own) { o.turn = true }),
	} {
		t.Run(what, func(t *testing.T) {
			m := fusedMethods["ramp"]
			again := func() *own { return batches.with(func(o *own) { o.room = map[string]torch.Tensor{} }) }
			o := infer.Options{Batches: again(), Observer: infer.ObserverFunc(func(infer.Progress) {})}
			want := fusedRun(t, m, 2, 0, native.Auto, o)
			check := func(have *infer.Result) {
				t.Helper()
				assertSameDraws(t, want.Unconstrained, have.Unconstrained, 0)
				identical(t, values(want.Last.Flat.T()), values(have.Last.Flat.T()), "last")
			}
			o = infer.Options{Batches: again(), Observer: infer.Silent}
			check(fusedRun(t, m, 2, 0, native.Auto, o))
			assert.EqualValues(t, 170, o.Batches.(*own).at, "the batches stand where the run does")
			eager := fusedRun(t, m, 2, 0, native.Eager, infer.Options{Batches: again(), Observer: infer.Silent})
			assertSameDraws(t, eager.Unconstrained, want.Unconstrained, 1e-11)
			if len(batches.parts) > 8 {
				return // a run that goes on meets other shapes first, and compiles those
			}

			dir := t.TempDir()
			o = infer.Options{Batches: again(), Checkpoint: &infer.Checkpoint{Dir: dir, Every: 33}, Observer: infer.Silent}
			o.Save = func(string, []int, *draws.Draws) error {
				if o.Batches.(*own).at >= 99 {
					return context.Canceled
				}
				return nil
			}
			o.Chains, o.Warmup, o.Draws, o.Thin, o.Seed = 2, 20, 30, 5, 3
			program, _ := logistic(t, 2)
			_, err := infer.Run(context.Background(), program, m, o)
			require.ErrorIs(t, err, context.Canceled)
			check(fusedRun(t, m, 2, 0, native.Auto, infer.Options{Batches: again(), Observer: infer.Silent,
				Checkpoint: &infer.Checkpoint{Dir: dir, Every: 33, Resume: true}}))
		})
	}
}

// Where the user's batches end with an error, the updates before it are made, and no batch is asked for that the run
// does not need, but for the one whose rows are looked at first.
func TestBatchesOfTheUserThatEnd(t *testing.T) {
	m := sgmcmc.SGHMC{LR: infer.Constant(0.2)}
	program, _ := logistic(t, 2)
	o := infer.Options{Chains: 2, Warmup: 100, Draws: infer.None, Seed: 3, Observer: infer.Silent}
	batches := ownBatches(t, 10, 10).with(func(o *own) { o.fails = 57 })
	o.Batches = batches
	r, err := infer.Run(context.Background(), program, m, o)
	require.ErrorIs(t, err, errNoMore)
	assert.ErrorContains(t, err, "after 57 of 100 updates")
	assert.EqualValues(t, 57, r.Updates)
	batches = ownBatches(t, 10, 10).with(func(o *own) { o.fails = 100 })
	o.Batches = batches
	_, err = infer.Run(context.Background(), program, m, o)
	require.NoError(t, err)
	assert.EqualValues(t, 101, batches.asked)
}
