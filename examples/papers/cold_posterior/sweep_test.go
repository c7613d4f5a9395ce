package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/killed"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	killed.Main(m, map[string]func(string) error{
		"sweep": func(dir string) error { _, err := compute(context.Background(), testOptions(dir)); return err },
		"study": func(dir string) error { _, err := studied("digits", dir, 1, nil); return err },
	})
}

func testOptions(dir string) options {
	return options{quick: true, dir: dir, workers: 2, seed: 3, every: 7}
}

// reference is the output of a quick sweep by one worker without interruption, as a table and as JSON.
var reference = sync.OnceValues(func() (out [2]string, err error) {
	dir, err := os.MkdirTemp("", "cold")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	o := testOptions(dir)
	o.workers, o.every = 1, 0
	return outputs(o)
})

// outputs runs a sweep, and prints it as a table and as JSON.
func outputs(o options) (out [2]string, err error) {
	s, err := compute(context.Background(), o)
	if err != nil {
		return out, err
	}
	var table bytes.Buffer
	if err := printTable(&table, s.Settings, s.task, s.Cells); err != nil {
		return out, err
	}
	text, err := json.Marshal(s)
	return [2]string{table.String(), string(text)}, err
}

// The output has every sampler at every temperature, with numbers that can be what they are called;
// the pictures are pictures.
func TestQuickSweep(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(dir)
	var steps []int
	o.observer = infer.ObserverFunc(func(p infer.Progress) { steps = append(steps, p.Step, p.Steps) })
	out, err := outputs(o)
	require.NoError(t, err)
	want, err := reference()
	require.NoError(t, err)
	require.Equal(t, want, out, "another number of workers")

	var s summary
	require.NoError(t, json.Unmarshal([]byte(out[1]), &s))
	require.Equal(t, quick(3), s.Settings)
	require.Len(t, s.Cells, 6)
	for _, c := range s.Cells {
		require.Equal(t, c.Temperature > 0, c.Simulation != nil)
		for name, e := range c.Lines {
			assert.LessOrEqual(t, e.Mean.NLL, e.Mean.Gibbs+1e-9, "%s: Jensen", name)
			assert.True(t, 0 < e.Mean.Accuracy && e.Mean.Accuracy <= 1, name)
			assert.Less(t, e.Mean.Brier, 2.0, name)
		}
		single := c.Lines[oneNetwork]
		assert.InDelta(t, single.Mean.NLL, single.Mean.Gibbs, 1e-12)
		assert.InDelta(t, 0, single.Mean.Epistemic, 1e-12)
		if ensembles, ok := c.Lines[lastStates]; ok { // the same networks
			assert.InDelta(t, single.Mean.NLL, ensembles.Mean.Gibbs, 1e-12)
		}
	}
	// Progress went from the first update of the sweep to the last.
	total := 0
	for _, c := range s.Settings.cells() {
		total += s.Settings.updates(c) * c.runs
	}
	require.Len(t, steps, 2*total)
	for i := range total {
		require.Equal(t, []int{i + 1, total}, steps[2*i:2*i+2])
	}

	// What is there is read, printed and drawn.
	var text [2]bytes.Buffer
	for i := range text {
		o.json = i == 1
		require.NoError(t, run(context.Background(), &text[i], o))
	}
	require.Equal(t, out[0]+"\nThe pictures are in "+filepath.Join(dir, "quick")+".\n", text[0].String())
	require.Equal(t, out[1]+"\n", text[1].String())
	for _, m := range append(columns, metric{name: "temperatures"}) {
		file, err := os.Open(filepath.Join(dir, "quick", m.name+".png"))
		require.NoError(t, err)
		image, err := png.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.Greater(t, image.Bounds().Dx(), 500)
	}
	require.NoDirExists(t, filepath.Join(dir, "quick", "running"), "nothing is left of what is done")
	require.Contains(t, out[0], "parallel SGHMC, last of 2: lowest NLL at T = ")
}

