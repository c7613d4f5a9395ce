// Command peers measures Kelvin beside other libraries on one machine, in one run in which they take turns: NUTS beside
// Stan (its C++, and PyStan), nutpie, NumPyro, BlackJAX and Pyro, and steps of SGHMC beside BlackJAX and posteriors.
//
//	go run ./bench/peers [-path DIR] [-models a,b] [-peers a,b] [-only nuts|steps] [-quick] [-json] [-prepare]
//
// DIR is a checkout of posteriordb, or a part of one; without it there are eight schools, Pima and influenza, an
// epidemic with differential equations, which Stan and nutpie have beside Kelvin. The peers' packages are installed
// from the Python registry into virtual environments in -venv, by default kelvin/peers in the user's cache folder: 6
// GB, and some minutes the first time; Python 3.12 and g++ are needed. Stan's models are compiled there once, half a
// minute each; -prepare does no more than that. What cannot be installed is listed with the reason.
//
// Effective sample sizes are the least bulk ESS of the quantities that the reference draws have, by Kelvin's estimator
// for all sides. Each side has the same number of chains, warm-up, draws and target of the acceptance; Pyro has one
// chain and a fifth of the draws. Stan's programs are written as the models are usually written. Kelvin's linear
// regressions with flat priors move in an orthogonal basis: the rows "orthogonal" have Stan and nutpie do the same.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/peer"
	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	command.Main("peers", func(ctx context.Context, args []string, out io.Writer) error {
		return run(ctx, args, out, os.Stderr)
	})
}

// benchmark is a run of the program.
type benchmark struct {
	lengths
	rounds       int
	seconds      float64 // for each side's gradient or steps in a round
	peers        []string
	scratch      string
	environments *peer.Environments
	missing      map[string]error // groups that could not be installed
	running      map[string]*peer.Process
}

// report is what the program prints; with -json as it is.
type report struct {
	bench.Machine
	Rounds  int               `json:"rounds"`
	Chains  int               `json:"chains"`
	Warmup  int               `json:"warmup"`
	Draws   int               `json:"draws"`
	Seconds float64           `json:"seconds"`
	Missing map[string]string `json:"missing"` // peers that were not measured, and why
	NUTS    []row             `json:"nuts"`
	Steps   []stepRow         `json:"steps"`
}

