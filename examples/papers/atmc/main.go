// Command atmc samples a residual network on CIFAR-10 with the adaptive thermostat and with what it is to better, after
// Heek and Kalchbrenner 2019 ("Bayesian Inference for Large Scale Image Classification"): SGNHT, SGHMC, and SGD. The
// network is their ResNet++ without batch normalisation, with their prior, and small: 8 layers of 8 filters for images
// of 16 by 16 pixels by default, where theirs has 56 layers of 32 filters for 32 by 32.
//
//	go run ./examples/papers/atmc                         on made-up images
//	go run ./examples/papers/atmc -net resnet20           with a residual network that has norms; -norm says which
//	go run ./examples/papers/atmc -psgld                  with PSGLD as a fifth method
//	go run ./examples/papers/atmc -data DIR               on CIFAR-10
//	go run ./examples/papers/atmc -data DIR -convert ZIP  makes DIR from an archive of images by class
//
// -preset atmc-cifar has the settings of the paper, and wenzel-resnet those of Wenzel et al. 2020 for ResNet-20. Other
// flags change them: -preset atmc-cifar -images 20000 -epochs 250 -cycle 25 -start 50.
//
// Two cores finish -images 20000 -tests 10000 -epochs 24 -cycle 3 -seeds 3 in 20 minutes. -tune tries learning rates
// and momenta on training images: it trains on four fifths of -images, and scores on the others. The test images are
// not looked at. It chose the default learning rates, with 20,000 images and 4 epochs.
//
// -net resnet20 is the network of Wenzel et al. 2020 in the place of ResNet++, with the prior N(0, 1) of every number.
// With -norm frn its norm is filter response normalisation, with -norm none it has no norm, and both have a posterior.
// With -norm batch it is batch normalisation, whose moments are those of the minibatch: the likelihood of an image
// depends on the other images of its batch, so the minibatches estimate the log likelihood of no model, and there is no
// posterior that the samplers could be right about. Predictions then have the moments of training images, held fixed.
//
// -device cuda trains and scores on the first GPU, where -net resnet20 -depth 20 -filters 16 -whole is ResNet-20 of its
// published size. The default, auto, is the first GPU where there is one, else main memory.
//
// DIR is the folder of the binary version of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html), unpacked. Runs are saved
// as they go, in -dir: what was killed goes on where it was, and ends with the same table.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/cifar"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

// usage comes before the flags in -help.
const usage = `Samples a residual network on CIFAR-10 by SGD, SGHMC, SGNHT and ATMC.

Two cores finish this in 20 minutes:
  atmc -data DIR -images 20000 -tests 10000 -epochs 24 -cycle 3 -seeds 3
-tune tries learning rates and momenta. It trains on four fifths of -images and scores on the others. The test images
are not looked at. It chose the default learning rates, with ResNet++, 20,000 images and 4 epochs.

-net resnet20 is a network with norms. -norm frn and -norm none have a posterior. -norm batch has none: the likelihood
of an image depends on the other images of its minibatch, and the samplers are right about no known distribution.

`

