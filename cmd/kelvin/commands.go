package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// setup runs `kelvin setup`.
func (a *app) setup(ctx context.Context, args []string) int {
	var opts setup.Options
	flags := flag.NewFlagSet("setup", flag.ContinueOnError)
	flags.StringVar(&opts.LibTorch, "libtorch", "", "use the libtorch in `DIR`, which has its include and lib")
	flags.StringVar(&opts.Wheel, "wheel", "", "take libtorch `VERSION`, for the CPU, out of PyTorch's Python package, "+
		"which pip downloads")
	flags.BoolVar(&opts.NoInstall, "no-install", false, "only look; install and download nothing")
	flags.StringVar(&opts.Cache, "cache", "",
		"keep the adapted gotch and downloads in `DIR` (default $KELVIN_CACHE, else kelvin in the user's cache folder)")
	flags.BoolVar(&opts.CUDA, "cuda", false, "insist on a libtorch with CUDA")
	flags.StringVar(&opts.SHA256, "sha256", "", "require the SHA-256 checksum `SUM` of a downloaded archive or wheel")
	flags.StringVar(&opts.Vendor, "vendor", "", "copy the adapted gotch into `DIR` of the module and let go.mod lead to "+
		"it, in the place of a go.work: commit both, and others build with libtorch alone")
	flags.BoolVar(&opts.Verbose, "v", false, "show what the commands that set-up runs print")
	if code, ok := a.parse(flags, args); !ok {
		return code
	}
	start := time.Now()
	report := newConsole(a.err, a.terminal && !opts.Verbose)
	opts.Report = report
	res, err := setup.Run(ctx, a.sys, a.parts, opts)
	report.clear()
	if err != nil {
		return a.fail(err)
	}
	fmt.Fprintf(a.err, "Kelvin is ready in %s (%.1f s).\n", res.Project.Dir, time.Since(start).Seconds())
	if !res.KelvinRequired {
		fmt.Fprintf(a.err, "This module does not require Kelvin yet: go get %s\n", setup.Kelvin)
	}
	return exitOK
}

// doctor runs `kelvin doctor`.
func (a *app) doctor(ctx context.Context, args []string) int {
	var asJSON, verbose bool
	opts := setup.DoctorOptions{Kelvin: version()}
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	flags.BoolVar(&verbose, "v", false, "show all ops that this libtorch lacks, and its threads")
	flags.StringVar(&opts.Cache, "cache", "", "look for downloads in `DIR`, as given to setup")
	if code, ok := a.parse(flags, args); !ok {
		return code
	}
	console := newConsole(a.err, a.terminal)
	if a.terminal {
		opts.Report = console
	}
	report := setup.Doctor(ctx, a.sys, a.parts, opts)
	console.clear()
	if asJSON {
		data, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return a.fail(err)
		}
		fmt.Fprintln(a.out, string(data))
	} else {
		fmt.Fprint(a.out, report.Text(verbose))
	}
	if report.State != setup.StateReady {
		return exitFailed
	}
	return exitOK
}
