// Command two_moons compares ways to know what a neural network does not know. A perceptron of 2241 parameters, with a
// broad prior N(0, 100²), learns to tell two half moons apart from 300 points; the MAP, Laplace approximations,
// Monte-Carlo dropout, a deep ensemble, SGLD, SGHMC, variational inference and NUTS are scored on 500 other points, and
// their predictions and uncertainties are mapped over the plane. Under the table the claims that are made of these
// methods are checked, each with its figure. The tables have means ± standard errors over seeds. Each seed has its own
// data, starts and noise. A claim holds where its margin, from pairs of one seed, is above 0 by more than two standard
// errors.
//
// Adam: learning rate 0.01, batches of 32, 200 epochs from Kaiming normal starts. Variational inference: 20 000 updates
// of one sample from the MAP, with Adam whose rate falls to 0 along a cosine. NUTS: 4 chains from 4 members of the
// ensemble, 150 + 100 transitions, at most 2⁸ steps each. Steps and frictions of the samplers, the units that dropout
// keeps, and the rate and first standard deviations of variational inference are in tuned.go. -tune chose them by NLL
// on validation points of seed 1001, none of whose points are scored.
//
// -reference has 8 hidden units of tanh and the prior N(0, 1). There NUTS converges in its predictions, and the other
// methods are compared with it on the same network.
//
//	go run ./examples/papers/two_moons             tables over five seeds, and pictures in out/two_moons
//	go run ./examples/papers/two_moons -seeds 1    one seed
//	go run ./examples/papers/two_moons -tune       settings by validation NLL; with -reference of the small network
//	go run ./examples/papers/two_moons -reference  what NUTS says where it converges, and the methods beside it
//	go run ./examples/papers/two_moons -json       one JSON object
//	go run ./examples/papers/two_moons -quick      a small run, to see that it works: other numbers
//	go run ./examples/papers/two_moons -tau 1      another prior
//
// Five seeds take about ten minutes on two cores. A study that was interrupted, or killed, goes on with the seeds
// that are left when it is started again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kelvin-ppl/kelvin/examples/internal/command"
	"github.com/kelvin-ppl/kelvin/models/nn"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	var o options
	flag.BoolVar(&o.json, "json", false, "print one JSON object instead of tables")
	flag.BoolVar(&o.quick, "quick", false, "a small run, in the folder quick of -out")
	flag.StringVar(&o.out, "out", filepath.Join("out", "two_moons"),
		"folder for the pictures, and for what has been computed")
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed: of the data, the starts, the shuffles and the random streams")
	flag.IntVar(&o.seeds, "seeds", 5, "number of seeds")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(),
		"seeds, or settings, computed at once; the results do not depend on it")
	flag.Float64Var(&o.tau, "tau", 0, "standard deviation of the prior; 0 is 100, and 1 with -reference")
	flag.BoolVar(&o.tune, "tune", false, "compare settings on the validation points of a seed that is not scored")
	flag.BoolVar(&o.reference, "reference", false, "a small network on which NUTS converges, and the methods beside it")
	flag.IntVar(&o.units, "units", 8, "hidden units of the network of -reference")
	command.Main("two_moons", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

type options struct {
	json, quick, tune, reference bool
	out                          string
	seed                         uint64
	seeds, workers               int
	units                        int
	tau                          float64
}

// problem is what the options ask for: sizes of the run, the network, and the standard deviation of its prior.
func (o options) problem() (s settings, mlp nn.MLP, tau float64) {
	s, mlp, tau = full, nn.MLP{Sizes: sizes}, 100
	switch {
	case o.reference && o.quick:
		s = quickReference
	case o.reference:
		s = fullReference
	case o.quick:
		s = quick
	}
	if o.reference {
		mlp, tau = nn.MLP{Sizes: []int{2, o.units, 1}, Activation: nn.Tanh{}}, 1
	}
	if o.tau != 0 {
		tau = o.tau
	}
	return s, mlp, tau
}

// dir is the folder of this kind of run.
func (o options) dir() string {
	dir := o.out
	if o.reference {
		dir = filepath.Join(dir, "reference")
	}
	if o.quick {
		dir = filepath.Join(dir, "quick")
	}
	return dir
}

func run(ctx context.Context, w io.Writer, o options) error {
	last := o.seed + uint64(max(o.seeds, 1)) - 1
	switch {
	case !(o.tau >= 0):
		return fmt.Errorf("tau is %g, it must be greater than 0, or 0 for the default", o.tau)
	case o.seeds < 1:
		return fmt.Errorf("seeds is %d, it must be at least 1", o.seeds)
	case o.units < 1 && o.reference:
		return fmt.Errorf("units is %d, it must be at least 1", o.units)
	case o.seed <= tuneSeed && tuneSeed <= last:
		return fmt.Errorf("seeds %d to %d: %d is the seed on which settings are chosen", o.seed, last, tuneSeed)
	}
	// The operations are small, and seeds run side by side.
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	switch {
	case o.tune:
		return tune(ctx, w, o)
	case o.reference:
		return compare(ctx, w, o)
	}
	return study(ctx, w, o)
}
