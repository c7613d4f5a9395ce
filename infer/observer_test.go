package infer_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// sleeper is an observer that is asked whether it wants to be told.
type sleeper struct {
	due   func(asked int) bool
	asked int
	after []int64 // the updates that it saw
}

func (s *sleeper) Due() bool { s.asked++; return s.due(s.asked) }

func (s *sleeper) Observe(p infer.Progress) { s.after = append(s.after, p.Step) }

// An observer with Due sees the updates, or transitions of a driver, after which it was due, and no others. It is asked
// once after each.
func TestDue(t *testing.T) {
	third := func(asked int) bool { return asked%3 == 0 }
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	s := &sleeper{due: third}
	ran(t, counter{}, p, infer.Full(nil), infer.Options{Warmup: 2, Draws: 8, Observer: s})
	assert.Equal(t, []int64{3, 6, 9}, s.after)
	assert.Equal(t, 10, s.asked)

	s = &sleeper{due: third}
	_, err := walk(t, built{walker{}}, infer.Options{Chains: 1, Warmup: 4, Draws: 5, Observer: s})
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 6, 9}, s.after)
	assert.Equal(t, 9, s.asked)

	s = &sleeper{due: func(int) bool { panic("asleep") }}
	_, err = walk(t, hmc.NUTS{}, infer.Options{Chains: 2, Warmup: 4, Draws: 5, Observer: s})
	assert.ErrorContains(t, err, "asleep", "a panic on the goroutine of a chain is an error")
}

// Saved is called when a checkpoint is complete: a copy of its files then is one that a run goes on from, with the
// draws of the run that was not interrupted. Its error ends the run.
func TestSaved(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	dir := t.TempDir()
	var copies []string
	c := infer.Checkpoint{Dir: dir, Every: 4, Saved: func(at string) error {
		assert.Equal(t, dir, at)
		to := t.TempDir()
		copies = append(copies, to)
		return os.CopyFS(to, os.DirFS(at))
	}}
	o := infer.Options{Warmup: infer.None, Draws: 10, Checkpoint: &c}
	want := ran(t, restorable{}, p, infer.Full(nil), o)
	require.Len(t, copies, 3, "after 4, 8 and all 10 updates")
	for k, of := range copies {
		var first int64
		o.Checkpoint = &infer.Checkpoint{Dir: of, Every: 4, Resume: true}
		o.Observer = infer.ObserverFunc(func(p infer.Progress) {
			if first == 0 {
				first = p.Step
			}
		})
		sameResult(t, want, ran(t, restorable{}, p, infer.Full(nil), o))
		assert.Equal(t, []int64{5, 9, 0}[k], first)
	}

	full := errors.New("the disk is full")
	o.Observer = nil
	o.Checkpoint = &infer.Checkpoint{Dir: t.TempDir(), Every: 4, Saved: func(string) error { return full }}
	r, err := infertest.Run(context.Background(), restorable{}, p, infer.Full(nil), o)
	require.ErrorIs(t, err, full)
	assert.EqualValues(t, 4, r.Updates)
}

// A driver's checkpoints are told too.
func TestSavedOfDriver(t *testing.T) {
	saved := 0
	o := infer.Options{Chains: 2, Warmup: 4, Draws: 20, Checkpoint: &infer.Checkpoint{Dir: t.TempDir(), Every: 5,
		Saved: func(string) error { saved++; return nil }}}
	_, err := walk(t, built{walker{}}, o)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, saved, 24/5)
}
