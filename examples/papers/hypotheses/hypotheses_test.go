package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/killed"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

func TestMain(m *testing.M) {
	killed.Main(m, map[string]func(string) error{"study": func(dir string) error {
		return run(context.Background(), io.Discard, testOptions(dir))
	}})
}

func testOptions(dir string) options {
	chosen := map[string]*bool{}
	for _, name := range []string{"agreement", "simulation", "predictive", "sandwich", "limit"} {
		on := true
		chosen[name] = &on
	}
	return options{chosen: chosen, quick: true, dir: dir, size: 1, seeds: 2, workers: 1, seed: 3, json: true}
}

// A study that is killed twice and then started again, with more workers, prints the same table as one that is not, to
// the last bit; its numbers can be what they are called.
func TestKilledStudyGoesOn(t *testing.T) {
	var want bytes.Buffer
	o := testOptions(t.TempDir())
	require.NoError(t, run(context.Background(), &want, o))

	dir := t.TempDir()
	stored := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "quick", "*-*.json"))
		require.NoError(t, err)
		return len(found)
	}
	for _, least := range []int{1, 8} {
		killed.Once(t, "study", dir, func() bool { return stored() >= least })
	}
	var got bytes.Buffer
	o.dir, o.workers = dir, 2
	require.NoError(t, run(context.Background(), &got, o))
	require.Equal(t, want.String(), got.String())
	table, err := os.ReadFile(filepath.Join(dir, "quick", "table-agreement-simulation-predictive-sandwich-limit.md"))
	require.NoError(t, err)
	assert.Contains(t, string(table), "| masses, cycles |")
	assert.Contains(t, string(table), "Tuned: the learning rate alone, 0.03, by -tune")
	assert.Contains(t, string(table), "HMC adapts its step size")

	var reports []report
	require.NoError(t, json.Unmarshal(got.Bytes(), &reports))
	require.Len(t, reports, 5)
	for _, r := range reports {
		for _, l := range r.Rows {
			require.Len(t, l.Mean, len(r.Columns))
			require.Len(t, l.SE, len(r.Columns))
			for i, v := range l.Mean {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s, %s, %s", r.Test, l.Name, r.Columns[i])
			}
		}
	}
	for _, l := range reports[1].Rows { // Jensen: the average over networks is better than the mean network
		assert.Less(t, l.Mean[0], l.Mean[3])
	}
}

// HMC and SGHMC with small steps agree on a small problem: the divergence between what they predict is not above
// four times that between halves of the chains of HMC, which is Monte-Carlo error of chains half as many.
func TestAgreement(t *testing.T) {
	c := comparison{Depth: 1, Temperature: 1, Chains: 6, Cases: 100, Steps: 30, Warmup: 100, Draws: 60, LR: 0.01,
		Momentum: 0.9, Burn: 400, Thin: 40, Seed: 5}
	v, err := c.run(context.Background())
	require.NoError(t, err)
	assert.Less(t, v["kl"], 4*v["kl_hmc"])
	assert.Greater(t, v["kl"], 0.0)
	assert.InDelta(t, v["entropy_hmc"], v["entropy_sghmc"], 0.1)
	assert.Less(t, v["rhat_hmc"], 1.1)
}

// Data are a function of the seed, whatever the network that is fitted, and all classes occur.
func TestDataFromThePrior(t *testing.T) {
	a, err := priorTask(2, 3000, 7)
	require.NoError(t, err)
	b, err := priorTask(2, 3000, 7)
	require.NoError(t, err)
	require.Equal(t, a.Labels, b.Labels)
	require.Equal(t, 203, a.Net.NumParams(), "as in the paper")
	require.Equal(t, int(priorTrain), a.N)
	counts := make([]float64, priorClasses)
	for _, l := range a.Labels {
		counts[l]++
	}
	for _, n := range counts {
		assert.Greater(t, n, 0.0)
	}
	deep, err := priorTask(3, 10, 7)
	require.NoError(t, err)
	require.Equal(t, 203+110, deep.Net.NumParams())
}

// The limit of networks that all say the same is what they say.
func TestLimit(t *testing.T) {
	logp, v := alike(40), values{}
	require.NoError(t, limit(v, logp, []int{0}, 1))
	assert.InDelta(t, math.Log(4), v["limit"], 1e-9)
	require.ErrorContains(t, limit(v, logp[:9], []int{0}, 1), "9 networks are too few for a limit: expected at least 10")
	for n := fewestForLimit; n <= 40; n++ {
		require.NoError(t, limit(v, logp[:n], []int{0}, 1), n)
		assert.InDelta(t, math.Log(4), v["limit"], 1e-9)
	}
}

