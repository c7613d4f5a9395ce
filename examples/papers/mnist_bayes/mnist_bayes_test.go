package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/mnist"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The constants of the paper for 256 pixels: Σ log σ as printed there for M3 and M1, 28.960e3 and 19.946e3. The numbers
// of parameters follow from the layers, (256 + 1)·40 + 2·(40 + 1)·40 + (40 + 1)·10.
func TestConstants(t *testing.T) {
	all, err := networks(side*side, 10)
	require.NoError(t, err)
	for name, want := range map[string]struct {
		parameters int
		widths     string
	}{"M1": {10690, "19945.7"}, "M3": {13970, "28960.4"}, "M3*": {13970, "70810.8"}} {
		assert.Equal(t, want.parameters, all[name].net.NumParams(), name)
		assert.Equal(t, want.widths, fmt.Sprintf("%.1f", all[name].logWidths()), name)
	}
}

// However large the weights, no loss of M3* is below −log(e/(e + 9)) = 1.4612, and M3 comes below it.
func TestOutputsOfM3Star(t *testing.T) {
	train, test, words, err := source("")
	require.NoError(t, err)
	p, err := newProblem(train, test, words, 50, 10, 1)
	require.NoError(t, err)
	bound := -math.Log(math.E / (math.E + 9))
	assert.InDelta(t, 1.4612, bound, 5e-5)
	below := 0
	for _, name := range []string{"M3", "M3*"} {
		n := p.networks[name]
		for seed := range uint64(20) {
			x, err := n.start(1, seed, 1)
			require.NoError(t, err)
			flat, err := torch.ToSlice[float64](x.Flat)
			require.NoError(t, err)
			for i := range flat {
				flat[i] *= 100
			}
			logp, err := logProbabilities(n, flat, p.batch["x"])
			require.NoError(t, err)
			for _, row := range logp {
				for _, v := range row {
					if name == "M3*" {
						require.GreaterOrEqual(t, -v, bound-1e-12)
					} else if -v < bound {
						below++
					}
				}
			}
		}
	}
	assert.Positive(t, below)
}

// tiny is a run of seconds.
func tiny() settings {
	s := quickSettings(1)
	s.Scored, s.Steps, s.Minimise, s.Updates = 50, 4, 20, 50
	s.Evidences, s.Rungs, s.Rounds = 1, 3, 12
	for i := range s.Curves {
		s.Curves[i].Warmup, s.Curves[i].Draws = 8, 8
	}
	return s
}

// A run that was stopped and started again ends with the numbers of one that was not.
func TestResumed(t *testing.T) {
	whole, err := compute(context.Background(), tiny(), options{dir: t.TempDir(), workers: 2})
	require.NoError(t, err)
	dir := t.TempDir()
	stops := 0
	for wait := 100 * time.Millisecond; ; wait += wait / 2 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		r, err := compute(ctx, tiny(), options{dir: dir, workers: 1})
		cancel()
		if err == nil {
			want, err := json.Marshal(whole)
			require.NoError(t, err)
			have, err := json.Marshal(r)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(have))
			break
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		stops++
	}
	require.Positive(t, stops)
	require.NoError(t, whole.draw(dir))
	require.NoError(t, whole.print(os.Stderr, dir))
	pictures, err := filepath.Glob(filepath.Join(dir, "*.png"))
	require.NoError(t, err)
	require.Len(t, pictures, 5)
}

// Parts of other images of the same number, such as those of another set in the format of MNIST, are in another folder,
// and so are those of other settings.
func TestPartsOfOtherImages(t *testing.T) {
	images := func(pixel float64, label int) mnist.Data {
		return mnist.Data{Side: 1, Pixels: []float64{0.5, pixel}, Labels: []int{1, label}}
	}
	folders := map[string]bool{}
	of := func(s settings, train, test mnist.Data) {
		dir, err := partsOf("out", s, "MNIST, 16 x 16", train, test)
		require.NoError(t, err)
		folders[dir] = true
	}
	for range 2 {
		of(tiny(), images(0, 1), images(0, 1))
	}
	require.Len(t, folders, 1, "the same")
	of(tiny(), images(0, 2), images(0, 1))
	of(tiny(), images(0.1, 1), images(0, 1))
	of(tiny(), images(0, 1), images(0, 2))
	of(quickSettings(1), images(0, 1), images(0, 1))
	require.Len(t, folders, 5)
}

// The claims are read off the curves: a minimum within, a loss above log 10 at the end, equal rates, and the evidence.
func TestClaims(t *testing.T) {
	make := func(network string, losses ...float64) *swept {
		s := &swept{curve: curve{Network: network, Data: 50}}
		for i, l := range losses {
			s.Rungs = append(s.Rungs, rung{Temperature: math.Pow(10, float64(i-1)), Test: scores{Gibbs: l}, Swapped: 0.3})
		}
		s.Rungs[len(losses)-1].Swapped = -1
		return s
	}
	minima := &descended{Test: scores{Gibbs: 1}}
	r := &results{Settings: settings{Evidences: 1}, Curves: []*swept{make("M3", 1, 0.5, 3), make("M3*", 1.5, 1.6, 2)},
		Descended: []*descended{minima, minima}, Evidence: []*weighed{{LogZ: -10}, {LogZ: -30}}}
	for _, c := range r.claims() {
		assert.True(t, c.Holds, c.Name)
	}
	r.Curves = []*swept{make("M3", 1.2, 1.3, 2), make("M3*", 1.5, 1.4, 2)}
	r.Curves[0].Rungs[0].Swapped = 0.1
	r.Evidence[1].LogZ = 0
	for _, c := range r.claims() {
		assert.False(t, c.Holds, c.Name)
	}
}
