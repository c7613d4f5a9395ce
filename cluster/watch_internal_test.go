package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/dist"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/ppl"
)

// A run whose task, stream, or server's disk is gone ends, with an error that names it; so does one whose result a
// stranger has written. No worker is there, and the context does not end.
func TestLoss(t *testing.T) {
	program, err := ppl.Compile(func(c *ppl.Ctx) { c.Sample("x", dist.Normal(0, 1)) }, nil)
	require.NoError(t, err)
	look, failing, wait := lookEvery, failingFor, lookWait
	t.Cleanup(func() { lookEvery, failingFor, lookWait = look, failing, wait })
	lookEvery, failingFor, lookWait = 100*time.Millisecond, 300*time.Millisecond, time.Second
	cases := losses()
	for _, c := range cases {
		dir := t.TempDir()
		s, err := serve("127.0.0.1:0", dir)
		require.NoError(t, err)
		nc, err := nats.Connect(s.ClientURL())
		require.NoError(t, err)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := Sample(t.Context(), program, hmc.NUTS{}, Options{Job: "none", URL: s.ClientURL(),
				Options: infer.Options{Chains: 2, Warmup: 10, Draws: 10}})
			ended <- err
		}()
		require.NoError(t, c.do(t.Context(), js, submitted(t, js, 2), dir), c.name)
		err = <-ended
		require.ErrorContains(t, err, c.want, c.name)
		if c.name != "forged" {
			require.ErrorAs(t, err, new(*lostError), c.name)
		}
		nc.Close()
		s.close()
	}
	t.Logf("seen: %d losses noticed", len(cases)-1)
}

// submitted waits until a run's tasks are on the server, and returns its name.
func submitted(t *testing.T, js jetstream.JetStream, tasks uint64) (run string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := js.Stream(t.Context(), tasksStream)
		if err != nil || s.CachedInfo().State.Msgs < tasks {
			return false
		}
		for name := range js.KeyValueStoreNames(t.Context()).Name() {
			run = name[len(bucketPrefix):]
		}
		return run != ""
	}, 20*time.Second, 20*time.Millisecond)
	return run
}

// loss is what happens on a server, and what a client says of it.
type loss struct {
	name, want string
	do         func(ctx context.Context, js jetstream.JetStream, run, dir string) error
}

func losses() []loss {
	return []loss{
		{"bucket", "no stream KV_KELVIN_", func(ctx context.Context, js jetstream.JetStream, run, _ string) error {
			return js.DeleteKeyValue(ctx, bucketPrefix+run)
		}},
		{"objects", "no stream OBJ_KELVIN_", func(ctx context.Context, js jetstream.JetStream, run, _ string) error {
			return js.DeleteObjectStore(ctx, bucketPrefix+run)
		}},
		{"draws", "no stream KELVIN_DRAWS_", func(ctx context.Context, js jetstream.JetStream, run, _ string) error {
			return js.DeleteStream(ctx, "KELVIN_DRAWS_"+run)
		}},
		{"tasks", "no stream KELVIN_TASKS", func(ctx context.Context, js jetstream.JetStream, _, _ string) error {
			return js.DeleteStream(ctx, tasksStream)
		}},
		{"messages", "neither task 0 nor its result", func(ctx context.Context, js jetstream.JetStream, _, _ string) error {
			s, err := js.Stream(ctx, tasksStream)
			if err == nil {
				err = s.Purge(ctx)
			}
			return err
		}},
		{"disk", "the server answers and keeps nothing", func(_ context.Context, _ jetstream.JetStream, _, dir string) error {
			return os.RemoveAll(dir)
		}},
		{"forged", "is not signed", func(ctx context.Context, js jetstream.JetStream, run, _ string) error {
			kv, err := js.KeyValue(ctx, bucketPrefix+run)
			if err == nil {
				_, err = kv.Create(ctx, "result.000000", []byte(`{"draws": "x", "lengths": [10]}`))
			}
			return err
		}},
	}
}