func run(ctx context.Context, args []string, out, messages io.Writer) error {
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(messages)
	path := f.String("path", os.Getenv("POSTERIORDB"), "a checkout of posteriordb, or a part of one")
	chosen := f.String("models", "", "posteriors, separated by commas; by default all")
	peers := f.String("peers", "", "peers, separated by commas; by default all; none for Kelvin alone")
	only := f.String("only", "", "nuts or steps; by default both")
	venv := f.String("venv", "", "folder of the virtual environments; by default kelvin/peers in the user's cache folder")
	python := f.String("python", "", "Python 3.12 or 3.13; by default the first that is found")
	pimaFile := f.String("pima", pima.File, "the Pima data")
	rounds := f.Int("rounds", 3, "turns of each side")
	seconds := f.Float64("seconds", 1, "for each side's gradient or steps in a turn")
	quick := f.Bool("quick", false, "one turn, of shorter runs")
	prepare := f.Bool("prepare", false, "install the peers and compile Stan's models, measure nothing")
	asJSON := f.Bool("json", false, "print one JSON object instead of tables")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if !slices.Contains([]string{"", "nuts", "steps"}, *only) || *rounds < 1 || !(*seconds > 0) {
		return fmt.Errorf("-only %q -rounds %d -seconds %g: -only is nuts or steps, the others are greater than 0", *only,
			*rounds, *seconds)
	}
	b := &benchmark{lengths: lengths{4, 1000, 1000}, rounds: *rounds, seconds: *seconds,
		running: map[string]*peer.Process{}}
	if *quick {
		b.lengths, b.rounds, b.seconds = lengths{4, 500, 500}, 1, 0.2
	}
	if *peers != "" {
		b.peers = strings.Split(*peers, ",")
	}
	cases, err := choose(*chosen, *path, *pimaFile)
	if err != nil {
		return err
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	if b.scratch, err = os.MkdirTemp("", "kelvin-peers"); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	b.environments, b.missing = nil, map[string]error{}
	began := time.Now()
	if err := b.install(ctx, *venv, *python, messages); err != nil {
		return err
	}
	defer func() {
		for _, p := range b.running {
			p.Close()
		}
	}()
	if *prepare {
		return b.prepare(ctx, cases, messages)
	}
	r := report{Machine: bench.ThisMachine(), Rounds: b.rounds, Chains: b.chains, Warmup: b.warmup, Draws: b.draws,
		Missing: map[string]string{}}
	for _, g := range peer.Groups {
		if reason := b.missing[g.Name]; reason != nil {
			for _, p := range g.Peers {
				r.Missing[p] = reason.Error()
			}
		}
	}
	for _, p := range cases {
		if *only == "steps" {
			break
		}
		fmt.Fprintf(messages, "%s %s\n", time.Now().Format("15:04:05"), p.name)
		rows, err := b.nuts(ctx, p)
		if err != nil {
			return err
		}
		r.NUTS = append(r.NUTS, rows...)
	}
	if *only != "nuts" {
		p, err := ofPima(*pimaFile)
		if err != nil {
			return err
		}
		for _, c := range stepCases {
			fmt.Fprintf(messages, "%s %s\n", time.Now().Format("15:04:05"), c.name)
			rows, err := b.steps(ctx, c, p)
			if err != nil {
				return err
			}
			r.Steps = append(r.Steps, rows...)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	if *asJSON {
		return command.JSON(out, r)
	}
	return r.write(out)
}

// wanted says whether a peer was asked for.
func (b *benchmark) wanted(peer string) bool {
	return len(b.peers) == 0 || slices.Contains(b.peers, peer)
}

// install makes the environments of the peers that are wanted. What fails is listed; only the end of the run is an
// error.
func (b *benchmark) install(ctx context.Context, venv, python string, messages io.Writer) error {
	e, err := peer.Prepare(ctx, venv, python, messages)
	for _, g := range peer.Groups {
		switch {
		case !slices.ContainsFunc(g.Peers, b.wanted):
			b.missing[g.Name] = errNotAsked
		case err != nil:
			b.missing[g.Name] = err
		default:
			if failed := e.Install(ctx, g); failed != nil {
				b.missing[g.Name] = failed
				fmt.Fprintf(messages, "%s cannot be installed: %v\n", strings.Join(g.Peers, ", "), failed)
			}
		}
	}
	b.environments = e
	return ctx.Err()
}

var errNotAsked = fmt.Errorf("not asked for")

// program is a group's running program, for steps.
func (b *benchmark) program(ctx context.Context, name string) (*peer.Process, error) {
	if p := b.running[name]; p != nil {
		return p, nil
	}
	i := slices.IndexFunc(peer.Groups, func(g peer.Group) bool { return g.Name == name })
	p, err := b.environments.Start(ctx, peer.Groups[i])
	if err == nil {
		b.running[name] = p
	}
	return p, err
}

// prepare compiles Stan's models.
func (b *benchmark) prepare(ctx context.Context, cases []posterior, messages io.Writer) error {
	if reason := b.missing["stan"]; reason != nil {
		return fmt.Errorf("the peer Stan: %w", reason)
	}
	one := *b
	one.peers = []string{"Stan"}
	for _, p := range cases {
		began := time.Now()
		compiled := [][2]any{{p.data, p.stan}}
		if p.orthogonal != nil {
			text, err := peer.Programs.ReadFile("stan/regression_qr.stan")
			if err != nil {
				return err
			}
			compiled = append(compiled, [2]any{p.orthogonal, string(text)})
		}
		for _, c := range compiled {
			sides, done := one.groupSides(ctx, peer.Groups[0], p, c[0], c[1].(string), "")
			done()
			if sides[0].Error != "" {
				return fmt.Errorf("%s: %s", p.name, sides[0].Error)
			}
		}
		fmt.Fprintf(messages, "%s: %.0f s\n", p.name, time.Since(began).Seconds())
	}
	return nil
}