func main() {
	var o options
	s := &o.settings
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "atmc"), "folder for the picture and for what has been computed")
	flag.StringVar(&o.data, "data", "", "folder of CIFAR-10; none are made-up images")
	flag.StringVar(&o.convert, "convert", "", "an archive of images by class, from which -data is made")
	flag.StringVar(&s.Net, "net", plusPlus, "the network: resnet++, or resnet20 with the prior N(0, 1)")
	flag.StringVar(&s.Norm, "norm", "", "norm of -net resnet20: frn (filter response normalisation), batch (batch "+
		"normalisation with the moments of the minibatch, which has no posterior) or none, which needs small learning "+
		"rates; frn by default")
	flag.BoolVar(&s.PSGLD, "psgld", false, "PSGLD as a fifth method; its step is a hundredth of its learning rate")
	flag.IntVar(&s.Depth, "depth", 8, "layers of the network, 6 k + 2")
	flag.IntVar(&s.Filters, "filters", 8, "filters of its first stage")
	flag.BoolVar(&s.Whole, "whole", false, "images of 32 by 32 pixels instead of 16 by 16")
	flag.IntVar(&s.Images, "images", 5000, "training images")
	flag.IntVar(&s.Tests, "tests", 2000, "test images")
	flag.IntVar(&s.Epochs, "epochs", 24, "passes over the training images")
	flag.IntVar(&s.Cycle, "cycle", 3, "passes in a cycle; each leaves a network, but for the first half of them")
	flag.IntVar(&s.Batch, "batch", 64, "images of a batch")
	flag.IntVar(&s.Start, "start", 0, "passes before the first cycle that leaves a network; 0 is half of them")
	flag.IntVar(&s.SGDEpochs, "sgd-epochs", 0, "passes of SGD; 0 is -epochs")
	flag.Float64Var(&s.Temperature, "temperature", 0, "temperature of SGHMC, SGNHT and ATMC; 0 is 1, the Bayes posterior")
	flag.BoolVar(&s.Prepared, "prepared", false, "SGHMC as Wenzel et al. have it: masses, T = 0 and constant steps until "+
		"-start, and a temperature that rises in the cycle before")
	flag.StringVar(&s.Only, "only", "", "methods with commas, such as SGD,SGHMC; all by default")
	flag.Float64Var(&o.move, "move", 0, "how far an element of a sampler moves in a step on average, in the place of its "+
		"learning rate, which is images·move²")
	name := flag.String("preset", "", "flags with the settings of a paper: "+preset.Names(presets))
	flag.Func("lr-psgld", "learning rate of PSGLD, a hundred times its step; 0, that of -lr, by default",
		number(&o.lr, psgld))
	for _, m := range methods {
		if m != "SGD" {
			flag.Func("lr-"+strings.ToLower(m), "learning rate of "+m+" in the terms of SGD; 0, that of -lr, by default",
				number(&o.lr, m))
			flag.Func("momentum-"+strings.ToLower(m), "momentum of "+m+" in the terms of SGD; 0, that of -momentum, by "+
				"default", number(&o.momentum, m))
			continue
		}
		flag.Func("lr", "learning rate ℓ of SGD, and of samplers that have none of their own; 0.1 by default, and "+
			"0.03 for SGNHT",
			number(&o.lr, m))
		flag.Func("momentum", "momentum of SGD, likewise; 0.9 by default", number(&o.momentum, m))
	}
	flag.BoolFunc("augment", "flips and crops of the training images; on by default with -data", func(text string) error {
		on, err := strconv.ParseBool(text)
		o.augment = &on
		return err
	})
	flag.BoolVar(&o.tune, "tune", false, "try learning rates and momenta for each method: train on four fifths of the "+
		"training images, and score on the others")
	flag.StringVar(&o.rates, "rates", "0.01,0.03,0.1,0.3", "learning rates of -tune")
	flag.StringVar(&o.momenta, "momenta", "0.9", "momenta of -tune")
	flag.StringVar(&o.device, "device", "auto", "where networks are trained and scored: cuda, the first GPU, cpu, or "+
		"auto, the first GPU where there is one")
	flag.IntVar(&o.workers, "workers", min(runtime.NumCPU(), 2), "runs at once; the results do not depend on it")
	flag.IntVar(&o.seeds, "seeds", 2, "number of seeds, of starts, batches and noise")
	flag.Uint64Var(&s.Seed, "seed", 1, "the first seed, and that of the choice of images")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	command.Main("atmc", func(ctx context.Context) error {
		if err := preset.Apply(flag.CommandLine, *name, presets); err != nil {
			return err
		}
		return run(ctx, os.Stdout, o)
	})
}

type options struct {
	json               bool
	dir, data, convert string
	device             string // auto, cpu or cuda
	seeds, workers     int
	lr, momentum       perMethod // as given by flags
	move               float64
	augment            *bool // nil where it was not said
	tune               bool
	rates, momenta     string
	settings           settings
}

// perMethod has a number for each method, or for some.
type perMethod map[string]float64

// number reads a flag into the number of a method.
func number(to *perMethod, method string) func(string) error {
	return func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if *to == nil {
			*to = perMethod{}
		}
		(*to)[method] = v
		return err
	}
}

// filled has a number for each method. A method without one, or with 0, takes that of SGD. SGD has a default.
func (p perMethod) filled(methods []string, byDefault float64) perMethod {
	all := perMethod{}
	if v, ok := p["SGD"]; ok {
		byDefault = v
	}
	for _, m := range methods {
		if all[m] = p[m]; all[m] == 0 {
			all[m] = byDefault
		}
	}
	return all
}

