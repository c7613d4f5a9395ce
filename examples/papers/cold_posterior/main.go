// Command cold_posterior asks at which temperature a Bayesian neural network predicts best (Wenzel et al. 2020, "How
// Good is the Bayes Posterior in Deep Neural Networks Really?"): a perceptron that reads handwritten digits, its
// posterior to the power 1/T sampled with cyclical SGHMC, with SGHMC at constant steps, and with parallel chains of
// which the last state is kept, for T from 0.001 to 3.2. T = 1 is the Bayes posterior, and T = 0 optimisation: SGD, and
// deep ensembles. Test loss, accuracy and calibration are printed beside temperatures measured in the runs, which say
// whether the posterior was simulated at all.
//
//	go run ./examples/papers/cold_posterior          a table, and the pictures in out/cold_posterior
//	go run ./examples/papers/cold_posterior -json    one JSON object
//	go run ./examples/papers/cold_posterior -quick   a small sweep, to see it work
//	go run ./examples/papers/cold_posterior -problem imdb -data DIR   a CNN-LSTM on reviews of films
//	go run ./examples/papers/cold_posterior -methods   all methods over seeds: nine minutes of a core
//	go run ./examples/papers/cold_posterior -methods -problem imdb -data DIR   the same on reviews: an hour of a core
//	go run ./examples/papers/cold_posterior -preset wenzel-table2 -data DIR   settings of a paper: see preset.go
//
// DIR is the folder of the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment), unpacked; without -data
// it reads a few reviews that are made up. Without -methods the reviews have no temperatures: it is optimisation alone,
// with the epoch that is best on reviews that are held out.
//
// The methods are maximum likelihood, MAP, a deep ensemble, SGLD, and SGHMC with and without estimated masses and
// cycles, each in one chain and as the last states of some; and a variational fit and two Laplace approximations, of
// which draws or the linearised network predict.
//
// With -methods -problem imdb, -reviews and -epochs are the reviews and the passes over them to a mode. A variational
// fit makes half as many passes, and a cycle of a sampler a quarter. A flag that has no effect beside the others is
// refused.
//
// Without -methods it takes about five minutes on two cores. A sweep that was interrupted, or killed, goes on where it
// stopped when it is started again, and ends with the same table. So does -methods. The reviews without -methods save
// nothing, and begin anew.
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
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/classify"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/examples/internal/digits"
	"github.com/kelvin-ppl/kelvin/examples/internal/grid"
	"github.com/kelvin-ppl/kelvin/examples/internal/preset"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
	"golang.org/x/term"
)

// usage comes before the flags in -help.
const usage = `Asks at which temperature a Bayesian neural network predicts best.

  cold_posterior                                   digits at nine temperatures: five minutes of two cores
  cold_posterior -methods                          all methods on digits: nine minutes of one core
  cold_posterior -problem imdb -data DIR           the mode of a CNN-LSTM on reviews: about a minute
  cold_posterior -methods -problem imdb -data DIR  all methods on 5000 reviews: an hour of one core
  cold_posterior -preset wenzel-table2 -data DIR   reviews with the settings of a paper: days of one core

Without -data the reviews are made up, and few. A run that was killed goes on where it stopped; the mode of the
CNN-LSTM alone, which is -problem imdb without -methods, saves nothing and begins anew.

`

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")
	flag.BoolVar(&o.quick, "quick", false, "a small sweep of a few seconds, in the folder quick of -dir")
	flag.StringVar(&o.dir, "dir", filepath.Join("out", "cold_posterior"),
		"folder for the pictures, and for what has been computed")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "cells computed at once; the results do not depend on it")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the starts, the random streams and the shuffles")
	flag.StringVar(&o.problem, "problem", "digits", "digits, or imdb: the mode of the CNN-LSTM on reviews of films")
	flag.StringVar(&o.data, "data", "", "folder of the reviews, for -problem imdb; none are made-up reviews")
	flag.IntVar(&o.reviews, "reviews", 10000, "reviews to train with, for -problem imdb; with -methods they are 5000 "+
		"where the flag is not given")
	flag.IntVar(&o.epochs, "epochs", 2, "passes over them, for -problem imdb; with -methods those to a mode, of which "+
		"a variational fit makes half, and a cycle of a sampler is a quarter")
	flag.Float64Var(&o.variance, "variance", 1, "variance of the prior of the weights, for -problem imdb")
	flag.BoolVar(&o.methods, "methods", false, "all methods at some temperatures, over seeds, as one table: nine "+
		"minutes of one core, and an hour with -problem imdb")
	flag.StringVar(&o.preset, "preset", "", "reviews with the settings of a paper, in a folder of its own in -dir: "+
		preset.Names(presets)+"; with -epochs all lengths are multiplied by epochs/published epochs")
	flag.StringVar(&o.temperatures, "temperatures", "", "temperatures of -preset, with commas, in the place of its own")
	flag.IntVar(&o.seeds, "seeds", 0, "number of seeds of -preset; 0 is its own")
	flag.Float64Var(&o.embedding, "embedding", 0.05, "standard deviation of the embeddings at the start, for -problem "+
		"imdb with -data")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	command.Main("cold_posterior", func(ctx context.Context) error {
		o.given = map[string]bool{}
		flag.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
		if term.IsTerminal(int(os.Stderr.Fd())) {
			o.observer = line()
		}
		began := time.Now()
		err := run(ctx, os.Stdout, o)
		if err == nil {
			fmt.Fprintf(os.Stderr, "%.0f s\n", time.Since(began).Seconds())
		}
		return err
	})
}

