package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kelvin-ppl/kelvin/examples/internal/cifar"
	"github.com/kelvin-ppl/kelvin/examples/internal/killed"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/sgmcmc"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	killed.Main(m, map[string]func(string) error{"runs": func(dir string) error {
		return run(context.Background(), io.Discard, testOptions(dir))
	}})
}

func testOptions(dir string) options {
	return options{json: true, dir: dir, device: "cpu", seeds: 1, workers: 1, lr: perMethod{"SGD": 0.02},
		settings: settings{Depth: 8, Filters: 2, Images: 160, Tests: 100, Epochs: 72, Cycle: 2, Batch: 16, Seed: 1}}
}

// Made-up images have a pattern for each class, which the methods find: guessing is right for a tenth of 100, with a
// standard error of 0.03, and they are right for three standard errors more. At twice the step SGHMC is not stable with
// every libtorch. SGNHT is explicit, and stable at a fraction of the curvature: of so few images it finds nothing. A
// run that is killed in its middle goes on with two cells at once, and ends with the same bits.
func TestKilledRunGoesOn(t *testing.T) {
	var want bytes.Buffer
	first := t.TempDir()
	require.NoError(t, run(context.Background(), &want, testOptions(first)))
	var s summary
	require.NoError(t, json.Unmarshal(want.Bytes(), &s))
	require.Len(t, s.Predictive, len(methods))
	for i, r := range s.Predictive {
		if r.Method != "SGNHT" {
			assert.Greater(t, r.Accuracy.Mean, 0.19, r.Method)
		}
		assert.Equal(t, map[bool]int{true: 1, false: 18}[i == 0], r.Networks)
	}
	require.Len(t, s.Claims, 8)
	assert.True(t, s.Claims[6].Holds, s.Claims[6].Figure)
	for _, m := range methods {
		text, err := os.ReadFile(filepath.Join(first, m+"-1.json"))
		require.NoError(t, err)
		var r result
		require.NoError(t, json.Unmarshal(text, &r))
		assert.EqualValues(t, 72*10, r.Updates, "72 epochs of 10 batches, whatever the method is")
		assert.Equal(t, map[bool]int{true: 72}[m == "SGNHT" || m == "ATMC"], r.Readings, "one an epoch")
		if m == "ATMC" {
			assert.InDelta(t, 1, r.Friction, rounding)
			assert.Less(t, r.Xi, 1.0, "thermostats that the friction does not follow")
		}
	}

	dir := t.TempDir()
	killed.Once(t, "runs", dir, func() bool {
		found, err := filepath.Glob(filepath.Join(dir, "running", "SG[HN]*", "checkpoint.kelvin"))
		require.NoError(t, err)
		return len(found) > 0
	})
	var got bytes.Buffer
	o := testOptions(dir)
	o.workers = 2
	require.NoError(t, run(context.Background(), &got, o))
	require.Equal(t, want.String(), got.String())
	require.FileExists(t, filepath.Join(dir, "calibration.png"))

	o = testOptions(dir)
	o.lr["ATMC"] = 0.1
	require.ErrorContains(t, run(context.Background(), io.Discard, o), `"SGNHT":0.02} here`)
	o = testOptions(dir)
	on := true
	o.augment = &on
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "augment is false there and true here")
	o = testOptions(dir)
	o.data = t.TempDir()
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "data_batch_1.bin")
	o.convert, o.data = "images.zip", ""
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "-convert needs -data")
}

