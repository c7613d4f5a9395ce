package cluster

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// attempts are two workers' attempts at one task, on a server of the test's own.
func attempts(t *testing.T) (a, b *attempt) {
	t.Helper()
	s, err := serve("127.0.0.1:0", t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
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

// The name of a checkpoint's file is the server's, and stays in the folder of the task.
func TestRestoreStaysInItsFolder(t *testing.T) {
	a, _ := attempts(t)
	a.state.Files = map[string]parts{"../outside.kelvin": {}}
	m := &mirror{attempt: a, ctx: t.Context(), dir: t.TempDir(), sizes: map[string]int64{}}
	require.ErrorContains(t, m.restore(), `checkpoint file "../outside.kelvin" is outside`)
}
