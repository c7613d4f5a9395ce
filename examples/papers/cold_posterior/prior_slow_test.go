//go:build slow

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"
)

// drawn are data of a network that is itself a draw from the prior: inputs N(0, I), and labels from its probabilities.
func drawn(t *testing.T, hidden, inputs, classes, train, test int, seed uint64) *classify.Task {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := func(n int) digits.Data {
		d := digits.Data{Pixels: make([]float64, n*inputs), Labels: make([]int, n)}
		for i := range d.Pixels {
			d.Pixels[i] = rng.NormFloat64()
		}
		return d
	}
	first, rest := data(train), data(test)
	shape, err := newTask([]int{hidden}, classes, first, rest)
	require.NoError(t, err)
	streams := torch.NewStreams(seed, 1)
	truth, err := shape.Prior.Draw(&streams)
	require.NoError(t, err)
	theta, err := truth.Values()
	require.NoError(t, err)
	for _, d := range []digits.Data{first, rest} {
		for i := range d.Labels {
			z := perceptron(theta, d.Pixels[i*inputs:(i+1)*inputs], hidden, classes)
			// Gumbel's trick: the largest of z + G has the law softmax(z).
			best := math.Inf(-1)
			for k, v := range z {
				if v -= math.Log(rng.ExpFloat64()); v > best {
					best, d.Labels[i] = v, k
				}
			}
		}
	}
	k, err := newTask([]int{hidden}, classes, first, rest)
	require.NoError(t, err)
	return k
}

// Where the data come from the prior and the network, no temperature predicts better than 1: the Bayes predictive has
// the least expected log loss (Aitchison 1975). On average over data sets the NLL at T = 1 is not above that of another
// temperature, by two standard errors of the differences. The test can tell on the hot side, where it is below by as
// much; eight data sets are too few for the cold side, where the loss is flat.
func TestNoColdEffectWithDataFromThePrior(t *testing.T) {
	require.NoError(t, torch.SetThreads(1))
	const repetitions = 8
	temperatures := []float64{0.032, 1, 3.2, 10}
	s := settings{Train: 100, Batch: 50, LR: 0.03, Momentum: 0.95, Cycle: 100, Seed: 1}
	method := sampler{name: "cyclical", cyclical: true, warmup: 4, draws: 12, runs: 1, chains: 8}
	nll := map[float64][]float64{}
	for r := range repetitions {
		k := drawn(t, 10, 5, 3, s.Train, 1000, uint64(r))
		for _, temperature := range temperatures {
			c := cell{method, temperature}
			result, err := s.runCell(context.Background(), k, c, t.TempDir(), fmt.Sprint(r, temperature), 0, nil)
			require.NoError(t, err)
			nll[temperature] = append(nll[temperature], result.Lines[allChains].Mean.NLL)
			if temperature == 1 && r == 0 {
				t.Logf("%+v", *result.Simulation)
			}
		}
	}
	for _, temperature := range temperatures {
		var more []float64 // NLL than at T = 1
		for r, v := range nll[temperature] {
			more = append(more, v-nll[1][r])
		}
		mean, sd := stat.MeanStdDev(more, nil)
		se := stat.StdErr(sd, repetitions)
		t.Logf("T %g: NLL %.4f, more than at T = 1 by %.4f ± %.4f", temperature, stat.Mean(nll[temperature], nil), mean, se)
		assert.GreaterOrEqual(t, mean, -2*se)
		if temperature > 1 {
			assert.Greater(t, mean, 2*se)
		}
	}
}
