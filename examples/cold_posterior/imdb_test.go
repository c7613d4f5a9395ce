package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	assert.Equal(t, int64(8*(360/32)), r.Updates, "a tenth of the 400 is for validation")
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
