package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/examples/internal/seeds"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

func quick(dir string) options {
	return options{quick: true, json: true, dir: dir, size: 1, seeds: 2, seed: 1}
}

// A run has all methods, a run that starts again after one of its seeds gives the same bits, and settings are compared.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	var want bytes.Buffer
	require.NoError(t, run(context.Background(), &want, quick(dir)))
	var s summary
	require.NoError(t, json.Unmarshal(want.Bytes(), &s))
	require.Equal(t, []string{"German", "French", "Spanish", "Portuguese"}, s.Episodes)
	require.Len(t, s.Excess, 4)
	for i, l := range s.Excess {
		require.Len(t, l.Values, len(episodes))
		assert.InDelta(t, 0, l.Values[0].Mean, 1e-12, "after one episode all are the model of it alone")
		assert.Equal(t, s.Alone[0], s.First[i].Values[0])
		assert.Equal(t, s.First[i].Values[len(episodes)-1], s.Last[i].Values[0])
	}
	require.Len(t, s.Claims, 12)
	assert.InDelta(t, s.Excess[0].Values[3].Mean-s.Excess[1].Values[3].Mean, s.Claims[3].Margin.Mean, 1e-12)
	require.Len(t, s.Outliers, 4)
	for i, d := range s.Outliers {
		assert.Equal(t, i < 2, d.Epistemic.Mean < 0, d.Method)
		assert.True(t, d.Total.Mean >= 0 && d.Total.Mean <= 1)
		for _, u := range []uncertainty{d.Inside, d.Outside} {
			assert.InDelta(t, u.Total.Mean, u.Aleatoric.Mean+u.Epistemic.Mean, 1e-9, d.Method)
			assert.Equal(t, i < 2, u.Epistemic.Mean < 1e-12, d.Method)
		}
		if i < 2 {
			assert.Equal(t, d.Total, d.Aleatoric, "all that a single network has is aleatoric")
		}
		assert.Less(t, d.English.Mean, math.Log(vocab), "better than guessing")
	}
	for _, name := range []string{"forgetting.png", "outliers.png"} {
		require.FileExists(t, filepath.Join(dir, "quick", name))
	}

	require.NoError(t, os.Remove(filepath.Join(dir, "quick", "outliers-2.json")))
	var got bytes.Buffer
	require.NoError(t, run(context.Background(), &got, quick(dir)))
	require.Equal(t, want.String(), got.String())

	var tuned bytes.Buffer
	o := quick(t.TempDir())
	o.tune = true
	require.NoError(t, run(context.Background(), &tuned, o))
	var tables map[string][]tried
	require.NoError(t, json.Unmarshal(tuned.Bytes(), &tables))
	require.Len(t, tables["rates"], 4)
	require.Len(t, tables["lambdas"], 8)
	for _, row := range tables["rates"] {
		assert.Less(t, row.Loss, math.Log(vocab), row.Setting)
	}
	files, err := filepath.Glob(filepath.Join(o.dir, "quick", "*.json"))
	require.NoError(t, err)
	assert.Empty(t, files, "what -tune computes is not taken for a result")

	o = quick(dir)
	o.seed = 2
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "episodes-2.json is of other settings")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "quick", "episodes-1.json"), []byte("{"), 0o644))
	require.ErrorContains(t, run(context.Background(), io.Discard, quick(dir)), "remove it to compute it again")
	o.size = 0
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "size is 0 and seeds 2")
	o.size, o.seed = 1, tuneSeed-1
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "1001 is the seed on which settings are chosen")
}