// A setting that cannot be is refused with the flag, the value and what is allowed, before anything is written.
func TestBadSettings(t *testing.T) {
	for want, spoil := range map[string]func(*options){
		"-images is 0: it must be from 1 to 50000":     func(o *options) { o.settings.Images = 0 },
		"-images is -1: it must be from 1 to 50000":    func(o *options) { o.settings.Images = -1 },
		"-images is 50001: it must be from 1 to 50000": func(o *options) { o.settings.Images = 50001 },
		"-tests is 0: it must be from 1 to 10000":      func(o *options) { o.settings.Tests = 0 },
		"-tests is -3: it must be from 1 to 10000":     func(o *options) { o.settings.Tests = -3 },
		"-filters is 0: it must be from 1 to 1024":     func(o *options) { o.settings.Filters = 0 },
		"-epochs is 0: it must be from 1 to 1000000":   func(o *options) { o.settings.Epochs = 0 },
		"-cycle is 0: it must be from 1 to 1000000":    func(o *options) { o.settings.Cycle = 0 },
		"-batch is 0: it must be from 1 to 50000":      func(o *options) { o.settings.Batch = 0 },
		"-seeds is 0: it must be from 1 to 1000000":    func(o *options) { o.seeds = 0 },
		"-workers is -2: it must be from 1 to 1000000": func(o *options) { o.workers = -2 },
		"-depth is 9: it must be 6 k + 2":              func(o *options) { o.settings.Depth = 9 },
		"-depth is 0: it must be 6 k + 2":              func(o *options) { o.settings.Depth = 0 },
		"-epochs is 1 with a -cycle of 2":              func(o *options) { o.settings.Epochs = 1 },
		"-epochs is 25 with a -cycle of 2":             func(o *options) { o.settings.Epochs = 25 },
		"-lr is 0: it must be above 0 and at most 100": func(o *options) { o.lr["SGD"] = 0 },
		"-lr is NaN: it must be above 0":               func(o *options) { o.lr["SGD"] = math.NaN() },
		"-lr is +Inf: it must be above 0":              func(o *options) { o.lr["SGD"] = math.Inf(1) },
		"-lr-sgnht is -1: it must be above 0":          func(o *options) { o.lr["SGNHT"] = -1 },
		"-momentum-atmc is 1: it must be between":      func(o *options) { o.momentum = perMethod{"ATMC": 1} },
		"-net is \"vgg\": it must be resnet++ or":      func(o *options) { o.settings.Net = "vgg" },
		"-norm is \"frn\" with -net resnet++":          func(o *options) { o.settings.Norm = frn },
		"-norm is \"layer\": it must be frn, batch " +
			"or": func(o *options) { o.settings.Net, o.settings.Norm = twenty, "layer" },
		"-lr-psgld has an effect only with -psgld":      func(o *options) { o.lr[psgld] = 0.1 },
		"-lr-psgld is -1: it must be above 0":           func(o *options) { o.lr[psgld], o.settings.PSGLD = -1, true },
		"-rates is \"0.1,\": it must be different":      func(o *options) { o.tune, o.rates = true, "0.1," },
		"-rates is 0: it must be above 0":               func(o *options) { o.tune, o.rates, o.momenta = true, "0", "0.9" },
		"-momenta is 2: it must be between 0 and 1":     func(o *options) { o.tune, o.rates, o.momenta = true, "1", "2" },
		"-device is \"tpu\": it must be auto, cpu":      func(o *options) { o.device = "tpu" },
		"-momentum is 1: it must be between 0 and 1":    func(o *options) { o.momentum = perMethod{"SGD": 1} },
		"-momentum is -0.5: it must be between 0 and 1": func(o *options) { o.momentum = perMethod{"SGD": -0.5} },
	} {
		o := testOptions(filepath.Join(t.TempDir(), "out"))
		spoil(&o)
		require.ErrorContains(t, run(context.Background(), io.Discard, o), want)
		require.NoDirExists(t, o.dir)
	}
	folder := t.TempDir()
	for i, name := range []string{"data_batch_1.bin", "test_batch.bin"} {
		require.NoError(t, cifar.Write(filepath.Join(folder, name), cifar.Synthetic(5+i, cifar.Side, 1)))
	}
	o := testOptions(t.TempDir())
	o.data, o.settings.Images = folder, 6
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "-images: cifar: 6 images: expected from 1 to")
	o.settings.Images, o.settings.Tests = 5, 7
	require.ErrorContains(t, run(context.Background(), io.Discard, o), "-tests: cifar: 7 images: expected from 1 to")
}

