package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/stretchr/testify/require"
)

// chains are independent numbers of N(shift of the chain, 1), and more for each chain.
func chains(draws int, seed uint64, shifts ...float64) [][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]float64, len(shifts))
	for c, shift := range shifts {
		out[c] = each(draws, func(int) float64 { return shift + r.NormFloat64() })
	}
	return out
}

// Each way to fail is told, and a right run is right: chains that agree with the truth, chains apart, a chain that
// stands still, a wrong mean, a wrong standard deviation, and modes that were not told apart.
func TestJudge(t *testing.T) {
	known := truth{"x": {mean: 0, sd: 1}}
	good := chains(1000, 1, 0, 0, 0, 0)
	still := [][]float64{good[0], good[1], good[2], make([]float64, 1000)}
	apart := chains(1000, 2, 0, 0, 0, 0.5)
	far := chains(1000, 2, 0, 0, 20, 20)
	for name, c := range map[string]struct {
		x       [][]float64
		known   truth
		bimodal bool
		why     string
	}{
		"right":             {x: good, known: known},
		"apart":             {x: apart, why: "R-hat"},
		"still":             {x: still, why: "chain 3 does not move"},
		"mean":              {x: good, known: truth{"x": {mean: 0.2, sd: 1}}, why: "mean of x"},
		"sd":                {x: good, known: truth{"x": {mean: 0, sd: 1.2}}, why: "sd of x"},
		"uncertain truth":   {x: good, known: truth{"x": {0.2, 1, 0.1, 0}}},
		"modes, told":       {x: far, bimodal: true},
		"modes, not told":   {x: good, bimodal: true, why: "R-hat"},
		"not a finite mean": {x: good, known: truth{"x": {mean: math.NaN(), sd: 1}}, why: "mean of x"},
	} {
		ess, why := quantities{"x": c.x}.judge(c.known, c.bimodal)
		if c.why == "" {
			require.Empty(t, why, name)
		} else {
			require.Contains(t, why, c.why, name)
		}
		if name == "right" {
			require.InDelta(t, 4000, ess, 600) // of independent numbers, an estimate of a few percent
		}
	}
	_, why := quantities{}.judge(nil, false)
	require.Equal(t, "no number moves", why)
}

// The limits of R-hat and |z| are those that right runs pass: of 2000 runs of four chains of 100 independent draws
// at most 8 miss, where the limits promise 2 (Poisson: more than 8 has a probability of 2e-4).
// By R-hat above 1.01 alone more than 200 would.
func TestLimits(t *testing.T) {
	failed, beyond := 0, 0
	known := truth{"x": {mean: 0, sd: 1}}
	for seed := range uint64(2000) {
		q := quantities{"x": chains(100, seed, 0, 0, 0, 0)}
		if _, why := q.judge(known, false); why != "" {
			failed++
		}
		if diag.RHat(q["x"]) > maxRHat {
			beyond++
		}
	}
	require.LessOrEqual(t, failed, 8)
	require.Greater(t, beyond, 200)
	require.Equal(t, maxRHat, rhatLimit(1e6, 4, 1))
	require.Equal(t, rhatLimit(400, 4, 10), rhatLimit(5, 4, 10)) // few draws are no excuse
	require.EqualValues(t, maxZ, zLimit(2))
	require.InDelta(t, 4.892, zLimit(1000), 1e-3) // the normal quantile of 1 − 0.001/2000
}