// The texts are what the tokens can say, and nothing of a test part is in the training part before it.
func TestTexts(t *testing.T) {
	all, err := readTexts(settings{Text: 1000})
	require.NoError(t, err)
	require.Equal(t, 9, len(all))
	require.Equal(t, 700, len(all["bovary"].train))
	require.Equal(t, 100, len(all["bovary"].validation))
	require.Equal(t, 200, len(all["bovary"].test))
	for _, one := range all {
		for _, token := range slices.Concat(one.train, one.validation, one.test) {
			require.True(t, token >= 0 && token < vocab)
		}
	}
	_, err = tokens("Caf\u00e9")
	require.ErrorContains(t, err, "byte 3 is 0xc3: expected printable characters of ASCII")

	b, err := windows([]int{1, 2, 3, 4, 5, 6}, 3, 2)
	require.NoError(t, err)
	x, err := torch.ToSlice[int](b["x"])
	require.NoError(t, err)
	y, err := torch.ToSlice[int](b["y"])
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3, 3, 4, 5}, x)
	assert.Equal(t, []int{2, 3, 4, 4, 5, 6}, y)
	_, err = windows([]int{1, 2, 3}, 3, 1)
	require.ErrorContains(t, err, "a text of 3 characters is shorter than a window of 3")
}

// Losses worked out here; and the loss of a network is the mean of what its log probabilities say of the characters.
func TestLosses(t *testing.T) {
	e := excess([][]float64{{1, 9}, {2, 4}}, []float64{0.5, 1})
	assert.InDeltaSlice(t, []float64{0.5, (1.5 + 3) / 2}, e, 1e-12)
	f := forgotten([][]float64{{1, 9, 9}, {2, 4, 9}, {5, 4.5, 3}})
	assert.InDelta(t, (4+0.5)/2, f, 1e-12)

	s := settingsOf(options{quick: true, size: 1, seed: 1})
	m, err := newLanguage(s)
	require.NoError(t, err)
	streams := torch.NewStreams(1, 1)
	p, err := nn.Init(m.net, nn.PyTorch(), &streams)
	require.NoError(t, err)
	all, err := readTexts(s)
	require.NoError(t, err)
	b, err := windows(all["raven"].test[:40], m.length, m.length)
	require.NoError(t, err)
	got, err := loss(m.net.Forward, p, b)
	require.NoError(t, err)
	rows, err := logProbabilities(m.net.Forward, p, b["x"])
	require.NoError(t, err)
	labels, err := torch.ToSlice[int](b["y"])
	require.NoError(t, err)
	want := 0.0
	for i, l := range labels {
		want -= rows[i][l] / float64(len(labels))
	}
	assert.InDelta(t, want, got, 1e-5)
}

// Margins of made-up losses and detections, worked out here. The seeds differ in one of them, by 0.4, so that its
// margin of 0.2 has a standard error of 0.2 and does not hold. None holds with one seed.
func TestClaims(t *testing.T) {
	s := settingsOf(options{size: 1, seed: 1})
	made := func(serial float64) outcome {
		rows := func(first, last float64) [][]float64 {
			return [][]float64{{2, 9, 9, 9}, {9, 2, 9, 9}, {9, 9, 2, 9}, {first, 2, 2, last}}
		}
		return outcome{Learned: learned{Single: []float64{2, 2, 2, 2}, Losses: map[string][][]float64{
			sequential: rows(5, 2), "Laplace, λ = 1": rows(3.5, 2.1), "Laplace, λ = 10": rows(2.6, 3),
			offline: rows(2.2, 2)}},
			Outliers: []detection{{Method: methodBase, Total: 0.6}, {Method: methodSGD, Total: 0.5},
				{Method: methodSerial, Total: 0.8, Epistemic: serial}, {Method: methodParallel, Total: 0.9, Epistemic: 0.7}}}
	}
	var margins []float64
	var held []int
	for i, c := range claimsOf(s, []outcome{made(0.3), made(0.7)}) {
		margins = append(margins, c.Margin.Mean)
		if c.Holds {
			held = append(held, i)
		}
	}
	assert.InDeltaSlice(t, []float64{1, 0.5, 0.8, 0.35, 0.35, 0.35, -0.1, 0.3, 0.1, 0.2, -0.2, 0}, margins, 1e-12)
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 7, 8}, held)
	for _, c := range claimsOf(s, []outcome{made(0.4)}) {
		assert.False(t, c.Holds, c.Claim)
	}
}

