// Command hypotheses tests explanations of the cold-posterior effect on small problems: those of Wenzel et al. 2020
// ("How Good is the Bayes Posterior in Deep Neural Networks Really?") that need no residual network. Each is one flag;
// without any of them all are run.
//
//	-agreement    HMC and SGHMC on data that are drawn from the prior, at depths 1 to 3 and several temperatures
//	-simulation   with and without estimated masses, and with and without cyclical steps, at T = 1
//	-batch        sizes of the minibatch
//	-data         numbers of training images
//	-capacity     widths and depths of the network
//	-prior        variances of the prior, and He priors
//	-predictive   which classes networks that are drawn from the prior predict
//	-sandwich     SGD, then SGHMC at T = 1, then SGD again
//	-limit        the loss of an ensemble of infinitely many networks, at several temperatures
//	-tune         learning rates of the base settings, scored on images that the other tests do not score
//
//	go run ./examples/papers/hypotheses              one table, and out/hypotheses/table.md
//	go run ./examples/papers/hypotheses -size 4      runs four times as long
//	go run ./examples/papers/hypotheses -preset hmc-sghmc-25   -agreement with the chains of the paper; see preset.go
//
// A table of some tests goes to a file that is named after them, as table-predictive.md, and leaves the others alone.
//
// What is tuned is the learning rate, for the settings that all tests start from and T = 1: -tune chose it. Nothing
// else is. A row with another batch, network or prior, and every temperature, has that learning rate too, so that it
// may simulate worse than it could: the kinetic temperatures beside it say whether it does.
//
// The problem is handwritten digits of 8 by 8 pixels but for -agreement. Every trial is stored when it is done. A study
// that was interrupted, or killed, goes on with the first trial that is missing, and ends with the same table. Trials
// with equal settings are run once.
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
	"strings"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
	"golang.org/x/term"
)

func main() {
	o := options{chosen: map[string]*bool{}}
	for _, t := range tests {
		o.chosen[t.name] = flag.Bool(t.name, false, t.about)
	}
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.BoolVar(&o.quick, "quick", false, "tiny runs, in the folder quick of -dir: a look at the output")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "hypotheses"), "folder for the table and what has been computed")
	flag.Float64Var(&o.size, "size", 1, "length of the runs: 1 is minutes of two cores for most of the tests")
	flag.IntVar(&o.seeds, "seeds", 3, "number of seeds: of starts, streams and shuffles, and of data drawn from the prior")
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "trials computed at once; the results do not depend on it")
	flag.StringVar(&o.preset, "preset", "", "-agreement with the settings of the paper: "+preset.Names(presets))
	command.Main("hypotheses", func(ctx context.Context) error {
		if term.IsTerminal(int(os.Stderr.Fd())) {
			o.progress = os.Stderr
		}
		return run(ctx, os.Stdout, o)
	})
}

type options struct {
	chosen         map[string]*bool // tests by name
	json, quick    bool
	dir, preset    string
	size           float64
	seeds, workers int
	seed           uint64
	progress       io.Writer // nil for none
}

// mostSize is far above what anyone waits for: at 1 most of the tests take minutes of two cores.
const mostSize = 1000

func run(ctx context.Context, w io.Writer, o options) error {
	if !(o.size > 0) || o.seeds < 1 || o.workers < 1 {
		return fmt.Errorf("size is %g, seeds %d and workers %d, all must be above 0", o.size, o.seeds, o.workers)
	}
	if o.size > mostSize {
		return fmt.Errorf("size is %g, it must be at most %d", o.size, mostSize)
	}
	// The operations are small, and trials run side by side.
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	if o.quick {
		o.dir = filepath.Join(o.dir, "quick")
	}
	file := "table"
	if o.preset != "" {
		if _, err := preset.Pick(o.preset, presets); err != nil {
			return err
		}
		if o.quick || o.size != 1 {
			return errors.New("-preset has lengths of its own: leave out -quick and -size")
		}
		on := true
		o.chosen, file = map[string]*bool{"agreement": &on}, "table-"+o.preset
	}
	var chosen []test
	for _, t := range tests {
		if on := o.chosen[t.name]; on != nil && *on {
			chosen, file = append(chosen, t), file+"-"+t.name
		}
	}
	if len(chosen) == 0 {
		chosen = slices.DeleteFunc(slices.Clone(tests), func(t test) bool { return t.name == "tune" })
	}
	var reports []report
	s := study{dir: o.dir, workers: o.workers, progress: o.progress}
	for _, t := range chosen {
		s.trials = append(s.trials, t.trials(o)...)
	}
	results, err := s.run(ctx)
	if err != nil {
		return err
	}
	for _, t := range chosen {
		r, err := t.report(o, results)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	var table strings.Builder
	printReports(&table, reports)
	if err := atomicfile.Write(filepath.Join(o.dir, file+".md"), []byte(table.String()), 0o644); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(reports)
	}
	_, err = io.WriteString(w, table.String())
	return err
}
