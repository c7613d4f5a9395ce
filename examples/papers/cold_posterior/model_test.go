package main

import (
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// perceptron is a network with one hidden layer in plain Go, with the parameters in the order of the layout: biases
// before weights.
func perceptron(theta, x []float64, hidden, classes int) []float64 {
	layer := func(x []float64, out int) []float64 {
		y := append([]float64(nil), theta[:out]...)
		theta = theta[out:]
		for i := range y {
			for _, v := range x {
				y[i] += theta[0] * v
				theta = theta[1:]
			}
		}
		return y
	}
	h := layer(x, hidden)
	for i := range h {
		h[i] = max(h[i], 0)
	}
	return layer(h, classes)
}

// The log posterior and the logits of the test data against sums in plain Go, at two points at once.
// float32 has 7 digits.
func TestModel(t *testing.T) {
	train, test, err := digits.Split(60)
	require.NoError(t, err)
	const hidden = 5
	k, err := newTask([]int{hidden}, digits.Classes, train, test)
	require.NoError(t, err)
	require.Equal(t, (64+1)*hidden+(hidden+1)*10, k.Net.NumParams())
	streams := torch.NewStreams(1, 2)
	p, err := k.Prior.Draw(&streams)
	require.NoError(t, err)
	theta, err := p.Values()
	require.NoError(t, err)
	p, err = p.To(torch.CPU, dtype)
	require.NoError(t, err)
	g, err := infer.NewGradient(infer.Sum(k.LogPosterior, 1))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, k.Train, 0)
	require.NoError(t, err)
	d := k.Net.NumParams()
	for c := range 2 {
		at := theta[c*d : (c+1)*d]
		want := 0.0
		for i, label := range train.Labels {
			z := perceptron(at, train.Pixels[i*64:(i+1)*64], hidden, 10)
			sum := 0.0
			for _, v := range z {
				sum += math.Exp(v)
			}
			want += (z[label] - math.Log(sum)) / 60
		}
		for _, v := range at {
			want -= (0.5*v*v + 0.5*math.Log(2*math.Pi)) / 60
		}
		assert.InEpsilon(t, want, e.Values[c], 1e-5)
		rows, err := k.Logits(at)
		require.NoError(t, err)
		require.Len(t, rows, test.Len())
		for i, row := range rows[:50] {
			assert.InDeltaSlice(t, perceptron(at, test.Pixels[i*64:(i+1)*64], hidden, 10), row, 1e-4)
		}
	}
}

// Starts are of their own for every chain, and the same every time.
func TestStarts(t *testing.T) {
	train, test, err := digits.Split(60)
	require.NoError(t, err)
	k, err := newTask([]int{4}, digits.Classes, train, test)
	require.NoError(t, err)
	values := func(seed uint64) []float64 {
		p, err := k.Starts(start, seed, 2)
		require.NoError(t, err)
		require.NoError(t, p.Check())
		v, err := p.Values()
		require.NoError(t, err)
		return v
	}
	one := values(1)
	d := len(one) / 2
	assert.Equal(t, one, values(1))
	assert.NotEqual(t, one, values(2))
	assert.NotEqual(t, one[:d], one[d:])
}
