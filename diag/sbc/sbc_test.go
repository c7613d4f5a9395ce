package sbc_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/diag/sbc"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// normal simulates θ ~ N(0, 1), y ~ N(θ, 1), whose posterior is N(y/2, 1/2), by a method that shifts its draws and
// widens their spread; and a coin of probability 0.3 that the data say nothing of.
func normal(shift, widen float64) func(context.Context, uint64) (sbc.Case, error) {
	return func(_ context.Context, seed uint64) (sbc.Case, error) {
		r := rand.New(rand.NewPCG(seed, 1))
		coin := func() float64 {
			if r.Float64() < 0.3 {
				return 1
			}
			return 0
		}
		theta := r.NormFloat64()
		y := theta + r.NormFloat64()
		c := sbc.Case{
			Truth: map[string]float64{"theta": theta, "coin": coin()},
			Draws: map[string][]float64{},
		}
		for range 250 {
			c.Draws["theta"] = append(c.Draws["theta"], y/2+math.Sqrt(0.5)*(shift+widen*r.NormFloat64()))
			c.Draws["coin"] = append(c.Draws["coin"], coin())
		}
		return c, nil
	}
}

// The exact posterior has uniform ranks, with ties too; draws that are too narrow, too wide, too high or too low are
// caught, each by its name. The spreads and shifts are such that 200 replications miss one with a probability below
// 1e-6: draws of half the width have 2 · 0.16 of the ranks beyond all draws instead of 0.02.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		shift, widen float64
		want         string
	}{
		{0, 1, ""},
		{0, 0.5, "the draws are too narrow, or depend on each other"},
		{0, 2, "the draws are too wide"},
		{0.7, 1, "the draws are too high"},
		{-0.7, 1, "the draws are too low"},
	} {
		r, err := sbc.Run(context.Background(), normal(c.shift, c.widen), sbc.Options{Seed: 1})
		require.NoError(t, err)
		require.Equal(t, 200, r.Replications())
		report, err := r.Diagnose()
		require.NoError(t, err)
		if c.want == "" {
			assert.True(t, report.OK(), "%s", report)
			continue
		}
		require.Len(t, report.Findings, 1, "%s", report)
		assert.Equal(t, "theta", report.Findings[0].Site)
		assert.Equal(t, diag.Serious, report.Findings[0].Severity)
		assert.Contains(t, report.Findings[0].Message, c.want)
		assert.Less(t, report.Findings[0].Figure, 0.001)
	}
}

// A run that ended, and whose last line was torn, goes on: it makes the replications that are missing, and has the
// ranks of a run that never ended.
func TestResume(t *testing.T) {
	o := sbc.Options{Replications: 12, Seed: 3}
	whole, err := sbc.Run(context.Background(), normal(0, 1), o)
	require.NoError(t, err)

	o.File = filepath.Join(t.TempDir(), "ranks")
	calls, broken := 0, errors.New("power cut")
	_, err = sbc.Run(context.Background(), func(ctx context.Context, seed uint64) (sbc.Case, error) {
		if calls++; calls == 6 {
			return sbc.Case{}, broken
		}
		return normal(0, 1)(ctx, seed)
	}, o)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "replication 5")
	f, err := os.OpenFile(o.File, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"theta":1`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	calls = 0
	again, err := sbc.Run(context.Background(), func(ctx context.Context, seed uint64) (sbc.Case, error) {
		calls++
		return normal(0, 1)(ctx, seed)
	}, o)
	require.NoError(t, err)
	assert.Equal(t, 7, calls)
	assert.Equal(t, whole, again)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Replications = 20
	_, err = sbc.Run(ctx, normal(0, 1), o)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "after 12 replications")
	o.Replications = 4 // fewer than the file has
	few, err := sbc.Run(ctx, normal(0, 1), o)
	require.NoError(t, err)
	assert.Equal(t, whole.Ranks["theta"][:4], few.Ranks["theta"])

	o.Seed = 4
	_, err = sbc.Run(context.Background(), normal(0, 1), o)
	require.ErrorContains(t, err, "it is of ")
}

// What cannot be ranked is an error that names the replication and the quantity.
func TestErrors(t *testing.T) {
	ctx := context.Background()
	give := func(c sbc.Case) func(context.Context, uint64) (sbc.Case, error) {
		return func(context.Context, uint64) (sbc.Case, error) { return c, nil }
	}
	one := map[string]float64{"a": 1}
	for _, c := range []struct {
		simulate func(context.Context, uint64) (sbc.Case, error)
		o        sbc.Options
		is       error
		want     string
	}{
		{nil, sbc.Options{}, draws.ErrRange, "a function that simulates"},
		{give(sbc.Case{}), sbc.Options{Draws: -1}, draws.ErrRange, "Draws -1"},
		{give(sbc.Case{}), sbc.Options{}, draws.ErrSize, "replication 0: Case.Truth has no quantities"},
		{give(sbc.Case{Truth: one}), sbc.Options{}, draws.ErrSize, `"a" has 0 draws, fewer than Options.Draws, 99`},
		{give(sbc.Case{Truth: one, Draws: map[string][]float64{"a": {math.NaN()}}}), sbc.Options{Draws: 1},
			diag.ErrNotFinite, `"a" has the truth 1 and the draw NaN`},
		{func(_ context.Context, seed uint64) (sbc.Case, error) {
			name := string(rune('a' + seed%26))
			return sbc.Case{Truth: map[string]float64{name: 1}, Draws: map[string][]float64{name: {1}}}, nil
		}, sbc.Options{Draws: 1}, draws.ErrLayout, "the quantities are"},
		{give(sbc.Case{}), sbc.Options{File: t.TempDir()}, nil, "is a folder"},
	} {
		_, err := sbc.Run(ctx, c.simulate, c.o)
		require.ErrorContains(t, err, c.want)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
	path := filepath.Join(t.TempDir(), "ranks")
	for text, want := range map[string]string{
		"hello\n": `it is of "hello"`, "hello": `it is of "hello"`, "{\"sbc\":1,": "",
		"{\"sbc\":1,\"seed\":0,\"draws\":99},": "name another file", "\x00": "name another file",
		"{\"sbc\":1,\"seed\":0,\"draws\":99}\n{\"a\":100}\n":          `the rank of "a" is 100`,
		"{\"sbc\":1,\"seed\":0,\"draws\":99}\n{\"a\":1}\n{\"b\":1}\n": `line 3 has the quantities ["b"]`,
		"{\"sbc\":1,\"seed\":0,\"draws\":99}\n[]\n":                   "line 2: json",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := sbc.Run(ctx, give(sbc.Case{}), sbc.Options{File: path})
		if want == "" { // a first line that was torn
			want = "Case.Truth has no quantities"
			text = "{\"sbc\":1,\"seed\":0,\"draws\":99}\n"
		}
		require.ErrorContains(t, err, want)
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(have), "the file stays as it was")
	}

	r := &sbc.Result{Draws: 9, Ranks: map[string][]int{"a": {3, 10}}}
	for _, c := range []struct {
		name string
		prob float64
		want string
	}{{"b", 0.95, `there is no quantity "b"`}, {"a", 1, "the probability of a band is 1"}, {"a", 0.9, "from 0 to 9"}} {
		_, err := r.Curve(c.name, c.prob)
		require.ErrorContains(t, err, c.want)
	}
}
