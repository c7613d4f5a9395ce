package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/examples/internal/pima"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/raw"
	"github.com/kelvin-ppl/kelvin/torch"
)

// The settings of the published table.
func TestSettings(t *testing.T) {
	assert.Equal(t, lengths{seeds: 10, draws: 5000, nutsWarmup: 2000, warmup: 2000, thin: 5, chains: 10_000,
		chainUpdates: 2000, viUpdates: 8000,
		ensembles: 10, sharedRuns: 10, sharedOne: 5000}, published)
	assert.Equal(t, []float64{0.01, 1, 0.001, 32, 100}, []float64{sghmcStep, sghmcFriction, adamRate, batchSize, subset})
	require.Len(t, table, 7)
	batches := []int{0, 0, 0, 32, 0, 32, 32}
	ksd := []float64{2.680, 2.689, 2.623, 2.516, 2.693, 2.686, 2.690}
	for i, r := range table {
		assert.Equal(t, batches[i], r.batch, r.method)
		assert.Equal(t, ksd[i], r.ksd, r.method)
		assert.Equal(t, i == 1, r.kind == notRun, r.method)
	}
}

// A quick run has a row for each row of the table, with the names that readers of the JSON know, and numbers.
func TestQuickRun(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, run(context.Background(), &text, quick, true))
	var out struct {
		Rows []map[string]any `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(text.Bytes(), &out))
	require.Len(t, out.Rows, len(table))
	for i, r := range out.Rows {
		for _, key := range []string{"method", "batch", "ksd_paper", "ksd_paper_sd", "ksd", "seconds", "ksd_sd",
			"ksd_standard", "ksd_standard_sd",
			"seconds_paper", "within_4_se", "within_spread", "z"} {
			require.Contains(t, r, key)
		}
		require.Equal(t, table[i].method, r["method"])
		require.Equal(t, table[i].ksd, r["ksd_paper"])
		if table[i].batch == 0 {
			require.Nil(t, r["batch"])
		} else {
			require.EqualValues(t, table[i].batch, r["batch"])
		}
		if table[i].kind == notRun {
			require.Nil(t, r["ksd"])
			require.Nil(t, r["seconds"])
			continue
		}
		require.Greater(t, r["ksd"], 0.0)
		require.Greater(t, r["seconds"], 0.0)
	}
	text.Reset()
	require.NoError(t, run(context.Background(), &text, quick, false))
	for _, r := range table {
		require.Contains(t, text.String(), r.title())
	}
}

// The sum of the copies' log posteriors, on batches of their own, is that of the model in the language one by one, in
// value and gradient, up to the constants of the priors: −(d/2) log 2π over N each.
func TestCopies(t *testing.T) {
	task, err := newTask(quick)
	require.NoError(t, err)
	const k = 3
	batches, err := newResampled(task.data, batchSize, k, 5, 0)
	require.NoError(t, err)
	batch, err := batches.Next()
	require.NoError(t, err)
	layout, err := infer.NewLayout(infer.Shapes{"w": {k, pima.Features}})
	require.NoError(t, err)
	w := make([]float64, k*pima.Features)
	for i := range w {
		w[i] = math.Sin(float64(3*i + 1))
	}
	p, err := infer.NewParams(layout, w)
	require.NoError(t, err)
	value, grad := evaluate(t, copies, p, infer.Batch{"x": batch["x"], "y": batch["y"]})
	sum := 0.0
	for i := range k {
		one, err := infer.NewParams(task.program.Layout(), w[i*pima.Features:(i+1)*pima.Features])
		require.NoError(t, err)
		own := infer.Batch{}
		for name, tensor := range batch {
			own[name], err = raw.Of(tensor.T().Select(1, int64(i), false))
			require.NoError(t, err)
		}
		v, g := evaluate(t, task.program.Target().LogPosterior, one, own)
		sum += v + 0.5*pima.Features*math.Log(2*math.Pi)/pima.Patients
		assert.InDeltaSlice(t, g, grad[i*pima.Features:(i+1)*pima.Features], 1e-13)
	}
	assert.InDelta(t, sum, value, 1e-12)
}

func evaluate(t *testing.T, f infer.LogPosterior, p infer.Params, b infer.Batch) (float64, []float64) {
	g, err := infer.NewGradient(infer.Sum(f, 1))
	require.NoError(t, err)
	e, err := g.ValueAndGrad(p, b, 0)
	require.NoError(t, err)
	grad, err := torch.ToSlice[float64](e.Grad)
	require.NoError(t, err)
	return e.Values[0], grad
}

// Batches with replacement: each datum is as likely as any other and comes independently of the others in its batch, so
// that the number of different data in a batch of b of n is n(1 − (1 − 1/n)^b) on average. Equal positions have equal
// batches, other seeds and streams others.
func TestResampled(t *testing.T) {
	const n, size, rounds = 50, 20, 4000
	id := make([]float64, n)
	for i := range id {
		id[i] = float64(i)
	}
	tensor, err := torch.FromSlice(id)
	require.NoError(t, err)
	data := infer.Batch{"id": tensor}
	next := func(r *resampled) []float64 {
		b, err := r.Next()
		require.NoError(t, err)
		ids, err := torch.ToSlice[float64](b["id"])
		require.NoError(t, err)
		return ids
	}
	r, err := newResampled(data, size, 0, 1, 0)
	require.NoError(t, err)
	counts, distinct := make([]float64, n), make([]float64, rounds)
	for i := range rounds {
		seen := map[float64]bool{}
		for _, v := range next(r) {
			counts[int(v)]++
			seen[v] = true
		}
		distinct[i] = float64(len(seen))
	}
	mean, sd := stat.MeanStdDev(distinct, nil)
	assert.InDelta(t, n*(1-math.Pow(1-1.0/n, size)), mean, 4*sd/math.Sqrt(rounds))
	const expected = rounds * size / n
	chi := 0.0
	for _, c := range counts {
		chi += (c - expected) * (c - expected) / expected
	}
	assert.InDelta(t, n-1, chi, 4*math.Sqrt(2*(n-1)), "chi-squared with n − 1 degrees of freedom")

	require.Equal(t, infer.Position{Epoch: rounds}, r.Position())
	require.NoError(t, r.Seek(infer.Position{Epoch: 3}))
	again := next(r)
	fresh, err := newResampled(data, size, 0, 1, 0)
	require.NoError(t, err)
	require.NoError(t, fresh.Seek(infer.Position{Epoch: 3}))
	require.Equal(t, again, next(fresh))
	one, err := r.Fingerprint()
	require.NoError(t, err)
	for _, other := range []*resampled{{seed: 2}, {seed: 1, stream: 1}, {seed: 1, copies: 2}} {
		other.data, other.total, other.size = data, n, size
		two, err := other.Fingerprint()
		require.NoError(t, err)
		require.NotEqual(t, one, two)
		if other.copies == 0 {
			require.NoError(t, other.Seek(infer.Position{Epoch: 3}))
			require.NotEqual(t, again, next(other))
		}
	}
}

// The copies of a block are independent chains with batches of their own: one chain with the noise of a run of one
// copy, whatever the other copies are, ends where plain Go has it end.
func TestBlockIsSGHMC(t *testing.T) {
	task, err := newTask(quick)
	require.NoError(t, err)
	row := table[6]
	w, err := task.block(context.Background(), row, 1, 11)
	require.NoError(t, err)

	batches, err := newResampled(infer.Batch{"x": task.data["x"], "y": task.data["y"]}, row.batch, 1, 1, 11)
	require.NoError(t, err)
	streams := torch.NewStreams(1, 12)
	streams.Chains = streams.Chains[11:]
	var theta, m [pima.Features]float64
	for range task.chainUpdates {
		b, err := batches.Next()
		require.NoError(t, err)
		x, err := torch.ToSlice[float64](b["x"])
		require.NoError(t, err)
		y, err := torch.ToSlice[float64](b["y"])
		require.NoError(t, err)
		z, err := streams.Normal([]int{pima.Features}, torch.DTypeOf[float64](), torch.CPU)
		require.NoError(t, err)
		noise, err := torch.ToSlice[float64](z)
		require.NoError(t, err)
		var g [pima.Features]float64
		for j := range g {
			g[j] = -theta[j] / pima.Patients
		}
		for i := range row.batch {
			eta := 0.0
			for j := range g {
				eta += theta[j] * x[i*pima.Features+j]
			}
			for j := range g {
				g[j] += y[i] * x[i*pima.Features+j] / (1 + math.Exp(y[i]*eta)) / batchSize
			}
		}
		for j := range g {
			theta[j], m[j] = theta[j]+0.01*m[j], m[j]*(1-0.01)+0.01*g[j]+math.Sqrt(2*0.01/768.0)*noise[j]
		}
	}
	assert.InDeltaSlice(t, theta[:], w, 1e-9)
}

// The scores are made with the gradient of the sum over the data for the discrepancy, and of the mean
// for the table's number.
func TestScored(t *testing.T) {
	task, err := newTask(quick)
	require.NoError(t, err)
	x, err := torch.ToSlice[float64](task.data["x"])
	require.NoError(t, err)
	y, err := torch.ToSlice[float64](task.data["y"])
	require.NoError(t, err)
	const points = 4
	w, gradient := make([]float64, points*pima.Features), make([]float64, points*pima.Features)
	for i := range w {
		w[i] = 0.5 * math.Cos(float64(2*i+1))
	}
	for k := range points {
		at, g := w[k*pima.Features:(k+1)*pima.Features], gradient[k*pima.Features:(k+1)*pima.Features]
		for j := range g {
			g[j] = -at[j]
		}
		for i := range y {
			eta := 0.0
			for j, v := range at {
				eta += v * x[i*pima.Features+j]
			}
			for j := range g {
				g[j] += y[i] * x[i*pima.Features+j] / (1 + math.Exp(y[i]*eta))
			}
		}
	}
	s, err := task.scored(w, 9)
	require.NoError(t, err)
	number := ksdTable3(w, meanOf(gradient, 768), pima.Features, 100, 9)
	assert.InEpsilon(t, number, s.table, 1e-10)
	discrepancy, err := diag.KSD(w, gradient, pima.Features, diag.Gaussian{})
	require.NoError(t, err)
	assert.InEpsilon(t, discrepancy.KSD, s.standard, 1e-10)
}

// The judgement of a row: standard errors of means of ten, or of one ensemble in the parallel row.
func TestCompare(t *testing.T) {
	scores := []score{{table: 2.70, standard: 1}, {table: 2.72, standard: 3}}
	r := compare(tableRow{kind: serial, ksd: 2.69, sd: 0.02}, runs{seconds: []float64{1, 3}}, scores)
	sd := math.Sqrt(2) * 0.01
	assert.InDelta(t, 0.02/math.Sqrt(sd*sd/2+0.0004/10+1e-6/12), *r.Z, 1e-9)
	assert.InDelta(t, 2.71, *r.KSD, 1e-12)
	assert.InDelta(t, sd, *r.KSDSD, 1e-12)
	assert.InDelta(t, 2, *r.Seconds, 1e-12)
	assert.True(t, *r.Within4)
	r = compare(tableRow{kind: parallel, ksd: 2.69, sd: 0.001}, runs{whole: 5}, scores)
	assert.InDelta(t, 0.02/math.Sqrt(sd*sd+1e-6+1e-6/12), *r.Z, 1e-9)
	assert.False(t, *r.WithinSpread)
	assert.Equal(t, 5.0, *r.SecondsWhole)
	r = compare(tableRow{kind: serial, ksd: 2.5, sd: 0.001}, runs{}, scores)
	assert.False(t, *r.Within4)
	assert.Nil(t, r.Seconds)
}

// NUTS at the full length: the published number and its spread, one run, and the discrepancy proper is not larger than
// for the normal approximation with independent elements, whose standard deviations Adam's noise makes too wide.
func TestNUTSAndVI(t *testing.T) {
	task, err := newTask(published)
	require.NoError(t, err)
	w, err := one(task, table[0])
	require.NoError(t, err)
	require.Len(t, w, 5000*pima.Features)
	s, err := task.scored(w, 1)
	require.NoError(t, err)
	assert.InDelta(t, 2.680, s.table, 4*math.Hypot(0.001, rounding))

	q, err := one(task, table[2])
	require.NoError(t, err)
	require.Len(t, q, 5000*pima.Features)
	v, err := task.scored(q, 1)
	require.NoError(t, err)
	assert.Less(t, v.table, s.table, "less, though it is worse")
	assert.LessOrEqual(t, s.standard, v.standard)
}

// one is the draws of one run of a row.
func one(t *task, r tableRow) ([]float64, error) {
	t.seeds = 1
	out, err := t.run(context.Background(), r)
	if err != nil {
		return nil, err
	}
	return out.draws[0], nil
}
