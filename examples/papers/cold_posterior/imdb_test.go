package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/examples/internal/imdb"
)

// Made-up reviews have words that only one class has: the mode of a small network tells nearly all of them, where
// guessing is right for half (a standard error of 0.035).
func TestReviews(t *testing.T) {
	var out bytes.Buffer
	o := options{problem: "imdb", json: true, seed: 1, reviews: 400, epochs: 8, variance: 1, embedding: 0.05}
	require.NoError(t, run(context.Background(), &out, o))
	var r reviewScores
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	assert.Equal(t, int(8*(360/32)), r.Updates, "a tenth of the 400 is for validation")
	require.Len(t, r.Validation, 8)
	for _, m := range r.Validation {
		assert.GreaterOrEqual(t, m.NLL, r.Validation[r.Best-1].NLL)
	}
	assert.Greater(t, r.Scores.Accuracy, 0.9)
	assert.Less(t, r.Scores.NLL, 0.4)

	o.variance = 0
	require.ErrorContains(t, run(context.Background(), &out, o), "variance 0 and embedding 0.05, all must be above 0")
	o.variance, o.data = 1, t.TempDir()
	require.ErrorContains(t, run(context.Background(), &out, o), "train_tokens_u16le_25000x100.gz")
	require.ErrorContains(t, run(context.Background(), &out, options{problem: "mnist"}),
		`problem is "mnist", it must be`)
}

// texts is a folder of so many short reviews of each part and class.
func texts(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for _, part := range []string{"train", "test"} {
		for _, class := range []string{"pos", "neg"} {
			at := filepath.Join(dir, part, class)
			require.NoError(t, os.MkdirAll(at, 0o755))
			for i := range n {
				require.NoError(t, os.WriteFile(filepath.Join(at, fmt.Sprint(i, ".txt")), []byte(class+" film"), 0o644))
			}
		}
	}
	return dir
}

// The mode alone leaves no files that a run could go on from, and the help says that it begins anew.
func TestModeSavesNothing(t *testing.T) {
	o := options{problem: "imdb", dir: filepath.Join(t.TempDir(), "none"), seed: 1, reviews: 64, epochs: 1, variance: 1,
		embedding: 0.05}
	require.NoError(t, run(context.Background(), io.Discard, o))
	require.NoDirExists(t, o.dir)
	require.Contains(t, usage, "-problem imdb without -methods, saves nothing and begins anew")
}

// A folder with too few reviews, and more reviews than there are, are errors that say how many there are. Where the
// default has more than there are, the output says so.
func TestTooFewReviews(t *testing.T) {
	four := texts(t, 4)
	for _, methods := range []bool{false, true} {
		o := options{problem: "imdb", methods: methods, dir: t.TempDir(), data: four, workers: 1, seed: 1, reviews: 10,
			epochs: 1, variance: 1, embedding: 0.05}
		require.EqualError(t, run(context.Background(), io.Discard, o),
			four+" has 8 training reviews: expected at least 10, one of which chooses the epoch")
		o.data, o.reviews, o.given = texts(t, 12), 23, map[string]bool{"reviews": true}
		require.EqualError(t, run(context.Background(), io.Discard, o), "-reviews is 23: expected from 1 to the 22 that "+
			"there are in "+o.data+" beside the 2 that are held out")
		o.data = ""
		o.reviews = 361
		require.ErrorContains(t, run(context.Background(), io.Discard, o), "-reviews is 361: expected from 1 to the 360 "+
			"that there are in the made-up data")
	}

	o := options{data: texts(t, 12), seed: 1, reviews: 22, epochs: 1, variance: 1, embedding: 0.05,
		given: map[string]bool{"reviews": true}}
	s, err := readReviews(o)
	require.NoError(t, err, "all that there are")
	require.Equal(t, []int{22, 2, 24}, []int{s.Reviews, s.Validation, s.Tests})
	require.Empty(t, s.fewer)
	o.problem, o.methods, o.given = "imdb", true, nil
	k, err := newStudy(o)
	require.NoError(t, err)
	var table bytes.Buffer
	require.NoError(t, k.print(&table))
	require.Contains(t, table.String(), "imdb: 22 cases to train with, 24 to test with")
	require.Contains(t, table.String(), "\nFewer than the 5000 training reviews that this run is made for: 22 of "+
		o.data+", beside 2 that are held out.\nFewer than the 1000 test reviews that this run is made for: there are 24.\n")
	o.quick, o.data = true, texts(t, 100)
	k, err = newStudy(o)
	require.NoError(t, err)
	require.Empty(t, k.fewer, "100 and 50 are there")

	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out, options{problem: "imdb", seed: 1, reviews: 10000, epochs: 1,
		variance: 1, embedding: 0.05}))
	require.Contains(t, out.String(), "Fewer than the 10000 training reviews that this run is made for: 360 of the "+
		"made-up data, beside 40 that are held out.\nCNN-LSTM, prior N(0, 1), 360 training reviews")
}

// A part of the test reviews has both classes, whose files come one class after the other.
func TestPartsHaveBothClasses(t *testing.T) {
	dir := texts(t, 100)
	s, err := readReviews(options{data: dir, seed: 1, reviews: 100, epochs: 1, variance: 1, embedding: 0.05})
	require.NoError(t, err)
	for _, d := range []imdb.Data{s.data[0], s.data[2].Part(0, 100)} {
		positive := 0
		for _, l := range d.Labels {
			positive += l
		}
		assert.InDelta(t, 50, positive, 5*3.5) // five standard deviations of 100 drawn from 200
	}
}