func TestPriorPredictive(t *testing.T) {
	p := meanProbabilities([][]float64{{0, math.Log(3)}, {1000, 1000}})
	assert.InDeltaSlice(t, []float64{(0.25 + 0.5) / 2, (0.75 + 0.5) / 2}, p, 1e-12)
	assert.InDelta(t, math.Log(4), entropy([]float64{0.25, 0.25, 0.25, 0.25, 0}), 1e-12)

	narrow, err := histograms{Hidden: []int{8}, Prior: priorOf{Kind: "normal", Variance: 1e-6}, Networks: 20,
		Seed: 1}.run(context.Background())
	require.NoError(t, err)
	assert.InDelta(t, math.Log(10), narrow["entropy"], 1e-3, "networks of nearly zero are uniform")
	wide, err := histograms{Hidden: []int{8}, Prior: priorOf{Kind: "normal", Variance: 10}, Networks: 20,
		Seed: 1}.run(context.Background())
	require.NoError(t, err)
	assert.Greater(t, wide["largest"], wide["largest_average"])

	// The networks of a picture are those of the trial, and a histogram has all of a network's probability.
	trial := histograms{Hidden: []int{8}, Prior: priorOf{Kind: "normal", Variance: 10}, Networks: 20, Seed: 1}
	all, err := trial.classes()
	require.NoError(t, err)
	require.Len(t, all, 20)
	largest := 0.0
	for _, classes := range all {
		assert.InDelta(t, 1, floats.Sum(classes), 1e-9)
		largest += floats.Max(classes) / 20
	}
	assert.InDelta(t, wide["largest"], largest, 1e-12)
	assert.InDelta(t, wide["entropy_average"], entropy(averageOf(all)), 1e-12)
}

// The picture of -predictive is beside the table, also of trials that were stored without it: it has a panel for each
// of four networks and one for the average, and bars that are as tall as the shares.
func TestPredictivePicture(t *testing.T) {
	on := true
	o := options{chosen: map[string]*bool{"predictive": &on}, quick: true, dir: t.TempDir(), size: 1, seeds: 1, workers: 1,
		seed: 1}
	var table bytes.Buffer
	require.NoError(t, run(context.Background(), &table, o))
	require.Contains(t, table.String(), "- predictive.png has the classes of 4 networks from each prior")
	path := filepath.Join(o.dir, "quick", "predictive.png")
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, run(context.Background(), io.Discard, o))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first, again)

	// Five panels of 2.1 by 1.7 inches at 96 dots an inch. The tallest bar of a prior is as tall as the largest share of
	// its four networks: two priors give a share the same height, to a dot at both ends of either bar.
	var heights, shares []float64
	for _, variance := range []float64{0.2, 10} {
		trial := histograms{Hidden: []int{8}, Prior: priorOf{Kind: "normal", Variance: variance}, Networks: 6, Seed: 1}
		require.NoError(t, drawHistograms(o.dir, []histograms{trial}))
		file, err := os.Open(filepath.Join(o.dir, "predictive.png"))
		require.NoError(t, err)
		picture, err := png.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		bounds := picture.Bounds()
		require.InDelta(t, 5*2.1*96, bounds.Dx(), 1)
		require.InDelta(t, 1.7*96, bounds.Dy(), 1)
		tallest, largest := 0, 0.0
		for x := range bounds.Dx() {
			blue := 0
			for y := range bounds.Dy() {
				if color.RGBAModel.Convert(picture.At(x, y)) == (color.RGBA{0, 114, 178, 255}) {
					blue++
				}
			}
			tallest = max(tallest, blue)
		}
		all, err := trial.classes()
		require.NoError(t, err)
		for _, classes := range all[:shown] {
			largest = max(largest, floats.Max(classes))
		}
		heights, shares = append(heights, float64(tallest)), append(shares, largest)
	}
	assert.Greater(t, shares[1], 1.5*shares[0])
	assert.InDelta(t, heights[0]/shares[0], heights[1]/shares[1], 2/shares[0]+2/shares[1])
}