// line shows the progress of the sweep on one line of a terminal.
func line() infer.Observer {
	var last time.Time
	return infer.ObserverFunc(func(p infer.Progress) {
		if now := time.Now(); now.Sub(last) > time.Second || p.Step == p.Steps {
			last = now
			fmt.Fprintf(os.Stderr, "\r\x1b[K%d of %d updates", p.Step, p.Steps)
		}
	})
}

type options struct {
	json, quick bool
	dir         string
	workers     int
	seed        uint64
	every       int // updates between checkpoints; 0 is the default
	observer    infer.Observer

	preset, temperatures string
	seeds                int

	methods             bool // all methods
	problem, data       string
	reviews             int
	epochs              int
	variance, embedding float64
	given               map[string]bool // the flags that were
}

// useless is an error for a flag that was given and has no effect beside the others.
func (o options) useless() error {
	reviews := o.problem == "imdb"
	for _, c := range []struct {
		flag   string
		has    bool
		effect string
	}{
		{"data", reviews, "with -problem imdb"},
		{"reviews", reviews, "with -problem imdb"},
		{"epochs", reviews, "with -problem imdb"},
		{"variance", reviews, "with -problem imdb"},
		{"embedding", reviews && o.data != "", "with -problem imdb and -data: made-up reviews have a start of their own"},
		{"reviews", !o.quick && o.preset == "", "without -quick and -preset, whose numbers of reviews are fixed"},
		{"variance", o.preset == "", "without -preset, which has one"},
		{"epochs", !o.quick, "without -quick, whose number of updates is fixed"},
		{"temperatures", o.preset != "", "with -preset"},
		{"seeds", o.preset != "", "with -preset"},
		{"quick", !reviews || o.methods, "on digits, and with -methods"},
	} {
		if o.given[c.flag] && !c.has {
			return fmt.Errorf("-%s has an effect only %s: leave it out", c.flag, c.effect)
		}
	}
	return nil
}

// summary is the JSON output.
type summary struct {
	Settings settings  `json:"settings"`
	Cells    []*result `json:"cells"`

	task *classify.Task
	dir  string
}

func run(ctx context.Context, w io.Writer, o options) error {
	switch {
	case o.problem != "" && o.problem != "imdb" && o.problem != "digits":
		return fmt.Errorf("problem is %q, it must be digits or imdb", o.problem)
	case o.preset != "" && o.quick:
		return errors.New("-quick and -preset exclude each other")
	case o.preset != "":
		o.problem, o.methods = "imdb", true
	}
	if err := o.useless(); err != nil {
		return err
	}
	switch {
	case o.methods:
		return runStudy(ctx, w, o)
	case o.problem == "imdb":
		return runReviews(ctx, w, o)
	}
	s, err := compute(ctx, o)
	if err != nil {
		return err
	}
	if err := plotAll(s.dir, s.Settings, s.Cells); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(s)
	}
	if err := printTable(w, s.Settings, s.task, s.Cells); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nThe pictures are in %s.\n", s.dir)
	return err
}

// compute runs the sweep that the options ask for, or what is left of it.
func compute(ctx context.Context, o options) (*summary, error) {
	// The operations are small, and cells run side by side.
	if err := torch.SetThreads(1); err != nil {
		return nil, err
	}
	s := &summary{Settings: whole(o.seed), dir: o.dir}
	if o.quick {
		s.Settings, s.dir = quick(o.seed), filepath.Join(o.dir, "quick")
	}
	train, test, err := digits.Split(s.Settings.Train)
	if err != nil {
		return nil, err
	}
	if s.task, err = newTask(s.Settings.Hidden, digits.Classes, train, test); err != nil {
		return nil, err
	}
	s.Cells, err = s.sweep(o).Run(ctx)
	return s, err
}

// sweep has the cells of the settings.
func (s *summary) sweep(o options) *grid.Grid[*result] {
	g := &grid.Grid[*result]{Settings: s.Settings, Dir: s.dir, Workers: o.workers, Observer: o.observer}
	for _, c := range s.Settings.cells() {
		g.Cells = append(g.Cells, grid.Cell[*result]{Name: c.name(), Updates: s.Settings.updates(c) * c.runs,
			Run: func(ctx context.Context, dir, identity string, observer infer.Observer) (*result, error) {
				return s.Settings.runCell(ctx, s.task, c, dir, identity, o.every, observer)
			}})
	}
	return g
}
