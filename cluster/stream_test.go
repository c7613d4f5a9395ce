package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/cluster"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Draws that go to disk as they come are those of the local run, and with Discard none come back. 30,000 draws of 18
// numbers are more than a block.
func TestSave(t *testing.T) {
	p := program(t)
	o := infer.Options{Chains: 2, Warmup: 50, Draws: 30_000, Seed: 4, Observer: infer.Silent}
	want, err := infer.Sample(t.Context(), p, hmc.NUTS{}, o)
	require.NoError(t, err)
	sink := &store.ZarrSink{Path: filepath.Join(t.TempDir(), "draws.zarr")}
	blocks := 0
	o.Discard, o.Save = true, func(run string, from []int, block *draws.Draws) error {
		blocks++
		return sink.Save(run, from, block)
	}
	got, err := cluster.Sample(t.Context(), p, hmc.NUTS{}, cluster.Options{Options: o, Job: "schools", Workers: 2})
	require.NoError(t, err)
	require.Nil(t, got)
	require.NoError(t, sink.Close())
	assert.Greater(t, blocks, 2, "tasks")
	saved, err := store.Open(sink.Path)
	require.NoError(t, err)
	identical(t, want, saved.Posterior)
	assert.Equal(t, want.Attrs(), saved.Posterior.Attrs())
}

// Cells of a sweep have their own Save, beside the draws that come back.
func TestSaveOfCells(t *testing.T) {
	p := program(t)
	saved := make([]*draws.Draws, 2)
	var cells []cluster.Cell
	for i, temperature := range []float64{1, 0.5} {
		cells = append(cells, cluster.Cell{Program: p, Method: sghmc(temperature), Params: temperature,
			Save: func(run string, from []int, block *draws.Draws) error {
				assert.Equal(t, []int{0, 0}, from)
				saved[i] = block
				return nil
			}})
	}
	o := cluster.Options{Options: infer.Options{Chains: 2, Warmup: 20, Draws: 30}, Job: "tempered"}
	all, err := cluster.Sweep(t.Context(), cells, o)
	require.NoError(t, err)
	for i := range cells {
		identical(t, all[i], saved[i])
	}
	o.Save = cells[0].Save
	_, err = cluster.Sweep(t.Context(), cells, o)
	var field *infer.FieldError
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "Save", field.Field)
}

// A Save that fails ends the run with its error, and so does one that panics.
func TestSaveFails(t *testing.T) {
	full := errors.New("the disk is full")
	o := cluster.Options{Options: infer.Options{Warmup: 10, Draws: 10}, Job: "schools"}
	o.Save = func(string, []int, *draws.Draws) error { return full }
	_, err := cluster.Sample(t.Context(), program(t), hmc.NUTS{}, o)
	require.ErrorIs(t, err, full)
	o.Save = func(string, []int, *draws.Draws) error { panic(full) }
	_, err = cluster.Sample(t.Context(), program(t), hmc.NUTS{}, o)
	var panicked *infer.PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorIs(t, err, full)
}

// served is a server of this process, and a connection to it.
func served(t *testing.T) (address string, nc *nats.Conn) {
	t.Helper()
	url, dir, ended := make(chan string, 1), t.TempDir(), make(chan struct{})
	t.Cleanup(func() { <-ended }) // before the folder goes
	go func() {
		defer close(ended)
		assert.NoError(t, cluster.Serve(t.Context(), "127.0.0.1:0", dir, func(u string) { url <- u }))
	}()
	address = <-url
	nc, err := nats.Connect(address)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return address, nc
}

// The server keeps nothing of a task that has ended and whose draws Save has: neither draws nor checkpoints.
func TestServerForgets(t *testing.T) {
	const tasks = 3
	address, nc := served(t)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	left := map[string][]int{} // of how many tasks there are messages when Save is called
	o := infer.Options{Chains: tasks, Group: 1, Warmup: 20, Draws: 300, Observer: infer.Silent,
		Checkpoint: &infer.Checkpoint{Every: 10}, Discard: true}
	o.Save = func(string, []int, *draws.Draws) error {
		streams := js.ListStreams(t.Context())
		for s := range streams.Info() {
			kind, pile := strings.CutPrefix(s.Config.Name, "KELVIN_")
			kind, _, cut := strings.Cut(kind, "_")
			if !pile || !cut {
				continue
			}
			stream, err := js.Stream(t.Context(), s.Config.Name)
			if err != nil {
				return err
			}
			info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(">"))
			if err != nil {
				return err
			}
			have := map[string]bool{}
			for subject := range info.State.Subjects { // kelvin.pile.KIND.run.task.attempt.name.chunk
				have[strings.Split(subject, ".")[4]] = true
			}
			left[kind] = append(left[kind], len(have))
		}
		return streams.Err()
	}
	_, err = cluster.Sample(t.Context(), program(t), hmc.NUTS{}, cluster.Options{Options: o, Job: "schools", URL: address,
		Workers: 1})
	require.NoError(t, err)
	for _, kind := range []string{"DRAWS", "CHECKPOINTS"} {
		require.Len(t, left[kind], tasks, kind)
		for i, n := range left[kind] {
			assert.LessOrEqual(t, n, tasks-i, "%s: tasks when Save has those of %d before", kind, i)
		}
	}
	for _, n := range left["DRAWS"] {
		assert.Positive(t, n)
	}
}

// Workers tell how far they are, a few times a second.
func TestProgress(t *testing.T) {
	address, nc := served(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last int
	_, err := nc.Subscribe("kelvin.events.>", func(m *nats.Msg) {
		var e struct {
			Kind        string
			Step, Steps int
		}
		assert.NoError(t, json.Unmarshal(m.Data, &e))
		if e.Kind == "progress" && e.Step > last && last > 0 {
			cancel() // two that differ are enough
		}
		last = max(last, e.Step)
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	o := infer.Options{Chains: 1, Draws: 1_000_000, Thin: 10_000, Observer: infer.Silent}
	_, err = cluster.Sample(ctx, program(t), hmc.NUTS{}, cluster.Options{Options: o, Job: "schools", URL: address,
		Workers: 1})
	require.ErrorIs(t, err, context.Canceled)
}
