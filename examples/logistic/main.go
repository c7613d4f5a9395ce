// Command logistic fits a Bayesian logistic regression to the Pima Indians diabetes data with several methods. The model
// and the driver are the same for all of them; only the method value changes. The model is there twice, in Kelvin's language and
// written by hand.
//
//	go run ./examples/logistic                       tables, and files in out/logistic
//	go run ./examples/logistic -json                 one JSON object
//	go run ./examples/logistic -model handwritten    the model written by hand
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
	"github.com/kelvin-ppl/kelvin/examples/internal/progress"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/internal/oldrun"
	"github.com/kelvin-ppl/kelvin/torch"
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
	model, layout, err := posterior(o.model, data)
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
	start, err := infer.Zeros(layout)
	if err != nil {
		return err
	}
	var outcomes []outcome
	for _, f := range fits(o.seed, o.scale) {
		from, err := f.start(start, outcomes)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		result, err := f.fit(ctx, model, from, data, o)
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
	fmt.Printf("Written to %s: summary.json, draws-*.csv, marginals.png\n", o.out)
	return nil
}

// perUpdate is the number of gradients of one update of a chain: 1, but for trajectories their length, and one for the point
// that they start from.
func perUpdate(d *draws.Draws) float64 {
	sum, n := 0.0, 0
	for chain := range d.Chains() {
		lengths, err := d.Stat(draws.StatLeapfrog, chain)
		if err != nil {
			return 1
		}
		for _, l := range lengths {
			sum += 1 + l
			n++
		}
	}
	return sum / float64(n)
}

// start is where the method starts: the given point, or the last draw of another method.
func (f fit) start(p infer.Params, before []outcome) (infer.Params, error) {
	if f.from == "" {
		return p, nil
	}
	for _, o := range before {
		if o.fit.name == f.from {
			return infer.NewParams(p.Layout, o.draws.Row(0, o.draws.Len(0)-1))
		}
	}
	return p, fmt.Errorf("it starts from %s, which has not run", f.from)
}

// fit builds the method, runs it, and takes the time.
func (f fit) fit(ctx context.Context, model infer.LogPosterior, start infer.Params, data infer.Batch, o options) (outcome, error) {
	transform, err := f.method.Build(infer.Mean(model, f.data))
	if err != nil {
		return outcome{}, err
	}
	batches := infer.Full(data)
	if f.batch > 0 {
		if batches, err = infer.Minibatches(data, infer.MinibatchOptions{Size: f.batch, Seed: o.seed}); err != nil {
			return outcome{}, err
		}
	}
	var checkpoint *infer.Checkpoint
	if o.checkpoint != "" {
		checkpoint = &infer.Checkpoint{Dir: filepath.Join(o.checkpoint, f.name), Resume: true, Model: fmt.Sprintf("logistic (%s) %s, length %g", o.model, f.name, o.scale)}
	}
	began := time.Now()
	result, err := oldrun.Run(ctx, transform, start, batches, f.with(o.seed, progress.New(os.Stderr, f.title), checkpoint))
	if err != nil {
		return outcome{}, err
	}
	defer infer.Free(result.State)
	if f.samples > 0 {
		if result.Draws, err = f.sample(transform, result.State, o.seed); err != nil {
			return outcome{}, err
		}
		seconds := time.Since(began).Seconds()
		return outcome{fit: f, draws: result.Draws, seconds: seconds, rate: float64(result.Updates) / seconds}, nil
	}
	seconds := time.Since(began).Seconds()
	gradients := float64(result.Updates) * float64(result.Draws.Chains()) * perUpdate(result.Draws)
	return outcome{fit: f, draws: result.Draws, seconds: seconds, rate: gradients / seconds}, nil
}

// sample draws from the distribution that a state is.
func (f fit) sample(t infer.Transform, s infer.State, seed uint64) (*draws.Draws, error) {
	sampler, ok := t.(infer.Sampler)
	if !ok {
		return nil, fmt.Errorf("the states of %s are no distributions", f.title)
	}
	streams := torch.NewStreams(seed+1, 1)
	points, err := sampler.Sample(s, f.samples, &streams)
	if err != nil {
		return nil, err
	}
	values, err := points.Values()
	if err != nil {
		return nil, err
	}
	d, err := draws.New(points.Layout.Sites, nil, 1)
	if err != nil {
		return nil, err
	}
	for dim := points.Layout.Dim(); len(values) > 0; values = values[dim:] {
		if err := d.Append(values[:dim], nil); err != nil {
			return nil, err
		}
	}
	return d, nil
}
