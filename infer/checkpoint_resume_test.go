package infer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The two files in the folder of a run.
const (
	checkpointFile = "checkpoint.kelvin"
	drawsFile      = "draws.kelvin"
)

// job is a run that can be started again with the same arguments, as a program would after it was killed.
type job struct {
	method infer.Method
	chains int // 0 for a single point without a chain axis
	single bool
	steps  int
	noDraw bool
}

// run starts it, or goes on from the checkpoint in dir; with no dir there are none. The observer may be nil.
func (j job) run(ctx context.Context, t testing.TB, dir string, every int,
	observer func(infer.Progress)) (*infer.Result, error) {
	t.Helper()
	m := newLogistic(30, 3)
	p, data := pointOf(t, m.layout(t), numbers(4*max(j.chains, 1), 0)...), m.batch()
	if j.single {
		p, data = in32(t, p), m.batch32(t)
	}
	c := infer.Options{Warmup: 20, Draws: (j.steps - 20) / 3, Thin: 3, Discard: j.noDraw, Seed: 6}
	if observer != nil {
		c.Observer = infer.ObserverFunc(observer)
	}
	if dir != "" {
		c.Checkpoint = &infer.Checkpoint{Dir: dir, Every: every, Resume: true, Model: "logistic"}
	}
	return infertest.Run(ctx, build(t, j.method, m.logPosterior), p,
		minibatches(t, data, infer.MinibatchOptions{Size: 8, Seed: 2}), c)
}

func (j job) whole(t testing.TB) *infer.Result {
	t.Helper()
	r, err := j.run(context.Background(), t, "", 0, nil)
	require.NoError(t, err)
	return r
}

