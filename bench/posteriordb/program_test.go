package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/bench/internal/posteriors"
	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
)

const earnings = "earnings-logearn_interaction"

// write writes a value as JSON, or as JSON in a zip, into a folder of the database.
func write(t *testing.T, value any, parts ...string) {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	file := filepath.Join(parts...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	if inside, ok := strings.CutSuffix(file, ".zip"); ok {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create(filepath.Base(inside))
		require.NoError(t, err)
		_, err = w.Write(raw)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		raw = b.Bytes()
	}
	require.NoError(t, os.WriteFile(file, raw, 0o644))
}

// tiny is a database with one posterior: made-up data, and independent draws from its posterior in closed form. With
// flat beta and sigma, sums of squares S = |y − X b|², b = (XᵀX)⁻¹ Xᵀy, and k columns,
//
//	S/sigma² ~ χ²_{n−k−1},  beta | sigma ~ N(b, sigma² (XᵀX)⁻¹)
func tiny(t *testing.T, change func(draw map[string]float64)) string {
	t.Helper()
	dir, n, k := t.TempDir(), 25, 4
	rng := rand.New(rand.NewPCG(3, 4))
	earn, height, male := make([]float64, n), make([]float64, n), make([]float64, n)
	x, y := mat.NewDense(n, k, nil), mat.NewVecDense(n, nil)
	for i := range n {
		height[i], male[i] = 66+4*rng.NormFloat64(), float64(i%2)
		logEarn := 8 + 0.02*height[i] + 0.3*male[i] + 0.8*rng.NormFloat64()
		earn[i] = math.Exp(logEarn)
		x.SetRow(i, []float64{1, height[i], male[i], height[i] * male[i]})
		y.SetVec(i, logEarn)
	}
	var b, residual mat.VecDense
	var gram mat.Dense
	var chol mat.Cholesky
	var root mat.TriDense
	require.NoError(t, b.SolveVec(x, y))
	residual.MulVec(x, &b)
	residual.SubVec(y, &residual)
	gram.Mul(x.T(), x)
	require.True(t, chol.Factorize(mat.NewSymDense(k, gram.RawMatrix().Data)))
	chol.UTo(&root)
	chains := make([]map[string][]float64, 10)
	for c := range chains {
		chains[c] = map[string][]float64{}
		for range 1000 {
			chi2 := 0.0
			for range n - k - 1 {
				z := rng.NormFloat64()
				chi2 += z * z
			}
			sigma := math.Sqrt(mat.Dot(&residual, &residual) / chi2)
			noise := mat.NewVecDense(k, nil)
			for i := range k {
				noise.SetVec(i, sigma*rng.NormFloat64())
			}
			var step mat.VecDense
			require.NoError(t, step.SolveVec(&root, noise))
			draw := map[string]float64{"sigma": sigma}
			for j := range k {
				draw[fmt.Sprintf("beta[%d]", j+1)] = b.AtVec(j) + step.AtVec(j)
			}
			change(draw)
			for name, v := range draw {
				chains[c][name] = append(chains[c][name], v)
			}
		}
	}
	database := filepath.Join(dir, "posterior_database")
	write(t, map[string]any{"name": earnings, "data_name": "earnings", "reference_posterior_name": earnings}, database,
		"posteriors", earnings+".json")
	write(t, map[string]any{"N": n, "earn": earn, "height": height, "male": male}, database, "data", "data",
		"earnings.json.zip")
	write(t, chains, database, "reference_posteriors", "draws", "draws", earnings+".json.zip")
	return dir
}

func program(args ...string) (status int, out, messages string) {
	var o, m bytes.Buffer
	status = run(context.Background(), args, &o, &m)
	return status, o.String(), m.String()
}

// The whole program agrees with a posterior in closed form, and prints the JSON that other programs read.
func TestProgramAgreesWithExactDraws(t *testing.T) {
	dir := tiny(t, func(map[string]float64) {})
	status, out, messages := program("-path", dir, "-models", earnings, "-warmup", "400", "-draws", "600", "-json")
	require.Zero(t, status, messages)
	require.Empty(t, messages)
	var got map[string][]map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, []string{"posteriors"}, slices.Collect(maps.Keys(got)))
	require.Len(t, got["posteriors"], 1)
	r := got["posteriors"][0]
	require.ElementsMatch(t,
		[]string{"name", "seed", "max_z_mean", "max_z_sd", "max_rhat", "min_ess_bulk", "divergences", "gradients", "seconds"},
		slices.Collect(maps.Keys(r)))
	assert.Equal(t, earnings, r["name"])
	for _, z := range []string{"max_z_mean", "max_z_sd"} {
		assert.Greater(t, r[z], 0.0)
		assert.Less(t, r[z], 4.0)
	}
	assert.Greater(t, r["gradients"], 4.0*(400+600))
}