// Trials with equal settings are one, a file with others is refused, and so are bad options.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	on := true
	o := options{chosen: map[string]*bool{"predictive": &on}, quick: true, dir: dir, size: 1, seeds: 1, workers: 1,
		seed: 1}
	require.NoError(t, run(context.Background(), io.Discard, o))
	files, err := filepath.Glob(filepath.Join(dir, "quick", "prior-*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(priors)+1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[1], text, 0o644))
	require.ErrorContains(t, run(context.Background(), io.Discard, o),
		files[1]+" is of other settings than its name says: remove it")
	require.NoError(t, os.WriteFile(files[1], []byte("{"), 0o644))
	require.ErrorContains(t, run(context.Background(), io.Discard, o),
		files[1]+": unexpected end of JSON input: remove it")
	for _, bad := range []options{{size: 0, seeds: 1, workers: 1}, {size: 1, workers: 1}, {size: 1, seeds: 1}} {
		require.ErrorContains(t, run(context.Background(), io.Discard, bad), "all must be above 0")
	}
	for _, size := range []float64{1001, math.Inf(1)} {
		require.ErrorContains(t, run(context.Background(), io.Discard, options{size: size, seeds: 1, workers: 1}),
			fmt.Sprintf("size is %g, it must be at most 1000", size))
	}
	require.ErrorContains(t, run(context.Background(), io.Discard, options{size: math.NaN(), seeds: 1, workers: 1}),
		"size is NaN")
	_, err = digitsTask(mostImages+1, nil, priors[0], false)
	require.ErrorContains(t, err, "501 images to train with: it must be from 1 to 500")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.dir = t.TempDir()
	require.ErrorIs(t, run(ctx, io.Discard, o), context.Canceled)
}

// The table of one test leaves that of another alone.
func TestTablesOfSomeTests(t *testing.T) {
	o := options{quick: true, dir: t.TempDir(), size: 1, seeds: 1, workers: 1, seed: 1}
	on := true
	for _, name := range []string{"predictive", "sandwich"} {
		o.chosen = map[string]*bool{name: &on}
		require.NoError(t, run(context.Background(), io.Discard, o))
	}
	for _, name := range []string{"predictive", "sandwich"} {
		text, err := os.ReadFile(filepath.Join(o.dir, "quick", "table-"+name+".md"))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), "## "))
		require.Contains(t, string(text), "## "+name)
	}
	require.NoFileExists(t, filepath.Join(o.dir, "quick", "table.md"), "that of all tests")
}

// The rows of a test differ in their trials, of every size: none has a minibatch that is larger than its data, and a
// row of so many images or of such a batch has them.
func TestRowsAreWhatTheySay(t *testing.T) {
	for _, o := range []options{{size: 1, seeds: 1}, {size: 0.01, seeds: 1}, {size: 1, seeds: 1, quick: true}} {
		for _, one := range tests {
			seen := map[string]string{}
			for _, r := range one.rows(o) {
				trial := r.trial(o, 1)
				if s, ok := trial.(sampling); ok {
					require.LessOrEqual(t, s.Train, base(o, 1).Train, r.name)
					s.Batch = min(s.Batch, s.Train) // as it is run
					switch one.name {
					case "batch":
						require.Equal(t, fmt.Sprintf("batch %d", s.Batch), r.group)
					case "data":
						require.Equal(t, fmt.Sprintf("%d images", s.Train), r.group)
					case "limit":
						require.NoError(t, limit(values{}, alike(s.Draws*s.Chains), []int{0}, 1), "%+v", o)
					}
					trial = s
				}
				name, _, err := key(trial)
				require.NoError(t, err)
				require.Empty(t, seen[name], "%s: %s", one.name, r.name)
				seen[name] = r.name
			}
		}
	}
}

// alike are n networks that say the same of one case.
func alike(n int) (logp [][][]float64) {
	for range n {
		logp = append(logp, [][]float64{{math.Log(0.25), math.Log(0.75)}})
	}
	return logp
}

// Each test says what is tuned. Rows that sample the digits have the learning rate that was, and only -tune tries
// others; everything else is that of the base settings, but for what the row is about.
func TestWhatIsTuned(t *testing.T) {
	o := options{size: 1, seeds: 1, seed: 1}
	want := base(o, 1)
	for _, one := range tests {
		require.NotEmpty(t, one.tuning(o), one.name)
		rates := map[float64]bool{}
		for _, trial := range one.trials(o) {
			s, ok := trial.(sampling)
			if between, is := trial.(sandwich); is {
				s, ok = between.sampling, true
			}
			if !ok {
				continue
			}
			rates[s.LR] = true
			assert.Equal(t, one.name == "tune", s.Tune, one.name)
			assert.Equal(t, []any{want.Momentum, want.Cycle, want.Warmup}, []any{s.Momentum, s.Cycle, s.Warmup}, one.name)
		}
		said := strings.HasPrefix(one.tuning(o), fmt.Sprintf("Tuned: the learning rate alone, %g, by -tune", want.LR))
		assert.Equal(t, len(rates) == 1, said, one.name)
		if said {
			assert.True(t, rates[want.LR], one.name)
		}
		assert.Equal(t, len(rates) > 1, one.name == "tune", one.name)
	}
	o.quick = true
	assert.Contains(t, tests[1].tuning(o), "not for those of -quick")
}

// The words on temperatures, and how estimates are written.
func TestBest(t *testing.T) {
	assert.Equal(t, "least NLL at T = 0.1, 0.2500; at T = 1 it is higher by 0.1500 ± 0.0500",
		best(map[float64][]float64{0.1: {0.2, 0.3}, 1: {0.4, 0.4}}))
	assert.Equal(t, "least NLL at T = 1, 0.4000", best(map[float64][]float64{0.1: {0.5}, 1: {0.4}}))
	assert.Equal(t, "0.1234 ± 0.0012", estimate(0.12341, 0.00123))
	assert.Equal(t, "35 ± 15", estimate(35.3, 15.2))
	assert.Equal(t, "0.1234", estimate(0.12341, 0))
}
