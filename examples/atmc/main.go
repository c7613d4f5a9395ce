// Command atmc samples a residual network on CIFAR-10 with the adaptive thermostat and with what it is to better, after
// Heek and Kalchbrenner 2019 ("Bayesian Inference for Large Scale Image Classification"): SGNHT, SGHMC, and SGD. The
// network is their ResNet++ without batch normalisation, with their prior, and small: 8 layers of 8 filters for images
// of 16 by 16 pixels by default, where theirs has 56 layers of 32 filters for 32 by 32.
//
//	go run ./examples/atmc                         on made-up images
//	go run ./examples/atmc -data DIR               on CIFAR-10
//	go run ./examples/atmc -data DIR -convert ZIP  makes DIR from an archive of images by class
//
// The paper's size is -depth 56 -filters 32 -whole -images 50000 -tests 10000 -batch 128 -epochs 1000 -cycle 50.
//
// DIR is the folder of the binary version of CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html), unpacked. Runs are saved
// as they go, in -dir: what was killed goes on where it was, and ends with the same table.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kelvin-ppl/kelvin/examples/internal/cifar"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	var o options
	s := &o.settings
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "atmc"), "folder for the picture and for what has been computed")
	flag.StringVar(&o.data, "data", "", "folder of CIFAR-10; none are made-up images")
	flag.StringVar(&o.convert, "convert", "", "an archive of images by class, from which -data is made")
	flag.Int64Var(&s.Depth, "depth", 8, "layers of the network, 6 k + 2")
	flag.Int64Var(&s.Filters, "filters", 8, "filters of its first stage")
	flag.BoolVar(&s.Whole, "whole", false, "images of 32 by 32 pixels instead of 16 by 16")
	flag.IntVar(&s.Images, "images", 5000, "training images")
	flag.IntVar(&s.Tests, "tests", 2000, "test images")
	flag.Int64Var(&s.Epochs, "epochs", 24, "passes over the training images")
	flag.Int64Var(&s.Cycle, "cycle", 3, "passes in a cycle; each leaves a network, but for the first half of them")
	flag.Int64Var(&s.Batch, "batch", 64, "images of a batch")
	flag.Float64Var(&s.LR, "lr", 0.05, "learning rate ℓ of SGD, and of the samplers in the same terms")
	flag.Float64Var(&s.Momentum, "momentum", 0.9, "momentum of SGD, likewise")
	flag.IntVar(&o.workers, "workers", min(runtime.NumCPU(), 2), "runs at once; the results do not depend on it")
	flag.IntVar(&o.seeds, "seeds", 2, "number of seeds, of starts, batches and noise")
	flag.Uint64Var(&s.Seed, "seed", 1, "the first seed, and that of the choice of images")
	command.Main("atmc", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json               bool
	dir, data, convert string
	seeds, workers     int
	settings           settings
}

// settings are everything that the results depend on, besides the method and the seed of a run.
type settings struct {
	Version  int     `json:"version"`
	Real     bool    `json:"real"` // CIFAR-10, not made-up images
	Depth    int64   `json:"depth"`
	Filters  int64   `json:"filters"`
	Whole    bool    `json:"whole"`
	Images   int     `json:"images"`
	Tests    int     `json:"tests"`
	Epochs   int64   `json:"epochs"`
	Cycle    int64   `json:"cycle"`
	Batch    int64   `json:"batch"`
	LR       float64 `json:"learning_rate"`
	Momentum float64 `json:"momentum"`
	Seed     uint64  `json:"seed"`
}

func run(ctx context.Context, w io.Writer, o options) error {
	if o.convert != "" {
		if o.data == "" {
			return fmt.Errorf("-convert needs -data, the folder to write")
		}
		return cifar.Convert(o.convert, o.data)
	}
	s := o.settings
	s.Version, s.Real = 1, o.data != ""
	if err := check(s, o.seeds, o.workers); err != nil {
		return err
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	train, test, err := images(o.data, s)
	if err != nil {
		return err
	}
	t, err := newTask(s, train, test)
	if err != nil {
		return err
	}
	g := &grid.Grid[*result]{Settings: s, Dir: o.dir, Workers: o.workers}
	for i := range o.seeds {
		for _, m := range methods {
			g.Cells = append(g.Cells, t.cell(m, s.Seed+uint64(i)))
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
		value, most int64
	}{{"images", int64(s.Images), mostTraining}, {"tests", int64(s.Tests), mostTests}, {"filters", s.Filters, mostFilters},
		{"epochs", s.Epochs, most}, {"cycle", s.Cycle, most}, {"batch", s.Batch, mostTraining},
		{"seeds", int64(seeds), most}, {"workers", int64(workers), most}} {
		if v.value < 1 || v.value > v.most {
			return fmt.Errorf("-%s is %d: it must be from 1 to %d", v.flag, v.value, v.most)
		}
	}
	if s.Depth < 8 || s.Depth > mostDepth || (s.Depth-2)%6 != 0 {
		return fmt.Errorf("-depth is %d: it must be 6 k + 2 with k from 1 to %d, such as 20", s.Depth, (mostDepth-2)/6)
	}
	if s.Epochs < 2*s.Cycle || s.Epochs%s.Cycle != 0 {
		return fmt.Errorf("-epochs is %d with a -cycle of %d: it must be a multiple of the cycle, and two cycles or more",
			s.Epochs, s.Cycle)
	}
	if !(s.LR > 0 && s.LR <= 100) { // NaN is refused too
		return fmt.Errorf("-lr is %g: it must be above 0 and at most 100", s.LR)
	}
	if !(s.Momentum > 0 && s.Momentum < 1) {
		return fmt.Errorf("-momentum is %g: it must be between 0 and 1", s.Momentum)
	}
	return nil
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
