package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/stretchr/testify/require"
)

// What is judged of a network with tanh is the same for its twins, with units in another order and with other signs,
// whose logits are the same; single weights are not.
func TestInvariants(t *testing.T) {
	mlp := nn.MLP{Sizes: []int{2, 3, 1}, Activation: nn.Tanh{}}
	task, err := newTask(quickReference, mlp, 3, 1)
	require.NoError(t, err)
	start, err := task.starts(1)
	require.NoError(t, err)
	flat, err := start.Values()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range flat {
		flat[i] += rng.NormFloat64() // biases start at 0
	}
	twin := slices.Clone(flat)
	site := func(name string) int { s, _ := start.Layout.Site(name); return s.Offset }
	in, bias, out := site("0.weight"), site("0.bias"), site("2.weight")
	for to, from := range []int{2, 0, 1} {
		sign := []float64{1, -1, -1}[to]
		twin[in+2*to], twin[in+2*to+1] = sign*flat[in+2*from], sign*flat[in+2*from+1]
		twin[bias+to], twin[out+to] = sign*flat[bias+from], sign*flat[out+from]
	}
	require.NotEqual(t, flat, twin)
	both, err := infer.NewParams(start.Layout, append(slices.Clone(flat), twin...))
	require.NoError(t, err)
	p, err := task.network(both)(task.test.at)
	require.NoError(t, err)
	require.InDeltaSlice(t, p.logits[0], p.logits[1], 1e-12)
	one, two := invariants(start.Layout, flat), invariants(start.Layout, twin)
	for name, v := range one {
		require.InDelta(t, v, two[name], 1e-12, name)
	}
}

// A small run of the reference on two seeds: NUTS is the first row, which is not above itself, and distances of
// probabilities are within their bounds. What counts as converged needs predictions and invariants.
func TestReference(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, run(context.Background(), &text,
		options{json: true, quick: true, reference: true, out: t.TempDir(), seed: 1, seeds: 2, workers: 2, units: 3}))
	var sum referenceSummary
	require.NoError(t, json.Unmarshal(text.Bytes(), &sum))
	require.Equal(t, 13, sum.Parameters)
	require.Len(t, sum.Rows, 1+len(compared))
	require.Zero(t, sum.Rows[0].Excess.Mean)
	for _, r := range sum.Rows {
		require.Greater(t, r.Test.Mean, 0.0, r.Title)
		require.Less(t, r.Test.Mean, 1.0, r.Title)
	}
	for _, s := range sum.Seeds {
		require.Greater(t, s.Convergence.Predictions, 0.9)
		require.Len(t, s.Convergence.Invariants, 6)
	}
	require.False(t, convergence{Predictions: 1.02}.converged())
	require.False(t, convergence{Predictions: 1, Invariants: map[string]float64{"a": 1.02}}.converged())
	require.True(t, convergence{Predictions: 1.002, Invariants: map[string]float64{"a": 1.001}}.converged())
}
