// Command gpu runs on a GPU what the rest of Kelvin's tests and benchmarks run in main memory, and prints one table:
//
//	go run ./bench/gpu [-json] [-seconds S] [-python PATH] [-device cuda|cpu] [-part TEXT]
//
// Its parts are:
//
//   - agreement: random numbers, functions and gradients, log densities and draws of families, gradients of models,
//     updates of methods, and short runs of ATMC on ResNet-20, on the GPU beside main memory, with the tolerance of
//     each
//   - chains: transitions of 1,024 chains of NUTS on eight schools and Pima, on the GPU and in main memory
//   - published: fifty steps of SGHMC on residual networks of their published sizes, and what the published runs would
//     take
//   - pytorch: updates of SGHMC on the ResNet-20 and the CNN-LSTM beside the same step in plain PyTorch on the same
//     device, by turns, after both sides' log posteriors and gradients were compared. The goal is a
//     ratio of at most 1.1.
//
// Each row of chains and pytorch takes S seconds. PATH is a Python with PyTorch; without one its rows say why. Where
// libtorch can use no GPU the command says so and fails. -device cpu puts main memory in the place of the GPU, so that
// the command itself can be tried: nothing that it prints then is about a GPU. Set OMP_NUM_THREADS=1 there, since the
// threads of two libraries wait for one another.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
)

func main() { command.Main("gpu", run) }

// options are what the flags say.
type options struct {
	device  gotch.Device
	seconds time.Duration
	python  string
	pima    string
	chains  int
}

// report is what the command prints; with -json as it is.
type report struct {
	bench.Machine
	Device    string     `json:"device"`
	Agreement []found    `json:"agreement,omitempty"`
	Chains    []chainRow `json:"chains,omitempty"`
	Published []stepTime `json:"published,omitempty"`
	PyTorch   []stepRow  `json:"pytorch,omitempty"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("gpu", flag.ContinueOnError)
	o := options{device: torch.CPU}
	asJSON := f.Bool("json", false, "print one JSON object instead of tables")
	seconds := f.Float64("seconds", 10, "time for each row")
	f.StringVar(&o.python, "python", "python3", "a Python with PyTorch")
	f.StringVar(&o.pima, "pima", pima.File, "the Pima data")
	f.IntVar(&o.chains, "chains", 1024, "chains of a row")
	device := f.String("device", "cuda", "cuda, or cpu to try the command without a GPU")
	part := f.String("part", "", "only the parts whose name contains this: agreement, chains, published, pytorch")
	if err := f.Parse(args); err != nil {
		return err
	}
	if !(*seconds > 0) || o.chains < 1 || f.NArg() > 0 {
		return errors.New("-seconds and -chains must be positive, and there are flags only")
	}
	o.seconds = time.Duration(*seconds * float64(time.Second))
	switch *device {
	case "cpu":
	case "cuda":
		var err error
		if o.device, err = torch.CUDA(0); err != nil {
			return fmt.Errorf("no GPU, so nothing was run: %w (kelvin doctor says more; -device cpu tries the command "+
				"without one)", err)
		}
	default:
		return fmt.Errorf("-device %q: it must be cuda or cpu", *device)
	}
	r := &report{Machine: bench.ThisMachine(), Device: deviceName(ctx, o.device)}
	var failures []error
	for _, p := range []struct {
		name string
		run  func(context.Context, options) error
	}{{"agreement", r.agree}, {"chains", r.chains}, {"published", r.published},
		{"pytorch", r.pytorch}} {
		if strings.Contains(p.name, *part) {
			if err := p.run(ctx, o); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", p.name, err))
			}
		}
	}
	write := r.write
	if *asJSON {
		write = func(w io.Writer) error { return command.JSON(w, r) }
	}
	return errors.Join(append(failures, write(out))...)
}

// deviceName asks the driver's own program.
func deviceName(ctx context.Context, device gotch.Device) string {
	if device == torch.CPU {
		return "main memory, in the place of a GPU"
	}
	ask := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
	out, err := ask.Output()
	if err != nil {
		return "cuda:0, whose name nvidia-smi does not tell: " + err.Error()
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first
}

// agree compares all rooms; an error says how many differ.
func (r *report) agree(ctx context.Context, o options) error {
	list, err := agreements()
	if err != nil {
		return err
	}
	wrong := 0
	for _, a := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := a.compare(o.device)
		if f.Error != "" {
			wrong++
		}
		r.Agreement = append(r.Agreement, f)
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d calculations differ or fail", wrong, len(list))
	}
	return nil
}

func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "Device: %s. Host: %s, %d cores, %s, libtorch %s.\n", r.Device, r.Processor, r.Cores, r.System,
		r.Libtorch)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(r.Agreement) > 0 {
		fmt.Fprintln(t, "\nagreement with main memory\tnumbers\tdifference\ttolerance\t")
		for _, f := range r.Agreement {
			fmt.Fprintf(t, "%s\t%d\t%.1e\t%.1e\t%s\n", f.Name, f.Numbers, f.Difference, f.Tolerance, f.Error)
		}
	}
	if len(r.Chains) > 0 {
		fmt.Fprintln(t, "\nNUTS\tchains\tms of a transition\tin main memory\tgradients/s\tin main memory\t")
		for _, c := range r.Chains {
			fmt.Fprintf(t, "%s\t%d\t%.3g\t%.3g\t%.3g\t%.3g\t%s\n", c.Model, c.Chains, c.Device.Transition,
				c.CPU.Transition, c.Device.Gradients, c.CPU.Gradients, c.Error)
		}
	}
	if len(r.Published) > 0 {
		fmt.Fprintln(t, "\nsteps of SGHMC\tparameters\tms of a step\tepochs of the paper\thours\t"+
			"epochs of 20,000 images in 5 minutes\t")
		for _, s := range r.Published {
			fmt.Fprintf(t, "%s\t%d\t%.3g\t%d\t%.3g\t%d\t%s\n", s.Network, s.Parameters, s.Step, s.Epochs, s.Hours,
				s.FiveMinute, s.Error)
		}
	}
	if len(r.PyTorch) > 0 {
		fmt.Fprintln(t, "\nSGHMC\tPyTorch ms\tKelvin ms\tratio\tquartiles\trounds\tdifference\t")
		for _, s := range r.PyTorch {
			fmt.Fprintf(t, "%s\t%.3g\t%.3g\t%.3f\t%.3f-%.3f\t%d\t%.0e\t%s\n", s.Network, s.PyTorch, s.Kelvin, s.Ratio,
				s.Quartiles[0], s.Quartiles[1], s.Rounds, s.Difference, s.Error)
		}
	}
	return t.Flush()
}