// Without a GPU, -device cuda says so and what to do before anything is written, and auto is cpu: the same bits, and no
// device in the settings. With one, ResNet-20 with each norm is sampled and scored there, and its settings say so.
func TestDevices(t *testing.T) {
	small := func(device string) (options, *bytes.Buffer, error) {
		o := testOptions(filepath.Join(t.TempDir(), "out"))
		o.device, o.settings.Net, o.settings.Norm = device, twenty, batchNorm
		o.settings.Images, o.settings.Epochs, o.settings.Cycle = 64, 2, 1
		var out bytes.Buffer
		return o, &out, run(context.Background(), &out, o)
	}
	o, out, err := small("cuda")
	if torch.Library().CudaDevices == 0 {
		require.ErrorContains(t, err, "-device cuda: no GPU, so nothing was run: torch: GPU 0 was asked for")
		require.ErrorContains(t, err, "kelvin doctor says more; -device cpu runs in main memory")
		require.NoDirExists(t, o.dir)
		_, cpu, err := small("cpu")
		require.NoError(t, err)
		_, auto, err := small("auto")
		require.NoError(t, err)
		require.Equal(t, cpu.String(), auto.String())
		require.NotContains(t, cpu.String(), `"device"`)
		return
	}
	require.NoError(t, err)
	require.Contains(t, out.String(), `"device":"cuda"`)
	for _, norm := range []string{frn, noNorm} {
		o.dir, o.settings.Norm = t.TempDir(), norm
		require.NoError(t, run(context.Background(), io.Discard, o))
	}
}

// ResNet-20 with each norm is sampled by all methods, PSGLD among them. The output says of batch normalisation, and of
// it alone, that it has no posterior.
func TestNorms(t *testing.T) {
	for norm, name := range map[string]string{"": "filter response normalisation", batchNorm: "batch normalisation",
		noNorm: "no norm"} {
		o := testOptions(t.TempDir())
		o.settings.Net, o.settings.Norm, o.settings.PSGLD = twenty, norm, true
		o.settings.Images, o.settings.Epochs, o.settings.Cycle = 64, 12, 3
		var out, table bytes.Buffer
		require.NoError(t, run(context.Background(), &out, o))
		var s summary
		require.NoError(t, json.Unmarshal(out.Bytes(), &s))
		require.Len(t, s.Predictive, 5)
		for i, m := range append(slices.Clone(methods), psgld) {
			assert.Equal(t, m, s.Predictive[i].Method)
			assert.Equal(t, map[bool]int{true: 1, false: 2}[i == 0], s.Predictive[i].Networks)
			assert.Less(t, s.Predictive[i].NLL.Mean, 6.0, "%s, %s", norm, m)
		}
		o.json = false
		require.NoError(t, run(context.Background(), &table, o))
		assert.Contains(t, table.String(), "ResNet-20 with "+name+": 8 layers")
		assert.Contains(t, table.String(), "One seed has no standard errors")
		assert.Equal(t, norm == batchNorm, strings.Contains(table.String(), noPosterior))
		assert.Equal(t, norm == batchNorm, s.Caveat == noPosterior)
	}
}

// The mode of ResNet-20 with each norm tells made-up images: guessing is right for a tenth of 100, with a standard
// error of 0.03, and it is right for ten standard errors more.
func TestModesOfNorms(t *testing.T) {
	s := testOptions("").settings
	s.Net, s.Filters, s.Epochs, s.Batch = twenty, 4, 10, 32
	for _, norm := range []string{frn, batchNorm, noNorm} {
		s.Norm = norm
		k, err := newTask(s, torch.CPU, cifar.Synthetic(640, cifar.Side/2, 1), cifar.Synthetic(100, cifar.Side/2, 2))
		require.NoError(t, err)
		r, err := k.run(context.Background(), t.TempDir(), norm, setting{"SGD", 0.05, 0.9}, 1)
		require.NoError(t, err)
		assert.Greater(t, r.Single.Accuracy, 0.4, norm)
	}
}

// What is predicted of an image does not depend on the other images, with batch normalisation too: the moments are of
// training images. Of the network as it is sampled, they are of those that are predicted.
func TestPredictionsOfBatchNorm(t *testing.T) {
	s := testOptions("").settings
	s.Net, s.Norm = twenty, batchNorm
	train, test := cifar.Synthetic(100, cifar.Side/2, 1), cifar.Synthetic(60, cifar.Side/2, 2)
	var few, all [][][]float64
	var alone [2][][]float64
	for i, n := range []int{10, 60} {
		k, err := newTask(s, torch.CPU, train, test.Part(0, n))
		require.NoError(t, err)
		starts, err := k.Starts(k.start, 3, 1)
		require.NoError(t, err)
		r, err := infer.Run(context.Background(), k.Program(starts), sgmcmc.SGLD{LR: infer.Constant(0.1)},
			infer.Options{Chains: 1, Warmup: 5, Draws: 2, Observer: infer.Silent})
		require.NoError(t, err)
		logp, err := k.predictions(r.Draws)
		require.NoError(t, err)
		naive, err := k.Predictions(r.Draws, 0)
		require.NoError(t, err)
		alone[i] = naive[1][:10]
		if few, all = all, logp; i == 1 {
			for draw := range few {
				for image, row := range few[draw] {
					assert.InDeltaSlice(t, row, all[draw][image], 1e-4)
				}
			}
		}
	}
	most := 0.0
	for image, row := range alone[0] {
		for class := range row {
			most = max(most, math.Abs(row[class]-alone[1][image][class]))
		}
	}
	assert.Greater(t, most, 0.01, "the moments of ten images and of sixty")
}