// cancelAt runs until the update and cancels there.
func (j job) cancelAt(t testing.TB, dir string, update int) *infer.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := j.run(ctx, t, dir, 1000, func(p infer.Progress) {
		if p.Step == update {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, update, r.Updates)
	return r
}

func (j job) resume(t testing.TB, dir string) *infer.Result {
	t.Helper()
	r, err := j.run(context.Background(), t, dir, 1000, nil)
	require.NoError(t, err)
	return r
}

// jobs are all methods, with one chain and three, in float64 and float32. An epoch is four batches, the last smaller.
func jobs() map[string]job {
	out := map[string]job{}
	for name, m := range methods {
		for _, k := range []int{0, 3} {
			for _, single := range []bool{false, true} {
				out[fmt.Sprintf("%s, %d chains, float32 %v", name, k, single)] = job{method: m, chains: k, single: single,
					steps: 59}
			}
		}
	}
	return out
}

// A run that is cancelled and resumed ends with the draws, statistics and state of the run that was not, bit for bit:
// the update after the checkpoint has the same state, the same random numbers and the same batch. The points of
// interruption: the first update, inside burn-in, its last update, the first one after it, the update of a draw, in the
// middle and at the end of an epoch, the last but one.
func TestResumeAfterCancel(t *testing.T) {
	testkit.Long(t)
	for name, j := range jobs() {
		t.Run(name, func(t *testing.T) {
			want := j.whole(t)
			require.Equal(t, 13, want.Draws.MinLen())
			for _, at := range []int{1, 7, 20, 21, 26, 34, 36, 58} {
				dir := filepath.Join(t.TempDir(), "run")
				part := j.cancelAt(t, dir, at)
				assert.Equal(t, max(0, (at-20)/3), part.Unconstrained.MinLen())
				got := j.resume(t, dir)
				sameResult(t, want, got)
				if j.single {
					assert.Equal(t, gotch.Float, got.State.Position().Flat.T().DType())
				}
			}
		})
	}
}

// Interrupted again and again, every few updates.
func TestResumeManyTimes(t *testing.T) {
	for _, name := range []string{"SGHMC, 3 chains, float32 false", "Adam, 0 chains, float32 true"} {
		j, dir := jobs()[name], t.TempDir()
		want := j.whole(t)
		for at := 3; at < j.steps; at += 7 {
			j.cancelAt(t, dir, at)
		}
		sameResult(t, want, j.resume(t, dir))
	}
}

// Cancelled before the first update, there is a checkpoint of the start.
func TestResumeFromTheStart(t *testing.T) {
	j, dir := jobs()["SGLD, 3 chains, float32 false"], t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := j.run(ctx, t, dir, 10, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.FileExists(t, filepath.Join(dir, checkpointFile))
	sameResult(t, j.whole(t), j.resume(t, dir))
}

// A crash, here a panic of the observer, leaves the last checkpoint and the draws that were written for it. The run
// goes on from there and repeats what came after.
func TestResumeAfterACrash(t *testing.T) {
	j, dir := jobs()["SGHMC, 3 chains, float32 false"], t.TempDir()
	want := j.whole(t)
	for _, at := range []int{5, 17, 34, 35, 49} {
		assert.NotPanics(t, func() {
			_, err := j.run(context.Background(), t, dir, 8, func(p infer.Progress) {
				if p.Step == at {
					panic("the power fails")
				}
			})
			assert.ErrorContains(t, err, "panic in the observer: the power fails")
		})
	}
	var first, resumed int
	r, err := j.run(context.Background(), t, dir, 8, func(p infer.Progress) {
		if first == 0 {
			first, resumed = p.Step, p.Resumed
			assert.Equal(t, (48-20)/3, p.Draws)
		}
	})
	require.NoError(t, err)
	assert.EqualValues(t, 48, resumed, "the last multiple of 8 before 49")
	assert.EqualValues(t, 49, first)
	sameResult(t, want, r)
}

// An update that fails saves nothing: the checkpoint before it stands, and a run that no longer fails goes on from it.
func TestResumeAfterAnError(t *testing.T) {
	dir := t.TempDir()
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	c := infer.Options{Warmup: infer.None, Draws: 12, Checkpoint: &infer.Checkpoint{Dir: dir, Every: 4, Resume: true}}
	r, err := infertest.Run(context.Background(), restorable{counter{failAt: 7}}, p, infer.Full(nil), c)
	assert.ErrorIs(t, err, errCounter)
	assert.EqualValues(t, 6, r.Updates)
	want := ran(t, counter{}, p, infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 12})
	sameResult(t, want, ran(t, restorable{}, p, infer.Full(nil), c))
}

// A finished run has a checkpoint of its end: the same call gives the same result without an update, and more Steps
// make it longer, as if it had been asked for at once.
func TestExtendAFinishedRun(t *testing.T) {
	for _, name := range []string{"SGLD, 3 chains, float32 false", "AdamW, 0 chains, float32 true"} {
		long, dir := jobs()[name], t.TempDir()
		short := long
		short.steps = 31
		want := short.whole(t)
		sameResult(t, want, short.resume(t, dir))
		calls := 0
		again, err := short.run(context.Background(), t, dir, 1000, func(infer.Progress) { calls++ })
		require.NoError(t, err)
		sameResult(t, want, again)
		assert.Zero(t, calls)
		sameResult(t, long.whole(t), long.resume(t, dir))
	}
}

// Checkpoints come every so many updates, and at the end: the draws file grows with them.
func TestCheckpointEvery(t *testing.T) {
	dir := t.TempDir()
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0)
	var sizes []int // of the draws file after each update
	ran(t, restorable{}, p, infer.Full(nil),
		infer.Options{Warmup: infer.None, Draws: 7,
			Checkpoint: &infer.Checkpoint{Dir: dir, Every: 3},
			Observer:   infer.ObserverFunc(func(infer.Progress) { sizes = append(sizes, sizeOf(t, dir, drawsFile)) })})
	// A draw is a number, one value and five statistics of 8 bytes; the observer comes before the
	// checkpoint of its update.
	const draw = 7 * 8
	assert.Equal(t, []int{0, 0, 0, 3 * draw, 3 * draw, 3 * draw, 6 * draw}, sizes)
	assert.EqualValues(t, 7*draw, sizeOf(t, dir, drawsFile))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "nothing else is left besides the lock")

	// The default is every 1000.
	dir = t.TempDir()
	var first int
	ran(t, restorable{}, p, infer.Full(nil),
		infer.Options{Warmup: 1500, Draws: infer.None,
			Checkpoint: &infer.Checkpoint{Dir: dir}, Observer: infer.ObserverFunc(func(p infer.Progress) {
				if _, err := os.Stat(filepath.Join(dir, checkpointFile)); err == nil && first == 0 {
					first = p.Step
				}
			})})
	assert.EqualValues(t, 1001, first)
}

func sizeOf(t testing.TB, parts ...string) int {
	t.Helper()
	info, err := os.Stat(filepath.Join(parts...))
	require.NoError(t, err)
	return int(info.Size())
}

// Without draws only the state is saved.
func TestResumeNoDraws(t *testing.T) {
	j, dir := jobs()["SGHMC, 3 chains, float32 true"], t.TempDir()
	j.noDraw = true
	want := j.whole(t)
	part := j.cancelAt(t, dir, 33)
	assert.Nil(t, part.Draws)
	assert.Zero(t, sizeOf(t, dir, drawsFile))
	got := j.resume(t, dir)
	sameState(t, want.State, got.State)
	assert.Nil(t, got.Draws)
}

