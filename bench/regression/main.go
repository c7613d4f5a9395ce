// Command regression measures regressions by formula beside Stan programs of the same models, with the same priors,
// written as brms writes them: columns less their means, effects of groups as scaled standard normal numbers.
//
//	go run ./bench/regression [-peers] [-models a,b] [-seeds 1] [-chains 4] [-warmup 1000] [-draws 1000] [-json FILE]
//	    [-venv DIR] [-python FILE]
//
// Without -peers only Kelvin runs. With it Stan is installed as bench/peers does, and both sides take turns with the
// same chains, lengths and target of the acceptance. For each model the table has
//
//	lines             of formulas, and of the Stan program without comments
//	|z|               the largest distance of a mean or standard deviation of a reported number, in standard errors of
//	                  the difference of the two sides; 4 is the limit, and more has a star
//	divergences       of the draws, all seeds together
//	gradients         all of them, warm-up included, over the least bulk ESS of a reported number
//	ESS/s             that ESS over the seconds of sampling, warm-up included; compiling is apart
//	ratio             of Kelvin's ESS/s to Stan's
//
// Reported are the numbers of the summary: intercept, coefficients, the family's parameters, standard deviations and
// correlations of groups. The last line is the geometric mean of the ratios. The exit status is 1 where |z| is above 4.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() { command.Main("regression", run) }

// settings is what the flags ask for.
type settings struct {
	cases              []regressionCase
	seeds              uint64
	options            infer.Options
	json, venv, python string
	peers              bool
	environments       *peer.Environments // nil without peers
	file               string             // of Stan's draws
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("regression", flag.ContinueOnError)
	names := f.String("models", allNames(), "models to run, separated by commas")
	f.Uint64Var(&s.seeds, "seeds", 1, "runs with different seeds")
	f.IntVar(&s.options.Chains, "chains", 4, "chains")
	f.IntVar(&s.options.Warmup, "warmup", 1000, "transitions of each chain that adapt")
	f.IntVar(&s.options.Draws, "draws", 1000, "draws kept of each chain")
	f.StringVar(&s.json, "json", "", "file that gets the figures as JSON")
	f.BoolVar(&s.peers, "peers", false, "run Stan too")
	f.StringVar(&s.venv, "venv", "", "folder of its virtual environment; by default that of bench/peers")
	f.StringVar(&s.python, "python", "", "Python 3.12 or 3.13; by default the first that is found")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 || s.seeds < 1 || s.options.Draws < 8 {
		return s, fmt.Errorf("%q, -seeds %d, -draws %d: there must be flags alone, 1 seed and 8 draws", f.Args(), s.seeds,
			s.options.Draws)
	}
	s.cases, err = command.Choose(*names, cases, regressionCase.id, func(name string) error {
		return fmt.Errorf("-models %s: the models are %s", name, allNames())
	})
	return s, err
}

func run(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	if s.peers {
		if s.environments, err = peer.Prepare(ctx, s.venv, s.python, os.Stderr); err != nil {
			return err
		}
		if err := s.environments.Install(ctx, peer.Groups[0]); err != nil {
			return err
		}
		scratch, err := os.MkdirTemp("", "kelvin-regression")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		s.file = filepath.Join(scratch, "draws")
	}
	return s.compare(ctx, out)
}

// compare runs all models. What is measured is written after each of them.
func (s settings) compare(ctx context.Context, out io.Writer) error {
	var rows []row
	writeHeading(out)
	for _, c := range s.cases {
		r, err := s.measure(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, r)
		r.write(out)
		if s.json == "" {
			continue
		}
		text, err := json.MarshalIndent(map[string]any{"models": rows}, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(s.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return writeEnd(out, rows)
}

// measure runs a model with all seeds on both sides, which take turns.
func (s settings) measure(ctx context.Context, c regressionCase) (r row, err error) {
	r.Name, r.FormulaLines = c.name, 1+len(c.formula.Params)
	if _, r.StanLines, err = c.program(); err != nil {
		return r, err
	}
	k, err := newKelvin(c)
	if err != nil {
		return r, err
	}
	r.Kelvin = &k.side
	var other *stan
	if s.peers {
		if other, err = newStan(ctx, s.environments, k); err != nil {
			return r, fmt.Errorf("stan: %w", err)
		}
		defer other.process.Close()
		r.Stan = &other.side
	}
	for seed := range s.seeds {
		o := s.options
		o.Seed = seed + 1 // Stan has no seed 0
		if err := k.sample(ctx, o); err != nil {
			return r, err
		}
		if other == nil {
			continue
		}
		if err := other.sample(k, s.file, o); err != nil {
			return r, fmt.Errorf("stan: %w", err)
		}
	}
	if other != nil {
		r.Z, r.ZOf = apart(r.Kelvin, r.Stan)
		r.Ratio = r.Kelvin.rate() / r.Stan.rate()
	}
	return r, nil
}