// A fifth of the training images are scored on and not trained on, whatever the test images are, and one line of each
// method has the lowest loss. Images are changed here. Two runs at once give the table of one at a time.
func TestTune(t *testing.T) {
	var tables [2]bytes.Buffer
	for i := range tables {
		o := testOptions(t.TempDir())
		on := true
		o.tune, o.rates, o.momenta, o.augment, o.workers = true, "0.01,0.03", "0.9", &on, 1+i
		o.settings.PSGLD = true
		o.settings.Epochs, o.settings.Cycle, o.settings.Tests = 2, 1, 10+i
		require.NoError(t, run(context.Background(), &tables[i], o))
	}
	require.Equal(t, tables[0].String(), tables[1].String())
	var table []tried
	require.NoError(t, json.Unmarshal(tables[0].Bytes(), &table))
	require.Len(t, table, 2*len(methods)+2)
	for i, m := range append(slices.Clone(methods), psgld) {
		a, b := table[2*i], table[2*i+1]
		assert.Equal(t, []any{m, 0.01, m, 0.03}, []any{a.Method, a.LR, b.Method, b.LR})
		assert.NotEqual(t, a.Best, b.Best)
		assert.Equal(t, a.Best, a.PredictiveNLL.Mean <= b.PredictiveNLL.Mean)
		assert.InDelta(t, math.Round(32*a.Accuracy.Mean), 32*a.Accuracy.Mean, 1e-9, "of 32 images")
	}
	assert.Equal(t, perMethod{"SGD": 0.2, "SGHMC": 0.2, "SGNHT": 0.1, "ATMC": 0.2},
		perMethod{"SGD": 0.2, "SGNHT": 0.1, "ATMC": 0}.filled(methods, 0.05))
	assert.Equal(t, 0.05, perMethod(nil).filled(methods, 0.05)["ATMC"])
}

// A learning rate that is not stable has a line that says so, is not the best, and does not end the table.
func TestTuneUnstable(t *testing.T) {
	o := testOptions(t.TempDir())
	o.tune, o.rates, o.momenta = true, "0.01,100", "0.9"
	o.settings.Net, o.settings.Norm, o.settings.Epochs, o.settings.Cycle = twenty, noNorm, 4, 1
	var out, text bytes.Buffer
	require.NoError(t, run(context.Background(), &out, o))
	var table []tried
	require.NoError(t, json.Unmarshal(out.Bytes(), &table))
	says := func(row tried) []any { return []any{row.Method, row.LR, row.Unstable, row.Best} }
	require.Equal(t, []any{"SGHMC", 100.0, 1, false}, says(table[3]))
	require.Equal(t, []any{"SGHMC", 0.01, 0, true}, says(table[2]))
	require.Positive(t, table[2].PredictiveNLL.Mean)
	o.json = false
	require.NoError(t, run(context.Background(), &text, o))
	require.Contains(t, text.String(), "SGHMC     100      0.9  not stable with 1 of the seeds\n")
}

