package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// attempts are two workers' attempts at one task, on a server of the test's own.
func attempts(t *testing.T) (a, b *attempt) {
	t.Helper()
	s, err := serve("127.0.0.1:0", t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { s.close() })
	l, err := connect(t.Context(), s.ClientURL(), "test", false, nil)
	require.NoError(t, err)
	t.Cleanup(l.nc.Close)
	k, err := l.make(t.Context(), "run", 1, 1<<20)
	require.NoError(t, err)
	one := func(name string) *attempt {
		return &attempt{worker: &worker{link: l, name: name}, bucket: k, task: task{Run: "run", Tries: 1},
			cancel: func(error) {}}
	}
	return one("a"), one("b")
}

// A worker whose task another one has taken meanwhile fails, since the checkpoint that it reads is gone, and must not
// report the task as failed: the other one works on it. Both have it for the first time, as a server may say that was
// killed in between.
func TestFailureOfALostTask(t *testing.T) {
	a, b := attempts(t)
	for i, one := range []*attempt{a, b} {
		done, err := one.take(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, done)
		require.Equal(t, i+1, one.state.Attempt)
	}
	require.ErrorIs(t, a.fail(t.Context(), jetstream.ErrObjectNotFound), errLost)
	_, err := a.bucket.keys.Get(t.Context(), a.task.key())
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
	require.NoError(t, b.fail(t.Context(), context.DeadlineExceeded))
	_, err = b.bucket.keys.Get(t.Context(), b.task.key())
	require.NoError(t, err)
}

// A block that is gone is an error after a while, and a run that is gone ends the attempt.
func TestGone(t *testing.T) {
	gone, missing := goneEvery, missingWait
	t.Cleanup(func() { goneEvery, missingWait = gone, missing })
	goneEvery, missingWait = 20*time.Millisecond, 50*time.Millisecond
	a, _ := attempts(t)
	_, err := a.bucket.checkpoints.get(t.Context(), "000000.000001.name")
	require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
	ctx, cancel := context.WithCancelCause(t.Context())
	a.cancel, a.task.AckWait = cancel, int(time.Hour)
	stop, err := a.beat(ctx, nil)
	require.NoError(t, err)
	defer stop()
	_, err = a.tasks(t.Context(), 1, 0)
	require.NoError(t, err)
	require.NoError(t, a.bucket.remove(t.Context()))
	_, err = a.take(ctx, 1)
	require.Error(t, err)
	require.ErrorIs(t, context.Cause(ctx), jetstream.ErrBucketNotFound)
}

// The worker that comes second with a result leaves none of its draws.
func TestSecondResult(t *testing.T) {
	a, b := attempts(t)
	for _, one := range []*attempt{a, b} {
		_, err := one.take(t.Context(), 1)
		require.NoError(t, err)
		o := outcome{Draws: one.block("result"), Blocks: 1}
		require.NoError(t, one.bucket.draws.put(t.Context(), o.block(0), []byte("draws")))
		require.NoError(t, one.finish(t.Context(), o))
		require.NoError(t, one.finish(t.Context(), o), "again, as where the answer was lost")
	}
	_, err := a.bucket.draws.get(t.Context(), a.block("result")+".000000")
	require.NoError(t, err)
	require.NoError(t, b.bucket.draws.open(t.Context()))
	require.EqualValues(t, 1, b.bucket.draws.stream.CachedInfo().State.Msgs)
}

// The name of a checkpoint's file is the server's, and stays in the folder of the task.
func TestRestoreStaysInItsFolder(t *testing.T) {
	a, _ := attempts(t)
	a.state.Files = map[string]parts{"../outside.kelvin": {}}
	m := &mirror{attempt: a, ctx: t.Context(), dir: t.TempDir(), sizes: map[string]int{}}
	require.ErrorContains(t, m.restore(), `checkpoint file "../outside.kelvin" is outside`)
}
