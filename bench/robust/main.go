// Command robust runs the ways in which Kelvin adapts NUTS on targets that are no small regressions, and says where
// they fail and what they cost.
//
//	go run ./bench/robust [-targets a,b] [-methods default,diagonal,lowrank] [-seeds 20] [-chains 4]
//	    [-warmup 1000] [-draws 1000] [-limit 4000000] [-path DIR] [-json FILE] [-v] [-list]
//
// DIR is a checkout of github.com/stan-dev/posteriordb, or a part of one; without -path it is the environment variable
// POSTERIORDB, and without both the posteriors of posteriordb are left out; in a list of targets the word posteriordb
// stands for them. A run with a seed fails where
//
//   - it takes more gradients than -limit;
//   - a chain does not move;
//   - R-hat of a judged number is greater than 1.01, or where the effective draws are few than what agreeing chains
//     exceed by chance (see rhatLimit);
//   - a mean or standard deviation differs from the truth by more than 4 combined standard errors, or what one of so
//     many numbers exceeds by chance.
//
// On the target bimodal a run fails where R-hat is not above 1.1. Truth is a closed form, reference draws, or long runs
// (truth.json); a target that has none yet is judged by its chains alone. For each target and method the table has
//
//	failed              seeds that failed, of all
//	warm-up             median over the seeds of the gradients of a chain's warm-up
//	an effective draw   median of all gradients, warm-up included, over the least bulk ESS of a judged number
//	of the best         the last over that of the best method that fails with at most one seed of 20
//
// and a star where a method fails with more seeds, or takes more than 1.25 times the best's. Below are, for each
// method, how many targets it fails on, and on how many it is right and not near the best, and geometric means of the
// ratios to the best, to Stan and to nutpie, over the targets on which both are right.
//
//	go run ./bench/robust -peers [-venv DIR] [-python FILE] [-patience 5m] [...]
//
// runs the Stan programs of the targets too, with Stan's NUTS and nutpie's, which it installs as bench/peers does. A
// run that takes longer than -patience has failed.
//
//	go run ./bench/robust -truth bench/robust/truth.json -methods default,diagonal -draws 5000 [-targets a,b]
//
// makes truth: long runs with two methods and other seeds, whose chains must agree, and which must agree with each
// other.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() { command.Main("robust", run) }

// settings is what the flags ask for.
type settings struct {
	targets                  []target
	methods                  []method
	seeds                    uint64
	options                  infer.Options
	limit                    int
	json, posteriordb, truth string
	verbose, list, peers     bool
	venv, python             string
	patience                 time.Duration
	others                   *peers // nil for none
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("robust", flag.ContinueOnError)
	names := f.String("targets", "", "targets to run, separated by commas; by default all")
	ways := f.String("methods", methodNames(), "of "+methodNames())
	f.Uint64Var(&s.seeds, "seeds", 20, "runs with different seeds")
	f.IntVar(&s.options.Chains, "chains", 4, "chains")
	f.IntVar(&s.options.Warmup, "warmup", 1000, "transitions of each chain that adapt")
	f.IntVar(&s.options.Draws, "draws", 1000, "draws kept of each chain")
	f.IntVar(&s.limit, "limit", 0, "gradients of a run, at which it has failed; default 500 for each transition")
	f.StringVar(&s.json, "json", "", "file that gets the figures as JSON")
	f.StringVar(&s.truth, "truth", "", "make the truth of the targets by long runs, and put it in this file")
	f.StringVar(&s.posteriordb, "path", os.Getenv("POSTERIORDB"),
		"a checkout of posteriordb; by default the environment variable POSTERIORDB; empty for none")
	f.BoolVar(&s.verbose, "v", false, "say why each seed failed")
	f.BoolVar(&s.peers, "peers", false, "run Stan and nutpie too")
	f.StringVar(&s.venv, "venv", "", "folder of their virtual environment; by default that of bench/peers")
	f.StringVar(&s.python, "python", "", "Python 3.12 or 3.13; by default the first that is found")
	f.DurationVar(&s.patience, "patience", 5*time.Minute, "longest run of a peer")
	f.BoolVar(&s.list, "list", false, "print the names of the targets and stop")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	o := s.options
	if o.Chains < 1 || o.Warmup < 1 || o.Draws < 8 || s.seeds < 1 || s.limit < 0 {
		return s, fmt.Errorf("-chains %d -warmup %d -draws %d -seeds %d -limit %d: there must be at least 1, 1, 8, 1 and 0",
			o.Chains, o.Warmup, o.Draws, s.seeds, s.limit)
	}
	if s.limit == 0 {
		s.limit = 500 * o.Chains * (o.Warmup + o.Draws)
	}
	all := targets
	if s.posteriordb != "" {
		more, err := published(s.posteriordb)
		if err != nil {
			return s, err
		}
		all = append(all, more...)
	}
	var err error
	if s.targets, err = choose(all, *names); err != nil {
		return s, err
	}
	s.methods, err = chooseMethods(*ways)
	return s, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if s.list {
		for _, t := range s.targets {
			fmt.Fprintln(out, t.name)
		}
		return nil
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	if s.truth != "" {
		return s.store(ctx, out)
	}
	if s.peers {
		if s.others, err = newPeers(ctx, s.venv, s.python, s.patience, os.Stderr); err != nil {
			return err
		}
		defer os.RemoveAll(s.others.scratch)
	}
	return s.compare(ctx, out)
}

// compare runs all targets. What is measured is written after each of them.
func (s settings) compare(ctx context.Context, out io.Writer) error {
	writeHeading(out)
	var rows []row
	for _, t := range s.targets {
		own, err := s.measure(ctx, t)
		if err != nil {
			return err
		}
		rows = append(rows, own...)
		writeTarget(out, own, s.verbose)
		if s.json != "" {
			if err := writeJSON(s.json, rows); err != nil {
				return err
			}
		}
	}
	return writeStanding(out, rows)
}

// measure runs a target with all methods.
func (s settings) measure(ctx context.Context, t target) ([]row, error) {
	p, program, err := t.compile()
	if err != nil {
		return nil, err
	}
	known, err := p.known(t.name)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, m := range s.methods {
		var runs []outcome
		for seed := range s.seeds {
			o := s.options
			o.Seed = seed
			got, err := sample(ctx, p, program, m, known, s.limit, o)
			if err != nil {
				return nil, err
			}
			runs = append(runs, got)
		}
		rows = append(rows, summarise(t.name, m.name, runs, p.bimodal))
	}
	if s.others == nil || p.stan == "" {
		return rows, nil
	}
	more, err := s.others.measure(ctx, s, t, p, known)
	return append(rows, more...), err
}

// writeJSON writes {"targets": [...]}.
func writeJSON(file string, rows []row) error {
	text, err := json.MarshalIndent(map[string]any{"targets": rows}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(text, '\n'), 0o644)
}