// settings are everything that the results depend on, besides the method and the seed of a run.
type settings struct {
	Version int  `json:"version"`
	Real    bool `json:"real"` // CIFAR-10, not made-up images
	// Fingerprints of the images and labels that are trained with, and of those that are scored.
	TrainSHA string `json:"train_sha256"`
	TestSHA  string `json:"test_sha256"`
	Net      string `json:"net"`
	Norm     string `json:"norm"` // of resnet20
	PSGLD    bool   `json:"psgld"`
	Depth    int    `json:"depth"`
	Filters  int    `json:"filters"`
	Whole    bool   `json:"whole"`
	Images   int    `json:"images"`
	Tests    int    `json:"tests"`
	Epochs   int    `json:"epochs"`
	Cycle    int    `json:"cycle"`
	Batch    int    `json:"batch"`
	// Presets have these.
	Start       int     `json:"start,omitempty"`
	SGDEpochs   int     `json:"sgd_epochs,omitempty"`
	Temperature float64 `json:"temperature,omitempty"`
	Prepared    bool    `json:"prepared,omitempty"`
	Only        string  `json:"only,omitempty"`
	// Of each method, none with Tune; then the file of a cell is named after them.
	LR       perMethod `json:"learning_rate"`
	Momentum perMethod `json:"momentum"`
	Augment  bool      `json:"augment"`
	Tune     bool      `json:"tune"` // scored on training images that are held out
	Seed     uint64    `json:"seed"`
	// cuda, or empty in main memory: the numbers of a GPU differ in roundings.
	Device string `json:"device,omitempty"`
}

// with are the settings with the fingerprints of the images.
func (s settings) with(train, test cifar.Data) settings {
	s.TrainSHA, s.TestSHA = grid.Fingerprint(train.Pixels, train.Labels), grid.Fingerprint(test.Pixels, test.Labels)
	return s
}

// The networks, and the norms of the second.
const (
	plusPlus  = "resnet++"
	twenty    = "resnet20"
	frn       = "frn"
	batchNorm = "batch"
	noNorm    = "none"
)

// psgld is the method that is there where it is asked for.
const psgld = "PSGLD"

// methods are those of a run, in the order of the table.
func (s settings) methods() []string {
	all := slices.Clone(methods)
	if s.PSGLD {
		all = append(all, psgld)
	}
	if s.Only == "" {
		return all
	}
	return slices.DeleteFunc(all, func(m string) bool { return !slices.Contains(strings.Split(s.Only, ","), m) })
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.convert != "" {
		if o.data == "" {
			return fmt.Errorf("-convert needs -data, the folder to write")
		}
		return cifar.Convert(o.convert, o.data)
	}
	s := o.settings
	s.Version, s.Real, s.Tune, s.Augment = 3, o.data != "", o.tune, o.data != ""
	if o.augment != nil {
		s.Augment = *o.augment
	}
	if s.Net == "" {
		s.Net = plusPlus
	}
	if s.Net == twenty && s.Norm == "" {
		s.Norm = frn
	}
	if o.lr[psgld] != 0 && !s.PSGLD {
		return errors.New("-lr-psgld has an effect only with -psgld: leave it out")
	}
	s.LR, s.Momentum = o.lr.filled(s.methods(), 0.1), o.momentum.filled(methods, 0.9)
	for _, m := range methods[1:] {
		if o.move > 0 && o.lr[m] == 0 {
			s.LR[m] = float64(s.Images) * o.move * o.move
		}
	}
	if o.move == 0 && o.lr["SGD"] == 0 && o.lr["SGNHT"] == 0 {
		s.LR["SGNHT"] = 0.03 // the best of -tune, as 0.1 is of the others
	}
	if err := check(s, o.seeds, o.workers); err != nil {
		return err
	}
	device, err := deviceOf(o.device)
	if err != nil {
		return err
	}
	if device != torch.CPU {
		s.Device = "cuda"
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	if o.tune {
		return tune(ctx, w, o, s, device)
	}
	train, test, err := images(o.data, s)
	if err != nil {
		return err
	}
	t, err := newTask(s, device, train, test)
	if err != nil {
		return err
	}
	s = s.with(train, test)
	g := &grid.Grid[*result]{Settings: s, Dir: o.dir, Workers: o.workers}
	for i := range o.seeds {
		for _, m := range s.methods() {
			g.Cells = append(g.Cells, t.cell(setting{m, s.LR[m], s.Momentum[m]}, fmt.Sprintf("%s-%d", m, s.Seed+uint64(i)),
				s.Seed+uint64(i)))
		}
	}
	all, err := g.Run(ctx)
	if err != nil {
		return err
	}
	sum := summarise(s, all)
	sum.Parameters = t.Net.NumParams()
	if err := sum.draw(filepath.Join(o.dir, "calibration.png"), all); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(sum)
	}
	return sum.print(w)
}

// The most of each setting: of images what CIFAR-10 has, of others what fits into memory and into whole numbers.
const (
	mostTraining = 50000
	mostTests    = 10000
	mostFilters  = 1024
	mostDepth    = 1202
	most         = 1_000_000
)

