// Command compare measures Kelvin against the same operations in a small C++ program, built with the same
// libtorch, in one run: an addition, the value and gradient of a logistic regression, those of eight schools for 1 to
// 1024 chains, and steps of training of two networks.
//
//	go run ./bench/compare [-json] [-rounds N] [-seconds S] [-only TEXT] [-device auto|cpu|cuda]
//
// Both sides stay in memory and take turns of a few milliseconds. A round is several turns, of which each side's
// fastest counts, so that what else the machine does is left out; the table has medians over the rounds, and the median
// and the quartiles of the rounds' ratios. Before anything is timed, values and gradients of both sides are compared;
// the program fails when they differ by more than 1e-10.
//
// The networks are the CNN-LSTM of models/nn at batches of 32 texts of 100 tokens, and the ResNet-20 of
// models/nn/layers with the moments of its batch at 128 images, with the log prior and the mean log likelihood of
// made-up data, in float32. The C++ side has them as a user of libtorch writes them: with its LSTM, its batch
// normalisation, its cross entropy and an update in place, on one vector of parameters. A step is the gradient and an
// update of gradient ascent with momentum. Below them are updates of SGHMC and ATMC against Kelvin's own gradient. The
// goals are 1.15 for gradient and step, and 1.2 for SGHMC and ATMC. Each row runs for S seconds in turns of one call,
// after one that is not counted.
//
// Where libtorch can use a GPU, further columns have the same cases with all tensors on it, each call waiting until the
// GPU is done. -device cpu leaves them out, -device cuda fails without a GPU.
//
// Both sides use as many threads as libtorch chooses. To compare with one,
// set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
//
// The C++ program is native/baseline.cpp. It is compiled by g++, or by $CXX, into Kelvin's cache folder, with the flags
// that set-up found for libtorch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object instead of a table")
	rounds := flag.Int("rounds", 25, "rounds to take medians over")
	seconds := flag.Float64("seconds", 10, "time for each row of the networks; a row has at least 3 rounds")
	only := flag.String("only", "", "only the cases whose name contains this")
	device := flag.String("device", "auto", "auto: GPU columns where there is a GPU; cpu: none; cuda: a GPU is required")
	flag.Parse()
	command.Main("compare", func(ctx context.Context, _ []string, _ io.Writer) error {
		return compare(ctx, *asJSON, *rounds, *seconds, *only, *device, flag.NArg())
	})
}

func compare(ctx context.Context, asJSON bool, rounds int, seconds float64, only, device string, arguments int) error {
	if arguments > 0 {
		return errors.New("there are flags only, see -help")
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds %d: there must be at least 1", rounds)
	}
	if !(seconds > 0) {
		return fmt.Errorf("-seconds %g: it must be greater than 0", seconds)
	}
	devices := []string{"cpu"}
	switch device {
	case "cpu":
	case "cuda":
		if _, err := torch.CUDA(0); err != nil {
			return err
		}
		devices = append(devices, "cuda")
	case "auto":
		if torch.Library().CudaDevices > 0 {
			devices = append(devices, "cuda")
		}
	default:
		return fmt.Errorf("-device %q: it must be auto, cpu or cuda", device)
	}
	program, err := build(ctx, note)
	if err != nil {
		return err
	}
	r := &report{Machine: bench.ThisMachine(), Rounds: rounds}
	for _, d := range devices {
		if err := r.measure(ctx, program, d, only, time.Duration(seconds*float64(time.Second))); err != nil {
			return fmt.Errorf("on %s: %w", d, err)
		}
	}
	if len(r.Cases)+len(r.Networks) == 0 {
		return fmt.Errorf("-only %q: no case has such a name", only)
	}
	if asJSON {
		return command.JSON(os.Stdout, r)
	}
	return r.write(os.Stdout)
}

// measure adds the rows of one device.
func (r *report) measure(ctx context.Context, program, device, only string, budget time.Duration) (err error) {
	where := torch.CPU
	if device == "cuda" {
		where = gotch.CudaBuilder(0)
	}
	cpp, err := start(ctx, program, device)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = cpp.stop()
		}
	}()
	info, err := cpp.ask("info")
	if err != nil {
		return err
	}
	if want := fmt.Sprint([]string{r.Libtorch, fmt.Sprint(r.Threads)}); fmt.Sprint(info) != want {
		return fmt.Errorf("the C++ program has libtorch and threads %v, Kelvin %s", info, want)
	}
	cases, err := comparisons(cpp, where)
	if err != nil {
		return err
	}
	cases = slices.DeleteFunc(cases, func(c comparison) bool { return !strings.Contains(c.name, only) })
	repetitions := make([]int, len(cases))
	for i := range cases {
		c := &cases[i]
		d, err := c.check(cpp)
		if err != nil {
			return fmt.Errorf("%s: values and gradients must agree to %g: %w", c.name, tolerance, err)
		}
		r.Difference = max(r.Difference, d)
		ns, err := cpp.time(c.key, c.at, 200)
		if err != nil {
			return err
		}
		repetitions[i] = bench.PerTurn(ns)
	}
	native, kelvin := make([][]float64, len(cases)), make([][]float64, len(cases))
	for round := range bench.WarmUp + r.Rounds {
		progress(fmt.Sprintf("%s: round %d of %d", device, round+1, bench.WarmUp+r.Rounds))
		for i := range cases {
			c := &cases[i]
			if err := ctx.Err(); err != nil {
				return err
			}
			theirs := func(n int) (float64, error) { return cpp.time(c.key, c.at, n) }
			ns, err := bench.Round(bench.Turns, [2]bench.Side{theirs, c.time}, [2]int{repetitions[i], repetitions[i]})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= bench.WarmUp {
				native[i], kelvin[i] = append(native[i], ns[0]), append(kelvin[i], ns[1])
			}
		}
	}
	progress("")
	for i, c := range cases {
		r.Cases = append(r.Cases, newRow(c, device, native[i], kelvin[i]))
	}
	return r.measureNetworks(ctx, cpp, where, device, only, budget)
}

// measureNetworks adds the rows of the networks on one device.
func (r *report) measureNetworks(ctx context.Context, cpp *native, where gotch.Device, device, only string,
	budget time.Duration) error {
	for _, a := range architectures {
		if !slices.ContainsFunc(a.rows(), func(row string) bool { return strings.Contains(row, only) }) {
			continue
		}
		t, err := a.on(cpp, where, gotch.Float)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		difference, err := t.check(cpp, floatTolerance)
		if err != nil {
			return fmt.Errorf("%s: both sides must agree to %g: %w", a.name, floatTolerance, err)
		}
		pairings, err := t.pairings(cpp, difference)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		for _, p := range pairings {
			if !strings.Contains(p.name, only) {
				continue
			}
			progress(fmt.Sprintf("%s: %s", device, p.name))
			row, err := p.time(ctx, device, budget)
			if err != nil {
				return err
			}
			r.Networks = append(r.Networks, row)
		}
		progress("")
	}
	return nil
}

// note tells the user what takes long.
func note(text string) { fmt.Fprintln(os.Stderr, text) }

// progress shows one line on a terminal, over the one before.
func progress(text string) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\033[K%s", text)
	}
}
