package infertest

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/native"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/kelvin-ppl/kelvin/serve"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// Points are on unconstrained space.
func Points(n, d int) [][]float64 {
	rng := rand.New(rand.NewPCG(7, uint64(d)))
	out := make([][]float64, n)
	for i := range out {
		for range d {
			out[i] = append(out[i], 0.7*rng.NormFloat64())
		}
	}
	return out
}

// PosteriorAt are named draws of a program at n points, in two chains.
func PosteriorAt(t testing.TB, p *ppl.Program, n int) (named, unconstrained *draws.Draws) {
	u, err := draws.New(p.Layout().Sites, nil, 2)
	require.NoError(t, err)
	for i, x := range Points(n, u.Dim()) {
		require.NoError(t, u.AppendChain(2*i/n, x, nil))
	}
	u.SetSpace(draws.Unconstrained)
	named, err = p.Draws(u, p.Batch())
	require.NoError(t, err)
	return named, u
}

// Exported is a program that was exported with draws, and loaded.
func Exported(t testing.TB, p *ppl.Program, posterior *draws.Draws) (*serve.Model, []byte) {
	var file bytes.Buffer
	require.NoError(t, p.ExportFitted(&file, posterior, nil))
	text := bytes.Clone(file.Bytes())
	loaded, err := serve.Load(&file)
	require.NoError(t, err)
	return loaded, text
}

// Distance is the largest difference, in units of the largest number.
func Distance(t testing.TB, got, want []float64) float64 {
	require.Len(t, got, len(want))
	scale, worst := 1e-3, 0.0
	for i, v := range want {
		if g := got[i]; v-v != 0 || g-g != 0 {
			require.True(t, g == v || g != g && v != v, "%v and %v", g, v)
			continue
		}
		scale, worst = max(scale, math.Abs(v)), max(worst, math.Abs(got[i]-v))
	}
	return worst / scale
}

// Differences are the largest between a loaded model and its program.
type Differences struct{ Density, Values, LogLikelihood, Predictions float64 }

// Compare compares log density, gradient, values, log likelihoods and predictions of a loaded model with the program's,
// at draws of it.
func Compare(t testing.TB, loaded *serve.Model, p *ppl.Program, named, unconstrained *draws.Draws) (d Differences) {
	start, err := p.Start(p.Batch(), 2, 1)
	require.NoError(t, err)
	code, _, err := infer.Compile(p.Target().Summed(), start, p.Batch(), native.Options{Tier: native.VM})
	require.NoError(t, err)
	for _, x := range unconstrained.Rows() {
		want, got := make([]float64, len(x)), make([]float64, len(x))
		v, err := code.Eval(x, 1, want)
		require.NoError(t, err)
		u := loaded.LogDensity(x, got)
		d.Density = max(d.Density, Distance(t, []float64{u}, []float64{v}), Distance(t, got, want))
	}
	got, err := loaded.Draws(unconstrained)
	require.NoError(t, err)
	require.Equal(t, named.Sites(), got.Sites())
	require.Equal(t, named.Space(), got.Space())
	for k, row := range named.Rows() {
		d.Values = max(d.Values, Distance(t, got.Rows()[k], row))
	}
	if likelihood, err := p.LogLikelihood(named); err != nil {
		_, missing := loaded.LogLikelihood(unconstrained.Rows()[0])
		require.Error(t, missing)
	} else {
		for k, x := range unconstrained.Rows() {
			got, err := loaded.LogLikelihood(x)
			require.NoError(t, err)
			require.Len(t, got, len(likelihood.Sites()))
			for _, s := range likelihood.Sites() {
				want := likelihood.Rows()[k][s.Offset : s.Offset+s.Size]
				d.LogLikelihood = max(d.LogLikelihood, Distance(t, got[s.Name], want))
			}
		}
	}
	d.Predictions = Predicted(t, loaded, p.Model(), named, p.Batch(), loaded.Rows())
	return d
}

// Predicted compares predictions for rows of a batch with those of ppl.Predictive.
func Predicted(t testing.TB, loaded *serve.Model, m ppl.Model, posterior *draws.Draws, batch infer.Batch,
	rows int) (worst float64) {
	const seed = 5
	want, err := ppl.Predictive{Model: m, Batch: batch, Seed: seed}.Posterior(posterior)
	require.NoError(t, err)
	numbers := func(x torch.Tensor) []float64 {
		out, err := torch.ToSlice[float64](torch.Of(x.T().MustTotype(gotch.Double, false)))
		require.NoError(t, err)
		return out
	}
	data := map[string][]float64{}
	inputs, _, err := loaded.PredictInputs(rows)
	require.NoError(t, err)
	for _, s := range inputs {
		require.ElementsMatch(t, s.Shape, batch[s.Name].Shape(), s.Name)
		data[s.Name] = numbers(batch[s.Name])
	}
	got, err := loaded.Predict(posterior, rows, data, seed)
	require.NoError(t, err)
	require.Len(t, got.Sites(), len(want))
	for _, s := range got.Sites() {
		var mine []float64
		for _, row := range got.Rows() {
			mine = append(mine, row[s.Offset:s.Offset+s.Size]...)
		}
		worst = max(worst, Distance(t, mine, numbers(want[s.Name])))
	}
	return worst
}