// Medians, the number of failures, and figures that JSON cannot hold.
func TestSummarise(t *testing.T) {
	runs := []outcome{{warmup: 10, all: 100, ess: 50}, {warmup: 30, all: 400, ess: 100}, lost("no"), {warmup: 20, all: 90,
		ess: 30, why: "R-hat"}}
	r := summarise("t", "m", runs, false)
	require.Equal(t, 2, r.Failed)
	require.Equal(t, 4, r.Seeds)
	require.Equal(t, 25.0, *r.WarmupGradients) // of 10, 20, 30, ∞
	require.Equal(t, 3.5, *r.GradientsPerESS)  // of 2, 3, 4, ∞
	require.Equal(t, []string{"seed 2: no", "seed 3: R-hat"}, r.why)
	require.Nil(t, summarise("t", "m", []outcome{lost("no"), lost("no")}, false).GradientsPerESS)
	require.Nil(t, summarise("t", "m", runs, true).GradientsPerESS)
	require.True(t, math.IsInf(median([]float64{1, math.NaN(), math.NaN()}), 1))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "t", "method": "m", "seeds": 4, "failed": 2, "warmup_gradients": 25,
		"gradients_per_ess": 3.5}`, string(text))
}

// Two targets. On a, default costs 2, windows 8 and Stan 4; on b default fails, windows costs 6, Stan 2 and nutpie 3.
// So windows is 4 and 3 times the best, √12 on the geometric mean, and 2 and 3 times Stan, √6; default counts on a.
func TestStand(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	rows := []row{
		{Name: "a", Method: "default", Seeds: 20, Failed: 1, GradientsPerESS: v(2)},
		{Name: "a", Method: "windows", Seeds: 20, GradientsPerESS: v(8)},
		{Name: "a", Method: "Stan", Seeds: 20, GradientsPerESS: v(4)},
		{Name: "b", Method: "default", Seeds: 20, Failed: 2, GradientsPerESS: v(1)},
		{Name: "b", Method: "windows", Seeds: 20, GradientsPerESS: v(6)},
		{Name: "b", Method: "Stan", Seeds: 20, GradientsPerESS: v(2)},
		{Name: "b", Method: "nutpie", Seeds: 20, GradientsPerESS: v(3)},
	}
	got := stand(rows)
	require.Len(t, got, 4)
	require.Equal(t, "default", got[0].method)
	require.Equal(t, []int{1, 0}, []int{got[0].lost, got[0].slower})
	require.InDeltaSlice(t, []float64{1, 0.5}, got[0].ratios[:2], 1e-12)
	require.True(t, math.IsNaN(got[0].ratios[2])) // it fails where nutpie ran
	require.Equal(t, []int{0, 2}, []int{got[1].lost, got[1].slower})
	require.InDeltaSlice(t, []float64{math.Sqrt(12), math.Sqrt(6), 2}, got[1].ratios[:], 1e-12)
	require.Equal(t, []int{0, 1}, []int{got[2].lost, got[2].slower})
	var out bytes.Buffer
	writeTarget(&out, rows[:3], false)
	writeTarget(&out, rows[3:], false)
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, loses := range []bool{false, true, true, true, true, false, true} {
		require.Equal(t, loses, strings.HasSuffix(lines[i], "*"), lines[i])
	}
	require.NoError(t, writeStanding(&out, rows))
	require.Contains(t, out.String(), "windows  0         2                     3.46         2.45     2.00")
}

// The methods are what their names say, and every Stan program that a target names is there.
func TestNames(t *testing.T) {
	want := map[string]hmc.NUTS{"default": {}, "diagonal": {Metric: hmc.Diagonal}, "lowrank": {Metric: hmc.LowRank}}
	require.Len(t, methods, len(want))
	for _, m := range methods {
		var got hmc.NUTS
		m.apply(&got)
		require.Equal(t, want[m.name], got, m.name)
	}
	seen := map[string]bool{}
	for _, target := range targets {
		require.False(t, seen[target.name], target.name)
		seen[target.name] = true
		p := target.make(newMaker(target.name))
		text, err := stanProgram(p.stan)
		require.NoError(t, err, target.name)
		require.Contains(t, text, "model {", target.name)
		_, err = json.Marshal(p.data)
		require.NoError(t, err, target.name)
	}
	require.GreaterOrEqual(t, len(targets), 30)
}

// A flag that is wrong is an error that names it.
func TestFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"-chains 0":                   {"-chains", "0"},
		`-targets: there is no "a"`:   {"-targets", "a"},
		`-methods: there is no "b"`:   {"-methods", "b"},
		`"c" is not a flag`:           {"c"},
		"the two methods of the long": {"-truth", "x", "-methods", "default"},
	} {
		require.ErrorContains(t, run(context.Background(), append([]string{"-path", ""}, args...), &bytes.Buffer{}), want)
	}
}

// What the file of long runs holds is read back: numbers to the digits that it has, by name.
func TestTruthFile(t *testing.T) {
	file := map[string]longRuns{
		"b": {"how", map[string][4]float64{"x[2]": {1, 2, 0.5, 0.25}, "x[10]": {-1e-7, 3e5, 0.125, 0}}},
		"a": {"how else", map[string][4]float64{"y": {0, 1, 1, 1}}},
	}
	text := encode(file)
	var got map[string]longRuns
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, file, got)
	require.Less(t, strings.Index(string(text), `x[2]`), strings.Index(string(text), `x[10]`))
	require.Less(t, strings.Index(string(text), `"a"`), strings.Index(string(text), `"b"`))
	got = nil
	require.NoError(t, json.Unmarshal(stored, &got))
	for name := range got {
		_, err := choose(targets, name)
		require.NoError(t, err)
	}
	q := quantities{"one": nil}
	for i := range 100 {
		q[at("many", i)] = nil
	}
	require.Len(t, q.some(), 1+34) // every third of 100, which is more than 40
}

// A run that takes more gradients than the limit has failed, and ends soon: a chain of 2000 transitions is not made.
func TestLimit(t *testing.T) {
	chosen, err := choose(targets, "funnel")
	require.NoError(t, err)
	p, program, err := chosen[0].compile()
	require.NoError(t, err)
	o := infer.Options{Chains: 2, Warmup: 1000, Draws: 1000, Seed: 1}
	got, err := sample(context.Background(), p, program, methods[0], p.exact, 2000, o)
	require.NoError(t, err)
	require.Equal(t, "more than 2000 gradients", got.why)
}
