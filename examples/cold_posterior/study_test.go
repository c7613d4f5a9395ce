package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/killed"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallest is a study of one temperature and two seeds.
func smallest(problem, dir string) (*study, error) {
	o := testOptions(dir)
	o.problem, o.methods, o.variance, o.embedding, o.epochs = problem, true, 1, 0.05, 1
	s, err := newStudy(o)
	if err == nil {
		s.Settings.Temperatures = []float64{0.5}
	}
	return s, err
}

// studied runs it, and prints it as a table and as JSON.
func studied(problem, dir string, workers int, observer infer.Observer) (out [2]string, err error) {
	s, err := smallest(problem, dir)
	if err != nil {
		return out, err
	}
	if err := s.compute(context.Background(), options{workers: workers, observer: observer}); err != nil {
		return out, err
	}
	if err := s.plot(); err != nil {
		return out, err
	}
	var table bytes.Buffer
	if err := s.print(&table); err != nil {
		return out, err
	}
	text, err := json.Marshal(s)
	return [2]string{table.String(), string(text)}, err
}

// All methods are in the table, with scores that can be what they are called. A study that is killed in the middle, and
// goes on with another number of workers, ends with the same table to the last bit.
func TestStudyGoesOn(t *testing.T) {
	want, err := studied("digits", t.TempDir(), 1, nil)
	require.NoError(t, err)
	var s study
	require.NoError(t, json.Unmarshal([]byte(want[1]), &s))
	names := allMethods()
	require.Len(t, s.Rows, len(names))
	for i, r := range s.Rows {
		assert.Equal(t, names[i], r.Method)
		assert.Equal(t, 2, r.Scores.Repetitions)
		assert.LessOrEqual(t, r.Scores.Mean.NLL, r.Scores.Mean.Gibbs+1e-9, "%s: Jensen", r.Method)
		assert.True(t, 0 < r.Scores.Mean.Accuracy && r.Scores.Mean.Accuracy <= 1, r.Method)
		assert.Zero(t, r.Held, r.Method)
	}

	dir := t.TempDir()
	stored := func(pattern string) int {
		found, err := filepath.Glob(filepath.Join(dir, "quick", "methods-digits", pattern))
		require.NoError(t, err)
		return len(found)
	}
	killed.Once(t, "study", dir, func() bool { return stored("sghmc*.json") >= 2 })

	got, err := studied("digits", dir, 2, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 9, stored("*.png"))
	require.NoDirExists(t, filepath.Join(dir, "quick", "methods-digits", "running"))
}

// The same table is made of reviews.
func TestStudyOfReviews(t *testing.T) {
	out, err := studied("imdb", t.TempDir(), 2, nil)
	require.NoError(t, err)
	var s study
	require.NoError(t, json.Unmarshal([]byte(out[1]), &s))
	require.Len(t, s.Rows, len(allMethods()))
	require.Contains(t, out[0], "imdb: 100 cases to train with, 50 to test with")
}

// The full studies have all data, in a folder of their own, and are neither quick nor without methods.
func TestFullStudy(t *testing.T) {
	dir := t.TempDir()
	o := options{full: true, methods: true, dir: dir, problem: "imdb", seed: 1, epochs: 1, variance: 1, embedding: 0.05}
	s, err := newStudy(o)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "full", "methods-imdb"), s.dir)
	require.Equal(t, []int{360, 200, 5, 15, 27}, []int{s.Settings.Train, s.Settings.Tests, s.Settings.Seeds,
		s.Settings.Members, s.Settings.Draws}, "of the made-up reviews, of which a tenth is held out")
	require.Equal(t, int64(47_000), s.Settings.Cycle*(s.Settings.Settle+int64(s.Settings.Draws)), "60 epochs of 25,000")
	o.problem = "digits"
	s, err = newStudy(o)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "full", "methods-digits"), s.dir)
	o.quick = true
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "full is for -methods, and is not quick")
}