// A reference whose sigma is a fifth greater is found out, with the parameter's name and status 1. The path may be the
// inner folder, and in the environment.
func TestProgramFindsADifference(t *testing.T) {
	dir := tiny(t, func(draw map[string]float64) { draw["sigma"] *= 1.2 })
	t.Setenv("POSTERIORDB", filepath.Join(dir, "posterior_database"))
	status, out, messages := program("-models", earnings, "-warmup", "400", "-draws", "600", "-chains", "4")
	require.Equal(t, 1, status)
	assert.Contains(t, out, "missed")
	assert.Contains(t, messages, earnings+" misses its mark with seed 1: mean of sigma ")
	assert.NotContains(t, messages, "beta")
}

// What is missing or wrong is named.
func TestProgramErrors(t *testing.T) {
	t.Setenv("POSTERIORDB", "")
	dir := tiny(t, func(map[string]float64) {})
	in := func(parts ...string) string {
		return filepath.Join(append([]string{dir, "posterior_database"}, parts...)...)
	}
	fails := func(args []string, want ...string) {
		t.Helper()
		status, _, messages := program(args...)
		assert.Equal(t, 1, status)
		for _, w := range want {
			assert.Contains(t, messages, w)
		}
	}
	fails(nil, "-path", "POSTERIORDB")
	fails([]string{"-path", t.TempDir()}, "not a checkout of posteriordb")
	fails([]string{"-path", dir, "-models", "x"}, `no model for "x"`)
	fails([]string{"-path", dir, "more"}, `"more" is not a flag`)
	fails([]string{"-path", dir, "-chains", "0"}, "-chains 0")
	status, _, messages := program("-nothing")
	assert.Equal(t, 2, status)
	assert.Contains(t, messages, "-nothing")

	only := []string{"-path", dir, "-models", earnings}
	fails([]string{"-path", dir, "-models", "arK-arK"}, filepath.Join("posteriors", "arK-arK.json"))
	write(t, map[string]any{"N": 2, "earn": []any{1.5, nil}}, in("data", "data", "earnings.json.zip"))
	fails(only, `data earnings: "earn" has no value at index 1`)
	write(t, map[string]any{"N": 2, "earn": []any{1.5, 0}}, in("data", "data", "earnings.json"))
	fails(only, `"earn" has 0 at index 1`) // a file that is not zipped comes first
	write(t, map[string]any{"N": 2, "earn": []any{1.5, 2}}, in("data", "data", "earnings.json"))
	fails(only, `there is no "height"`)
	require.NoError(t, os.WriteFile(in("data", "data", "earnings.json"), []byte("{"), 0o644))
	fails(only, "earnings.json: unexpected end")
	require.NoError(t, os.Remove(in("data", "data", "earnings.json")))
	require.NoError(t, os.WriteFile(in("data", "data", "earnings.json.zip"), []byte("no zip"), 0o644))
	fails(only, "earnings.json.zip", "not a valid zip")
	require.NoError(t, os.Remove(in("data", "data", "earnings.json.zip")))
	fails(only, filepath.Join("data", "data", "earnings.json"), "nor is there earnings.json.zip")
	write(t, map[string]any{"N": 2}, in("data", "data", "earnings.json"))
	write(t, []any{map[string]any{"a": []float64{1, 2}}, map[string]any{"a": []float64{1}}},
		in("reference_posteriors", "draws", "draws", earnings+".json.zip"))
	fails(only, "chain 2 has 1 draws of a")
	require.NoError(t, os.RemoveAll(in("reference_posteriors")))
	fails(only, "reference_posteriors")
	write(t, map[string]any{"data_name": "earnings", "reference_posterior_name": nil}, in("posteriors", earnings+".json"))
	fails(only, "no reference draws")
}

func TestList(t *testing.T) {
	status, out, _ := program("-list")
	require.Zero(t, status)
	require.Len(t, strings.Fields(out), len(posteriors.Registry))
	require.Contains(t, out, "arK-arK\n")
}