// What a run that was killed wrote to the draws file after its last checkpoint does not count, whatever it is.
func TestResumeIgnoresDrawsAfterTheCheckpoint(t *testing.T) {
	j := jobs()["SGLD, 3 chains, float32 false"]
	want := j.whole(t)
	for name, at := range map[string]int{"before the first draw": 9, "after some": 40} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j.cancelAt(t, dir, at)
			f, err := os.OpenFile(filepath.Join(dir, drawsFile), os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.Write(bytes.Repeat([]byte("more than is still to come, and not even a multiple of eight"), 200))
			require.NoError(t, err)
			require.NoError(t, f.Close())
			sameResult(t, want, j.resume(t, dir))
			// The file is whole again: 13 draws of 3 chains with a number, 4 values and 3 statistics, and nothing more.
			assert.EqualValues(t, 13*3*8*8, sizeOf(t, dir, drawsFile))
			sameResult(t, want, j.resume(t, dir))
		})
	}
	// A draws file whose checkpoint is gone may be all that is left of a run: it stays as it is.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, drawsFile), []byte("some draws"), 0o644))
	assert.ErrorContains(t, refused(t, j, dir), "it has draws.kelvin of 10 bytes and no checkpoint.kelvin that tells of")
	text, err := os.ReadFile(filepath.Join(dir, drawsFile))
	require.NoError(t, err)
	assert.Equal(t, "some draws", string(text))
	// With a long piece of a new one, of a run that was killed before its first one was complete, it is begun anew.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "begun"), nil, 0o600))
	piece := bytes.Repeat([]byte("kelvin che"), 10_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpointFile+".new"), piece, 0o644))
	sameResult(t, want, j.resume(t, dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "the piece is somebody else's, and stays")
}

// Held updates are counted on, and drawn from, over an interruption.
func TestResumeCountsHeldUpdates(t *testing.T) {
	p := pointOf(t, layoutOf(t, infer.Shapes{"w": {}}), 0, 0)
	diverges := func(update int, chain int) bool { return update > 1 && (update+chain)%3 == 0 }
	want := ran(t, counter{diverges: diverges}, p, infer.Full(nil), infer.Options{Warmup: infer.None, Draws: 9})
	assert.EqualValues(t, 3+3, want.Held) // updates 3, 6, 9 of chain 0; 2, 5, 8 of chain 1
	dir := t.TempDir()
	for _, steps := range []int{4, 9} {
		r := ran(t, restorable{counter{diverges: diverges}}, p, infer.Full(nil),
			infer.Options{Warmup: infer.None, Draws: steps, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}})
		if steps == 9 {
			sameResult(t, want, r)
		}
	}
}

// A tensor of a state comes back in its own shape and type, with its bits. The point is a scalar site, a row of one
// chain, or has numbers that are hard to write down.
func TestCheckpointKeepsTensors(t *testing.T) {
	l := layoutOf(t, infer.Shapes{"w": {}})
	for name, p := range map[string]infer.Params{
		"one number": pointOf(t, l, 0.1),
		"one row":    {Layout: l, Flat: vec([]float64{0.1}, 1, 1)},
		"denormal":   pointOf(t, l, 5e-324, -5e-324, 1e-310),
		"large":      pointOf(t, l, -1.7976931348623157e308, 0x1p-1022),
		"half":       {Layout: l, Flat: torch.Of(vec([]float64{0.1, 65504, -6e-8}, 3, 1).T().MustTotype(gotch.Half, false))},
		"brain float": {Layout: l, Flat: torch.Of(vec([]float64{0.1, 3e38, -6e-38}, 3, 1).T().MustTotype(gotch.BFloat16,
			false))},
		"float32": {Layout: l, Flat: torch.Of(vec([]float64{0.1, 3e38, -1e-45}, 3, 1).T().MustTotype(gotch.Float,
			false))},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			c := infer.Options{Warmup: infer.None, Draws: 1, Checkpoint: &infer.Checkpoint{Dir: dir, Resume: true}}
			before, err := infertest.Run(ctx, restorable{}, p, infer.Full(nil), c)
			require.ErrorIs(t, err, context.Canceled)
			after, err := infertest.Run(ctx, restorable{}, p, infer.Full(nil), c)
			require.ErrorIs(t, err, context.Canceled)
			if diff := cmp.Diff(saved(before.State), saved(after.State)); diff != "" {
				t.Error(diff)
			}
			assert.Equal(t, floats(p.Flat), floats(after.State.Position().Flat))
		})
	}
}
