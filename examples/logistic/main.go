// Command logistic fits a Bayesian logistic regression to the Pima Indians diabetes data with ten methods. The model
// and the call of infer.Run are the same for all; only the method changes. The model is there twice, in Kelvin's
// language and hand-written.
//
//	go run ./examples/logistic                       tables, and files in out/logistic
//	go run ./examples/logistic -json                 one JSON object
//	go run ./examples/logistic -model handwritten    the hand-written model
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/draws"
	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/infer"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.StringVar(&o.out, "out", filepath.Join("out", "logistic"), "folder for summary.json, the draws and the picture")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random streams and of the shuffles")
	flag.Float64Var(&o.scale, "scale", 1, "length of the runs; 0.01 is a quick look")
	flag.StringVar(&o.model, "model", language, "form of the model: "+language+" or "+handwritten)
	flag.StringVar(&o.checkpoint, "checkpoint", "", "folder for checkpoints; an interrupted run goes on from there")
	command.Main("logistic", func(ctx context.Context) error { return run(ctx, o) })
}

type options struct {
	json            bool
	model           string
	out, checkpoint string
	seed            uint64
	scale           float64
}

// outcome is what one method found.
type outcome struct {
	fit     fit
	draws   *draws.Draws
	last    infer.Params // where the chains ended
	seconds float64
	rate    float64 // gradients per second, each chain counted
}

func run(ctx context.Context, o options) error {
	if !(o.scale > 0) {
		return fmt.Errorf("-scale is %g: it must be greater than 0", o.scale)
	}
	data, names, err := readPima()
	if err != nil {
		return err
	}
	program, err := posterior(o.model, data)
	if err != nil {
		return err
	}
	if !o.json {
		difference, err := disagreement(data, 10, o.seed)
		if err != nil {
			return err
		}
		fmt.Printf("The model: %s. Its two forms differ by at most %.1e in value and gradient.\n\n", o.model, difference)
	}
	start, err := infer.Zeros(program.Layout())
	if err != nil {
		return err
	}
	var outcomes []outcome
	for _, f := range fits(o.scale) {
		from, err := f.start(start, outcomes)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		result, err := f.fit(ctx, program, from, o)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		outcomes = append(outcomes, result)
		if !o.json {
			if err := printOutcome(os.Stdout, result, names); err != nil {
				return err
			}
		}
	}
	summary, err := summarise(outcomes)
	if err != nil {
		return err
	}
	if err := writeFiles(o.out, summary, outcomes, names); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(summary)
	}
	if o.scale < 1 {
		fmt.Println("The runs are short: their figures are those of chains that have not settled.")
	}
	printDeviations(os.Stdout, summary, outcomes)
	fmt.Printf("Written to %s: summary.json, marginals.png, and the draws, a folder for each method. A page of those of "+
		"NUTS:\n\n\tgo run ./cmd/kelvin report %s\n", o.out, filepath.Join(o.out, "nuts"))
	return nil
}

// start is where the method starts: the given point, or where another method ended.
func (f fit) start(p infer.Params, before []outcome) (infer.Params, error) {
	if f.from == "" {
		return p, nil
	}
	for _, o := range before {
		if o.fit.name == f.from {
			return o.last, nil
		}
	}
	return p, fmt.Errorf("it starts from %s, which has not run", f.from)
}

// fit runs the method and takes the time.
func (f fit) fit(ctx context.Context, program infer.Program, start infer.Params, o options) (outcome, error) {
	run := f.run
	run.Seed, run.Start = o.seed, start
	if f.batch > 0 {
		var err error
		run.Batches, err = infer.Minibatches(program.Batch(), infer.MinibatchOptions{Size: f.batch, Seed: o.seed})
		if err != nil {
			return outcome{}, err
		}
	}
	if o.checkpoint != "" {
		run.Checkpoint = &infer.Checkpoint{Dir: filepath.Join(o.checkpoint, f.name), Resume: true,
			Model: fmt.Sprintf("logistic (%s) %s, length %g", o.model, f.name, o.scale)}
	}
	began := time.Now()
	result, err := infer.Run(ctx, program, f.method, run)
	if err != nil {
		return outcome{}, err
	}
	defer infer.Free(result.State)
	seconds := time.Since(began).Seconds()
	return outcome{fit: f, draws: result.Draws, last: result.Last, seconds: seconds,
		rate: float64(result.Gradients) / seconds}, nil
}