// Elements are named as Stan names them, in row-major order from 1.
func TestNames(t *testing.T) {
	s := draws.Site{Name: "a", Shape: []int{2, 3}, Size: 6}
	var got []string
	for i := range 6 {
		got = append(got, posteriors.StanName(s, i))
	}
	require.Equal(t, []string{"a[1,1]", "a[1,2]", "a[1,3]", "a[2,1]", "a[2,2]", "a[2,3]"}, got)
	require.Equal(t, "b", posteriors.StanName(draws.Site{Name: "b", Size: 1}, 0))
}

// z is the difference over the root of the sum of the squared errors; a figure that is not a number misses its mark; a
// parameter that the model lacks is an error.
func TestCompare(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	d, err := draws.New([]draws.Site{{Name: "x", Shape: []int{2}, Size: 2}}, nil, 2)
	require.NoError(t, err)
	r := posteriors.Reference{"x[2]": {nil, nil}}
	for range 2000 {
		require.NoError(t, d.Append([]float64{5, 1 + 2*rng.NormFloat64(), 5, 1 + 2*rng.NormFloat64()}, nil))
		r["x[2]"][0], r["x[2]"][1] = append(r["x[2]"][0], 1.5+2*rng.NormFloat64()),
			append(r["x[2]"][1], 1.5+2*rng.NormFloat64())
	}
	got, err := compare(d, r)
	require.NoError(t, err)
	require.Len(t, got, 1)
	// Independent draws: the standard errors of the means are 2/√4000, those of the deviations 2/√8000.
	p, se := got[0], 2/math.Sqrt(4000)
	assert.InDelta(t, se, p.mean.error, 0.1*se)
	assert.InDelta(t, se/math.Sqrt2, p.sd.referenceError, 0.1*se)
	assert.InDelta(t, -0.5/(math.Sqrt2*se), p.mean.z(), 4)
	assert.Less(t, math.Abs(p.sd.z()), 4.0)
	both := math.Sqrt(p.mean.error*p.mean.error + p.mean.referenceError*p.mean.referenceError)
	assert.InDelta(t, (p.mean.ours-p.mean.reference)/both, p.mean.z(), 1e-9)
	out := row{parameters: got}
	out.judge(2)
	require.Len(t, out.misses, 1)
	assert.Contains(t, out.misses[0], "mean of x[2]")

	p.mean.ours = math.NaN()
	out = row{Divergences: 1, parameters: []parameter{p}}
	out.judge(2)
	require.Len(t, out.misses, 2)
	require.ErrorContains(t, report(&bytes.Buffer{}, []row{out}, true), "JSON")
	p.mean.ours, p.rhat, p.ess = p.mean.reference, 1.02, 199
	out = row{parameters: []parameter{p}}
	out.judge(2)
	require.Len(t, out.misses, 2)

	_, err = compare(d, posteriors.Reference{"x[3]": r["x[2]"]})
	require.ErrorContains(t, err, "x[3]")
}

// Four runs whose mean is off by one error each: each |z| is 1, and that of the average 2, or less where the reference
// has an error of its own. The worst figures are those of any run.
func TestSeeds(t *testing.T) {
	var rows []row
	for i := range 4 {
		p := parameter{mean: figure{ours: 1, error: 1}, sd: figure{ours: 1, error: 1, referenceError: 1}, rhat: 1, ess: 500}
		r := row{Name: "a", Seed: uint64(i), Divergences: i % 2, parameters: []parameter{p}}
		r.judge(2)
		rows = append(rows, r)
	}
	rows = append(rows, row{Name: "b", MaxRHat: 1.5})
	got := overSeeds(rows)
	require.Len(t, got, 2)
	assert.Equal(t, 4, got[0].runs)
	assert.Equal(t, 2, got[0].missed)
	assert.Equal(t, 2, got[0].worst.Divergences)
	assert.InDelta(t, 1, got[0].worst.MaxZMean, 1e-12)
	assert.InDelta(t, 2, got[0].averageMean, 1e-12)
	assert.InDelta(t, 1/math.Sqrt(1.25), got[0].averageSD, 1e-12)
	assert.Equal(t, 1.5, got[1].worst.MaxRHat)
	var b bytes.Buffer
	require.NoError(t, report(&b, rows, false))
	assert.Contains(t, b.String(), "runs")
}