// AUROC and means of each kind of uncertainty, of made-up windows, worked out here: of 6 pairs the total tells 5, the
// aleatoric 2 and a tie, and the epistemic all. Uncertainties that are no numbers are an error that names the method.
func TestUncertainty(t *testing.T) {
	d := detection{Method: methodSerial, Uncertainty: [2][][]float64{
		{{1, 0.9, 0.1}, {2, 1.8, 0.2}, {1.5, 1.2, 0.3}}, {{1.6, 1.2, 0.4}, {2.1, 1, 1.1}}}}
	for kind, want := range []float64{5. / 6, 2.5 / 6, 1} {
		have, err := d.auroc(kind)
		require.NoError(t, err)
		assert.InDelta(t, want, have, 1e-12)
	}
	lone := learned{Before: make([]float64, 4), Single: make([]float64, 4), Losses: map[string][][]float64{}}
	set := settingsOf(options{size: 1, seed: 1})
	for _, way := range ways(set) {
		lone.Losses[way.name] = [][]float64{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}
	}
	base, sgd, parallel := d, d, d
	base.Method, sgd.Method, parallel.Method = methodBase, methodSGD, methodParallel
	s, err := summarise(set, []outcome{{lone, []detection{base, sgd, d, parallel}}})
	require.NoError(t, err)
	got := s.Outliers[2]
	assert.InDelta(t, 2.5/6, got.Aleatoric.Mean, 1e-12)
	for i, v := range []seeds.Estimate{got.Inside.Total, got.Inside.Aleatoric, got.Inside.Epistemic, got.Outside.Total,
		got.Outside.Aleatoric, got.Outside.Epistemic} {
		assert.InDelta(t, []float64{1.5, 1.3, 0.2, 1.85, 1.1, 0.75}[i], v.Mean, 1e-12)
	}
	var table bytes.Buffer
	require.NoError(t, s.print(&table, "out"))
	assert.Regexp(t, `serial SGHMC +0\.000 ± 0\.000 +0\.417 ± 0\.000 `, table.String())
	assert.Regexp(t, `serial SGHMC +Latin +1\.8500 ± 0\.0000 +1\.1000 ± 0\.0000 +0\.7500 ± 0\.0000`, table.String())
	parallel.Uncertainty[1] = [][]float64{{1, math.NaN(), 0}}
	_, err = summarise(set, []outcome{{lone, []detection{base, sgd, d, parallel}}})
	require.ErrorContains(t, err, "parallel SGHMC: ")
}

// What an episode leaves is the diagonal of its own Fisher matrix on top of that of the one before: twice the same
// episode adds the same twice, to the precision 1 of the first prior. It is a sum over windows, which are more than are
// looked at together.
func TestRemember(t *testing.T) {
	s := settingsOf(options{quick: true, size: 1, seed: 1})
	m, err := newLanguage(s)
	require.NoError(t, err)
	streams := torch.NewStreams(1, 1)
	p, err := nn.Init(m.net, nn.PyTorch(), &streams)
	require.NoError(t, err)
	all, err := readTexts(s)
	require.NoError(t, err)
	b, err := windows(all["raven"].test[:60], m.length, m.length)
	require.NoError(t, err)
	precision := func(b infer.Batch, times int) []float64 {
		state, err := remember(m.net.Forward, nil, p, b)
		require.NoError(t, err)
		for range times - 1 {
			state, err = remember(m.net.Forward, state, p, b)
			require.NoError(t, err)
		}
		at, err := state.(laplace.Posterior).Precision()
		require.NoError(t, err)
		v, err := torch.ToSlice[float64](at)
		require.NoError(t, err)
		return v
	}
	one, two := precision(b, 1), precision(b, 2)
	learned := 0
	for i := range one {
		require.InDelta(t, 1+2*(one[i]-1), two[i], 1e-6*two[i])
		if one[i] > 1 {
			learned++
		}
	}
	assert.Greater(t, learned, len(one)/2)

	many := all["raven"].train[:45*m.length+1]
	split := 20 * m.length
	var parts [3][]float64
	for i, tokens := range [][]int{many, many[:split+1], many[split:]} {
		b, err := windows(tokens, m.length, m.length)
		require.NoError(t, err)
		parts[i] = precision(b, 1)
	}
	for i, whole := range parts[0] {
		require.InDelta(t, whole-1, parts[1][i]-1+parts[2][i]-1, 1e-4*whole)
	}
	assert.True(t, strings.HasPrefix(m.last, "block_1."))
}