// check says which setting is no good, and what is allowed.
func check(s settings, seeds, workers int) error {
	for _, v := range []struct {
		flag        string
		value, most int
	}{{"images", s.Images, mostTraining}, {"tests", s.Tests, mostTests}, {"filters", s.Filters, mostFilters},
		{"epochs", s.Epochs, most}, {"cycle", s.Cycle, most}, {"batch", s.Batch, mostTraining},
		{"seeds", seeds, most}, {"workers", workers, most}} {
		if v.value < 1 || v.value > v.most {
			return fmt.Errorf("-%s is %d: it must be from 1 to %d", v.flag, v.value, v.most)
		}
	}
	if s.Depth < 8 || s.Depth > mostDepth || (s.Depth-2)%6 != 0 {
		return fmt.Errorf("-depth is %d: it must be 6 k + 2 with k from 1 to %d, such as 20", s.Depth, (mostDepth-2)/6)
	}
	switch {
	case s.Net != plusPlus && s.Net != twenty:
		return fmt.Errorf("-net is %q: it must be resnet++ or resnet20", s.Net)
	case s.Net == plusPlus && s.Norm != "":
		return fmt.Errorf("-norm is %q with -net resnet++, which has weight normalisation: it is for -net resnet20", s.Norm)
	case s.Net == twenty && s.Norm != frn && s.Norm != batchNorm && s.Norm != noNorm:
		return fmt.Errorf("-norm is %q: it must be frn, batch or none", s.Norm)
	}
	if s.Epochs < 2*s.Cycle || s.Epochs%s.Cycle != 0 {
		return fmt.Errorf("-epochs is %d with a -cycle of %d: it must be a multiple of the cycle, and two cycles or more",
			s.Epochs, s.Cycle)
	}
	if s.Start < 0 || s.Start >= s.Epochs || s.Start%s.Cycle != 0 || (s.Prepared && s.Start == 0) {
		return fmt.Errorf("-start is %d: it must be a multiple of -cycle, below -epochs, and above 0 with -prepared",
			s.Start)
	}
	if s.Temperature < 0 || s.SGDEpochs < 0 || len(s.methods()) == 0 {
		return fmt.Errorf("-temperature is %g, -sgd-epochs %d and -only %q: none may be below 0, and one of %s must stay",
			s.Temperature, s.SGDEpochs, s.Only, strings.Join(methods, ","))
	}
	for _, m := range s.methods() {
		suffix := ""
		if m != "SGD" {
			suffix = "-" + strings.ToLower(m)
		}
		if err := checkStep(m, "lr"+suffix, s.LR[m], "momentum"+suffix, s.Momentum[m]); err != nil {
			return err
		}
	}
	return nil
}

// checkStep looks at a learning rate and a momentum, which PSGLD lacks, and knows the flags that they come from. NaN is
// refused too.
func checkStep(method, lrFlag string, lr float64, momentumFlag string, momentum float64) error {
	if !(lr > 0 && lr <= 100) {
		return fmt.Errorf("-%s is %g: it must be above 0 and at most 100", lrFlag, lr)
	}
	if method != psgld && !(momentum > 0 && momentum < 1) {
		return fmt.Errorf("-%s is %g: it must be between 0 and 1", momentumFlag, momentum)
	}
	return nil
}

// deviceOf is the device of a flag.
func deviceOf(flag string) (gotch.Device, error) {
	switch flag {
	case "auto":
		return torch.BestDevice(), nil
	case "cpu":
		return torch.CPU, nil
	case "cuda":
		device, err := torch.CUDA(0)
		if err != nil {
			err = fmt.Errorf("-device cuda: no GPU, so nothing was run: %w (kelvin doctor says more; -device cpu runs in main "+
				"memory)", err)
		}
		return device, err
	}
	return torch.CPU, fmt.Errorf("-device is %q: it must be auto, cpu or cuda", flag)
}

// images are those to train with and to test on.
func images(dir string, s settings) (train, test cifar.Data, err error) {
	side := cifar.Side
	if !s.Whole {
		side /= 2
	}
	if dir == "" {
		return cifar.Synthetic(s.Images, side, s.Seed), cifar.Synthetic(s.Tests, side, s.Seed+1), nil
	}
	if train, test, err = cifar.Read(dir); err != nil {
		return train, test, err
	}
	if train, err = train.Shuffled(s.Images, s.Seed); err != nil {
		return train, test, fmt.Errorf("-images: %w in %s", err, dir)
	}
	if test, err = test.Shuffled(s.Tests, s.Seed); err != nil {
		return train, test, fmt.Errorf("-tests: %w in %s", err, dir)
	}
	if !s.Whole {
		train, test = train.Halved(), test.Halved()
	}
	return train, test, nil
}