// A sweep that is killed twice in the middle of cells and then started again ends with the same output
// to the last digit.
func TestKilledSweepGoesOn(t *testing.T) {
	dir := t.TempDir()
	cells := len(quick(3).cells())
	stored := func(pattern string) int {
		found, err := filepath.Glob(filepath.Join(dir, "quick", pattern))
		require.NoError(t, err)
		return len(found)
	}
	for _, least := range []int{0, 2} {
		killed.Once(t, "sweep", dir, func() bool {
			return stored("c*.json") >= least && stored("running/*/run-0/checkpoint.kelvin") > 0
		})
	}
	done := stored("c*.json")
	require.Less(t, done, cells)

	got, err := outputs(testOptions(dir))
	require.NoError(t, err)
	want, err := reference()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Readings after the checkpoint that a run goes on from come again: those in the file are dropped.
func TestReadingsAfterTheCheckpointAreDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "temperatures.json")
	stored := []infer.Reading{{Updates: 20}, {Updates: 40, Temperature: 0.1}, {Updates: 60}}
	require.NoError(t, classify.WriteJSON(path, stored))
	train, test, err := digits.Split(60)
	require.NoError(t, err)
	k, err := newTask([]int{4}, digits.Classes, train, test)
	require.NoError(t, err)
	for resumed, want := range map[int][]infer.Reading{0: {}, 40: {{Updates: 20}, {Updates: 40, Temperature: 0.1}},
		59: {{Updates: 20}, {Updates: 40, Temperature: 0.1}}} {
		m, err := newThermometer(k, func(int) bool { return false }, path)
		require.NoError(t, err)
		for step := resumed + 1; step < 100; step++ {
			m.Observe(infer.Progress{Step: step, Resumed: resumed})
		}
		require.NoError(t, m.Err)
		require.Equal(t, want, m.Readings)
	}
}

// A sweep that is cancelled saves itself, says so, and goes on too.
func TestCancelledSweepGoesOn(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(dir)
	for _, stop := range []int{15, 75, 130} {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		o.every = 1000 // so that checkpoints are those of the cancellation
		resumed := 0
		o.observer = infer.ObserverFunc(func(p infer.Progress) {
			resumed = max(resumed, p.Resumed)
			if n++; n == stop {
				cancel()
			}
		})
		_, err := compute(ctx, o)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, stop > 15, resumed > 0, "a run went on from a checkpoint")
		cancel()
	}
	o.observer = nil
	got, err := outputs(o)
	require.NoError(t, err)
	want, err := reference()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(dir)
	s := &grid.Grid[*result]{Settings: quick(3), Dir: filepath.Join(dir, "quick")}
	require.NoError(t, os.MkdirAll(s.Dir, 0o755))
	require.NoError(t, s.Claim())
	require.NoError(t, s.Claim(), "again")

	o.seed = 4
	err := run(context.Background(), io.Discard, o)
	require.ErrorContains(t, err,
		"other settings: seed is 3 there and 4 here: remove the folder, or choose another with -dir")
	require.ErrorContains(t, err, s.Dir)

	fewer := quick(3)
	fewer.Temperatures = []float64{0.1}
	s.Settings = fewer
	require.ErrorContains(t, s.Claim(), "temperatures is [0.1,1] there and [0.1] here")

	o.seed = 3
	cell := filepath.Join(s.Dir, "constant-0.json")
	require.NoError(t, os.WriteFile(cell, []byte("{"), 0o644))
	require.ErrorContains(t, run(context.Background(), io.Discard, o), cell+": unexpected end of JSON input: remove it")

	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "settings.json"), []byte("{}"), 0o644))
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "batch is missing there")

	o.workers = 0
	require.EqualError(t, run(context.Background(), io.Discard, o), "workers is 0, it must be at least 1")
}

// The words on the cold-posterior effect.
func TestColdEffect(t *testing.T) {
	s := settings{Temperatures: []float64{0.1, 1}}
	at := func(temperature, nll, se float64) *result {
		return &result{Sampler: "a", Temperature: temperature,
			Lines: map[string]estimate{"b": {Mean: classify.Metrics{NLL: nll}, SE: classify.Metrics{NLL: se}}}}
	}
	c := curve{sampler: "a", line: "b", title: "it"}
	assert.Equal(t, "it: lowest NLL at T = 0.1, 0.2000 ± 0.0300; at T = 1 it is higher by 0.1000 ± 0.0500",
		coldEffect(c, s, []*result{at(0.1, 0.2, 0.03), at(1, 0.3, 0.04)}))
	assert.Equal(t, "it: lowest NLL at T = 1, 0.1000 ± 0.0400",
		coldEffect(c, s, []*result{at(0.1, 0.2, 0.03), at(1, 0.1, 0.04)}))
}