// ATMC applies max(D, ξ), as is measured of its own update; SGNHT applies ξ. The readings of a run are its least ones
// over all epochs, also where an earlier epoch has the least, and where a run goes on after a checkpoint.
func TestFrictions(t *testing.T) {
	applied, err := applies(2, []float64{-3, 0, 1.9, 2, 2.5, 40})
	require.NoError(t, err)
	assert.InDeltaSlice(t, []float64{2, 2, 2, 2, 2.5, 40}, applied, 1e-9)

	xi := func(v ...float64) torch.Tensor {
		x, err := torch.FromSlice(v)
		require.NoError(t, err)
		return x
	}
	r, ok, err := read(sgmcmc.SGNHTState{Xi: xi(3, -1, 0.5, 2)}, 2)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, reading{Friction: -0.5, Xi: -0.5, Negative: 0.25}, r)
	r, _, err = read(sgmcmc.ATMCState{Xi: xi(3, -1, 0.5, 2)}, 2)
	require.NoError(t, err)
	assert.InDelta(t, 1, r.Friction, rounding)
	assert.Equal(t, []float64{-0.5, 0}, []float64{r.Xi, r.Negative})
	_, ok, err = read(sgmcmc.SymplecticSGHMCState{}, 2)
	require.NoError(t, err)
	assert.False(t, ok)

	dir := filepath.Join(t.TempDir(), "cell")
	h, err := newThermostat(dir, 10, 2)
	require.NoError(t, err)
	at := func(step int, v float64) {
		h.Observe(infer.Progress{Step: step, State: sgmcmc.SGNHTState{Xi: xi(v, 4)}})
		require.NoError(t, h.err)
	}
	at(10, -1)
	at(11, -100)
	at(20, 6)
	h, err = newThermostat(dir, 10, 2)
	require.NoError(t, err)
	at(20, 5)
	at(30, 3)
	assert.Equal(t, []reading{{10, -0.5, -0.5, 0.5}, {20, 2, 2, 0}, {30, 1.5, 1.5, 0}}, h.readings)
	var of result
	of.frictions(h.readings)
	assert.Equal(t, result{Readings: 3, Friction: -0.5, Xi: -0.5, Negative: 0.5 / 3}, of)
	of = result{}
	of.frictions(nil)
	assert.Equal(t, result{Friction: 1, Xi: 1}, of)
	require.NoError(t, os.WriteFile(h.path, []byte("{"), 0o644))
	_, err = newThermostat(dir, 10, 2)
	require.ErrorContains(t, err, "frictions.json: unexpected end of JSON input: remove the folder")
}

// Claims are judged in pairs of one seed.
func TestClaims(t *testing.T) {
	var all []*result
	for seed := range 3 {
		for i, m := range methods {
			r := &result{Method: m, Networks: 2, Friction: 1, Xi: -2}
			r.Single.Accuracy, r.Predictive.Accuracy = float64(i)+0.1*float64(seed), float64(i)+0.2*float64(seed)+0.5
			r.Predictive.NLL, r.Half = 4-float64(i), 4.5-float64(i)
			r.Negative = 0.01
			all = append(all, r)
		}
	}
	s := summarise(settings{}, all)
	require.Equal(t, 3, s.Seeds)
	assert.Equal(t, claim{"one network of ATMC is more accurate than SGD", "difference 3.0000 ± 0.0000", true, 3},
		s.Claims[0])
	assert.True(t, s.Claims[1].Holds)
	assert.False(t, s.Claims[4].Holds, "no ECE is better than another")
	never, figure := "ATMC's friction is never below D", "least friction %.6f D, of thermostats from -2.000 D on"
	assert.Equal(t, claim{never, fmt.Sprintf(figure, 1.0), true, 0}, s.Claims[6])
	assert.Equal(t, claim{"SGNHT's friction is negative in places",
		"least friction 1.000 of the one set; 1 % are negative", true, 0}, s.Claims[7])
	// One reading of one seed is enough against the first, and none may be below 0 against the second.
	all[7].Friction, all[2].Negative, all[6].Negative, all[10].Negative = 0.999, 0, 0, 0
	other := summarise(settings{}, all)
	assert.Equal(t, claim{never, fmt.Sprintf(figure, 0.999), false, 0}, other.Claims[6])
	assert.False(t, other.Claims[7].Holds)
	assert.InDelta(t, 3.1, s.Single[3].Accuracy.Mean, 1e-12)

	// One seed tells no difference from chance.
	one := summarise(settings{}, all[:len(methods)])
	assert.Equal(t, claim{"one network of ATMC is more accurate than SGD", "difference 3.0000 ± 0.0000", false, 1},
		one.Claims[0])
	var text bytes.Buffer
	require.NoError(t, one.print(&text))
	assert.Contains(t, text.String(), "over one seed.\n")
	assert.Contains(t, text.String(), "\n?    one network of ATMC is more accurate than SGD")
	assert.Contains(t, text.String(), "\nyes  ATMC's friction is never below D")
}
