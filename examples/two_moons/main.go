// Command two_moons compares ways to know what a neural network does not know. A perceptron of 2241 parameters, with a
// broad prior N(0, 100²), learns to tell two half moons apart from 300 points; the MAP, Laplace approximations,
// Monte-Carlo dropout, a deep ensemble, SGLD, SGHMC, variational inference and NUTS are scored on 500 other points, and
// their predictions and uncertainties are mapped over the plane. Under the table the claims that are made of these
// methods are checked, each with its figure.
//
// Adam: learning rate 0.01, batches of 32, 200 epochs from Kaiming normal starts. Dropout: 20 % of the units of each
// hidden layer. Steps of the samplers: see methods.go. Variational inference: 20 000 updates of one sample from the
// MAP, standard deviations e⁻³ at the start, Adam at 0.01 falling to 0 along a cosine. NUTS: 4 chains from 4 members of
// the ensemble, 150 + 100 transitions, at most 2⁸ steps each.
//
//	go run ./examples/two_moons           tables, and pictures in out/two_moons
//	go run ./examples/two_moons -json     one JSON object
//	go run ./examples/two_moons -quick    a small run, to see that it works: other numbers
//	go run ./examples/two_moons -tau 1    another prior
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "a small run")
	flag.StringVar(&o.out, "out", filepath.Join("out", "two_moons"), "folder for the pictures")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the data, the starts, the shuffles and the random streams")
	flag.Float64Var(&o.tau, "tau", 100, "standard deviation of the prior")
	command.Main("two_moons", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json, quick bool
	out         string
	seed        uint64
	tau         float64
}

func run(ctx context.Context, w io.Writer, o options) error {
	if !(o.tau > 0) {
		return fmt.Errorf("tau is %g, it must be greater than 0", o.tau)
	}
	s := full
	if o.quick {
		s = quick
	}
	began := time.Now()
	t, err := newTask(s, o.seed, o.tau)
	if err != nil {
		return err
	}
	var outcomes []outcome
	for _, m := range methods {
		result, err := t.run(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.title, err)
		}
		if m.name == nameMAP {
			t.modeSeconds = result.seconds
		}
		outcomes = append(outcomes, result)
	}
	claims, err := t.claims(outcomes)
	if err != nil {
		return err
	}
	if err := t.pictures(o.out, outcomes); err != nil {
		return err
	}
	out := outputJSON{Claims: claims, Notes: t.notes, Seconds: time.Since(began).Seconds()}
	for _, result := range outcomes {
		out.Methods = append(out.Methods, result.row)
	}
	if o.json {
		return json.NewEncoder(w).Encode(out)
	}
	if err := printTable(w, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w,
		"\nWritten to %s: decision.png, uncertainty.png, entropy.png, reliability.png. %.0f s in all.\n", o.out, out.Seconds)
	return err
}
