package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logs is [case][class] of the logarithms of the probabilities of class 0 and 1.
func logs(p ...float64) (rows [][]float64) {
	for _, v := range p {
		rows = append(rows, []float64{math.Log(v), math.Log1p(-v)})
	}
	return rows
}

// Two networks, two cases, two classes, by hand: averaged probabilities of class 0 are 0.7 and 0.3, the labels 0 and 0.
func TestScore(t *testing.T) {
	m, err := classify.Score([][][]float64{logs(0.9, 0.2), logs(0.5, 0.4)}, []int{0, 0})
	require.NoError(t, err)
	entropy := func(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log(1-p) }
	single := (entropy(0.9) + entropy(0.2) + entropy(0.5) + entropy(0.4)) / 4
	assert.InDelta(t, -(math.Log(0.7)+math.Log(0.3))/2, m.NLL, 1e-12)
	assert.InDelta(t, -(math.Log(0.9)+math.Log(0.2)+math.Log(0.5)+math.Log(0.4))/4, m.Gibbs, 1e-12)
	assert.InDelta(t, 0.5, m.Accuracy, 1e-12)
	assert.InDelta(t, (2*0.3*0.3+2*0.7*0.7)/2, m.Brier, 1e-12)
	assert.InDelta(t, 0.2, m.ECE, 1e-12, "confidence 0.7, half are right")
	assert.InDelta(t, single, m.Aleatoric, 1e-12)
	assert.InDelta(t, entropy(0.3)-single, m.Epistemic, 1e-12)
}

// The standard errors: of a mean, and the jackknife's, which for a score that is a mean over chains is the same.
func TestStandardErrors(t *testing.T) {
	labels := []int{0}
	groups := [][][][]float64{{logs(0.9)}, {logs(0.5)}, {logs(0.4)}, {logs(0.7)}}
	e, err := repeated(groups, labels)
	require.NoError(t, err)
	x := []float64{-math.Log(0.9), -math.Log(0.5), -math.Log(0.4), -math.Log(0.7)}
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / 4
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	want := math.Sqrt(square / 3 / 4)
	assert.InDelta(t, mean, e.Mean.NLL, 1e-12)
	assert.InDelta(t, want, e.SE.NLL, 1e-12)
	assert.Equal(t, [2]int{1, 4}, [2]int{e.Networks, e.Repetitions})

	p, err := pooled(groups, labels)
	require.NoError(t, err)
	assert.InDelta(t, -math.Log((0.9+0.5+0.4+0.7)/4), p.Mean.NLL, 1e-12)
	assert.InDelta(t, mean, p.Mean.Gibbs, 1e-12)
	assert.InDelta(t, want, p.SE.Gibbs, 1e-12)
	assert.Equal(t, [2]int{4, 1}, [2]int{p.Networks, p.Repetitions})
}

// readings of K chains at temperature T: kinetic ones of the law of momenta N(0, heat·T), configurational
// ones of mean cold·T.
func readings(rng *rand.Rand, layout *infer.Layout, n, chains int, temperature, heat,
	cold float64) (all []infer.Reading) {
	for range n {
		r := infer.Reading{Temperature: temperature}
		for range chains {
			var kinetic, configurational []float64
			for _, site := range layout.Sites {
				sum := 0.0
				for range site.Size {
					z := rng.NormFloat64()
					sum += z * z / float64(site.Size)
				}
				kinetic = append(kinetic, heat*temperature*sum)
				configurational = append(configurational, temperature*(cold+0.1*rng.NormFloat64()))
			}
			r.Kinetic, r.Configurational = append(r.Kinetic, kinetic), append(r.Configurational, configurational)
		}
		all = append(all, r)
	}
	return all
}

// Exact simulation passes; hot momenta, and cold parameters, are found.
func TestJudge(t *testing.T) {
	layout, err := infer.NewLayout(infer.Shapes{"a": {4}, "b": {10, 30}})
	require.NoError(t, err)
	const T = 0.002
	of := func(heat, cold float64) *classify.Simulation {
		rng := rand.New(rand.NewPCG(1, 2))
		s, err := classify.Judge(layout, T, [][]infer.Reading{readings(rng, layout, 20, 4, T, heat, cold),
			readings(rng, layout, 20, 4, T, heat, cold)})
		require.NoError(t, err)
		return s
	}
	s := of(1, 1)
	assert.Equal(t, 2*20*4*2, s.Readings)
	assert.InDelta(t, 0.99, s.Inside, 4*math.Sqrt(0.99*0.01/320))
	assert.InDelta(t, 1, s.Kinetic, 4*math.Sqrt(2/(160*304.0)))
	assert.InDelta(t, 1, s.Configurational, 4*0.1*300/304/math.Sqrt(160))
	assert.InEpsilon(t, 0.1*300/304/math.Sqrt(160), s.SE, 1, "of 8 chains")
	assert.Equal(t, "none", s.Worst, s.Findings)

	s = of(1.3, 1)
	assert.InDelta(t, 1.3, s.Kinetic, 0.05)
	assert.Equal(t, "serious", s.Worst)
	assert.Contains(t, fmt.Sprint(s.Findings), "momenta are hotter")

	s = of(1, 0.5)
	assert.InDelta(t, 0.5, s.Configurational, 0.05)
	assert.Contains(t, fmt.Sprint(s.Findings), "parameters are colder")
}
