// Command compiled measures log posteriors compiled to C and on the virtual machine against eager evaluation, and five
// of them against hand-written C.
//
//	go run ./bench/compiled [-path DIR] [-models a,b] [-seconds S] [-points N] [-json]
//
// The models are those of package models, the logistic regression on the Pima data, and, with -path, those of
// posteriordb, of which DIR is a checkout or a part. A time is that of value and gradient: the least CPU time of many
// short segments, in which the garbage collector does not run. C goes from point to point by itself; calls from Go have
// a column of their own, and replays are called from Go. The error is the largest difference to eager evaluation at
// -points points, some of them far out, relative to the largest number of its kind, beyond what eager evaluation itself
// differs by where the point moves by rounding. A model that is not compiled says why. The last columns are
// milliseconds from ppl.Compile to the first gradient: the least of some, since other work only adds to it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/bench/internal/pima"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compiled:", err)
		os.Exit(1)
	}
}

// report is what the program prints; with -json as it is.
type report struct {
	bench.Machine
	Models []row `json:"models"`
}

// row is a model. The tags are a format that other programs read.
type row struct {
	Name     string   `json:"name"`
	Tier     string   `json:"tier"`    // that a run takes where nothing else is asked for
	US       *float64 `json:"us"`      // of compiled C, from one point to the next in C; nil without C
	Call     *float64 `json:"us_call"` // the same, each called from Go
	VM       *float64 `json:"us_vm"`
	Replay   *float64 `json:"us_replay"` // each called from Go; nil if it cannot be replayed
	Eager    float64  `json:"us_eager"`
	Error    float64  `json:"error"`  // the larger of both
	Reason   string   `json:"reason"` // why there is no faster tier; "" where there is one
	Baseline *float64 `json:"us_baseline,omitempty"`
	Ops      int      `json:"ops"`
	Loops    int      `json:"loops"`
	Seconds  float64  `json:"compile_s"`   // recording, checks and the compiler, with an empty cache
	FirstVM  *float64 `json:"first_ms_vm"` // from ppl.Compile to the first gradient
	FirstC   *float64 `json:"first_ms"`    // the same, with compiled C in the cache
}

func run(args []string, out, messages io.Writer) error {
	f := flag.NewFlagSet("compiled", flag.ContinueOnError)
	f.SetOutput(messages)
	path := f.String("path", os.Getenv("POSTERIORDB"), "a checkout of posteriordb, or a part of one")
	chosen := f.String("models", "", "models, separated by commas; by default all")
	pimaFile := f.String("pima", pima.File, "the Pima data")
	seconds := f.Float64("seconds", 0.3, "for each time")
	points := f.Int("points", 100, "at which values and gradients are compared")
	asJSON := f.Bool("json", false, "print one JSON object instead of a table")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if !(*seconds > 0) || *points < 1 {
		return fmt.Errorf("-seconds %g -points %d: both must be greater than 0", *seconds, *points)
	}
	if err := torch.SetThreads(1); err != nil {
		return err
	}
	all, err := collect(*path, *pimaFile, *chosen)
	if err != nil {
		return err
	}
	hand, err := newBaseline()
	if err != nil {
		fmt.Fprintf(messages, "no baseline in C: %v\n", err)
	} else {
		defer hand.remove()
	}
	r := report{Machine: bench.ThisMachine()}
	for _, m := range all {
		one, err := m.measure(hand, *seconds, *points)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		r.Models = append(r.Models, one)
	}
	if *asJSON {
		return command.JSON(out, r)
	}
	return r.write(out)
}

// write prints the table.
func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d cores, %s, libtorch %s.\n\n", r.Processor, r.Cores, r.System, r.Libtorch)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\ttier\tops\tloops\tcompile s\tµs C\tcalled from Go\tµs VM\tµs replay\tµs eager\terror\tµs by "+
		"hand\tC/hand\tVM/C\tms to first VM\tto first C, cached")
	reasons := 0
	for _, m := range r.Models {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.2f\t%s\t%s\t%s\t%s\t%.4g\t%.1e\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Tier, m.Ops,
			m.Loops,
			m.Seconds, number(m.US), number(m.Call), number(m.VM), number(m.Replay), m.Eager, m.Error, number(m.Baseline),
			quotient(m.US, m.Baseline), quotient(m.VM, m.US), number(m.FirstVM), number(m.FirstC))
		if m.Reason != "" {
			reasons++
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d models, %d of them not in all tiers.\n", len(r.Models), reasons)
	for _, m := range r.Models {
		if m.Reason != "" {
			fmt.Fprintf(w, "%s: %s\n", m.Name, m.Reason)
		}
	}
	return nil
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *v)
}

func quotient(a, b *float64) string {
	if a == nil || b == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *a / *b)
}
