package infer_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
)

// sleeper is an observer that is asked whether it wants to be told.
type sleeper struct {
	due   func(asked int) bool
	asked int
	after []int // the updates that it saw
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
	assert.Equal(t, []int{3, 6, 9}, s.after)
	assert.Equal(t, 10, s.asked)

	s = &sleeper{due: third}
	_, err := walk(t, built{walker{}}, infer.Options{Chains: 1, Warmup: 4, Draws: 5, Observer: s})
	require.NoError(t, err)
	assert.Equal(t, []int{3, 6, 9}, s.after)
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
		var first int
		o.Checkpoint = &infer.Checkpoint{Dir: of, Every: 4, Resume: true}
		o.Observer = infer.ObserverFunc(func(p infer.Progress) {
			if first == 0 {
				first = p.Step
			}
		})
		sameResult(t, want, ran(t, restorable{}, p, infer.Full(nil), o))
		assert.Equal(t, []int{5, 9, 0}[k], first)
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

// A function of the user's that panics in a run is an error that names it, in methods of updates and in those that
// drive themselves, and the draws so far are in the result.
func TestPanicsNameTheFunction(t *testing.T) {
	named := 0
	boom := func() { panic("boom") }
	later := infer.ObserverFunc(func(p infer.Progress) {
		if p.Step > 6 {
			boom()
		}
	})
	for in, o := range map[string]infer.Options{
		"observer":                     {Observer: later},
		"function Due of the observer": {Observer: &sleeper{due: func(int) bool { panic("boom") }}},
		"function Until":               {Until: func(infer.Progress) bool { panic("boom") }},
		"function Save": {SaveEvery: 2, Save: func(string, []int, *draws.Draws) error {
			panic("boom")
		}},
		"function Next of Batches": {Batches: panicking{infer.Full(nil)}},
	} {
		for _, m := range []infer.Method{built{counter{}}, hmc.NUTS{}} {
			if _, drives := m.(hmc.NUTS); drives && o.Batches != nil {
				continue // it takes all of the data
			}
			o.Chains, o.Warmup, o.Draws = 2, 5, 10
			_, err := walk(t, m, o)
			var panicked *infer.PanicError
			require.ErrorAs(t, err, &panicked, "%s of %T", in, m)
			assert.Equal(t, in, panicked.In, "%T", m)
			assert.Equal(t, "boom", panicked.Value)
			assert.Contains(t, panicked.Stack, "observer_test.go")
			named++
		}
	}
	t.Logf("seen: %d panics of functions of the user's named", named)
}

// panicking are batches that panic.
type panicking struct{ infer.Batches }

func (panicking) Next() (infer.Batch, error) { panic("boom") }
