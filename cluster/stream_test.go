package cluster_test

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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

// The server keeps nothing of a task that has ended and whose draws Save has: neither blocks nor checkpoints.
func TestServerForgets(t *testing.T) {
	const tasks = 3
	url := make(chan string, 1)
	go func() {
		assert.NoError(t, cluster.Serve(t.Context(), "127.0.0.1:0", t.TempDir(), func(u string) { url <- u }))
	}()
	address := <-url
	nc, err := nats.Connect(address)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var kept []int
	o := infer.Options{Chains: tasks, Group: 1, Warmup: 20, Draws: 30, Observer: infer.Silent,
		Checkpoint: &infer.Checkpoint{Every: 10}, Discard: true}
	o.Save = func(string, []int, *draws.Draws) error {
		names := map[string]bool{} // of tasks that have objects
		stores := js.ObjectStores(t.Context())
		for s := range stores.Status() {
			objects, err := js.ObjectStore(t.Context(), s.Bucket())
			if err != nil {
				return err
			}
			list, err := objects.List(t.Context())
			if err != nil {
				return err
			}
			for _, object := range list {
				number, _, _ := strings.Cut(object.Name, "/")
				if _, err := strconv.Atoi(number); err == nil {
					names[number] = true
				}
			}
		}
		kept = append(kept, len(names))
		return stores.Error()
	}
	_, err = cluster.Sample(t.Context(), program(t), hmc.NUTS{}, cluster.Options{Options: o, Job: "schools", URL: address,
		Workers: 1})
	require.NoError(t, err)
	require.Len(t, kept, tasks)
	for i, n := range kept {
		assert.LessOrEqual(t, n, tasks-i, "tasks with objects when Save has those of %d before", i)
	}
	assert.Positive(t, kept[tasks-1])
}
