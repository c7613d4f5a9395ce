// Package setup makes a machine and a module ready for Kelvin: it finds or installs libtorch, makes an adapted copy of
// gotch in the user's cache folder, points the module's go.work at the copy, and builds once. It is pure Go and imports
// neither gotch nor anything that needs libtorch. It never prints and never exits: it returns errors and tells a
// Reporter how it gets on.
package setup

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/gotch"
)

// Options says what the user asked of `kelvin setup`. The zero value sets up the module of the current folder with
// whatever libtorch is found, and installs one when none is.
type Options struct {
	Dir       string   // folder of the module to set up; empty means the current one
	LibTorch  string   // folder of the libtorch to use (--libtorch); empty means look for one
	Wheel     string   // version of PyTorch's Python package to take libtorch out of (--wheel); empty means none
	NoInstall bool     // look only, install and download nothing
	Cache     string   // cache folder (--cache); empty means $KELVIN_CACHE, else kelvin in the user's cache folder
	CUDA      bool     // insist on a libtorch with CUDA
	SHA256    string   // checksum that a downloaded archive must have (--sha256); empty means that of archiveSums
	Vendor    string   // copy gotch into this folder of the module, in the place of a go.work (--vendor); empty means none
	Verbose   bool     // let the commands that set-up runs write to Report.Log
	Report    Reporter // hears about progress; nil means nobody does
}

// Result says what a set-up found and made.
type Result struct {
	LibTorch       *LibTorch
	Compiler       Compiler
	Project        *Project
	Copy           string   // folder of the adapted gotch
	MissingOps     []string // ops of gotch that this libtorch lacks
	GoWork         string   // the go.work that points to the copy
	CopyMade       bool     // the copy was made by this run
	GoWorkChanged  bool     // go.work was written by this run
	Built          bool     // something was compiled by this run
	KelvinRequired bool     // the module is Kelvin's own or requires Kelvin
}

// Parts are the parts of set-up that are slow or belong to other packages; tests replace them.
type Parts struct {
	// Fingerprint identifies the adaptations of gotch.
	Fingerprint func() string
	// Source returns the folder of gotch's unchanged source. It may use scratch, an empty folder that is removed later.
	Source func(ctx context.Context, scratch string) (string, error)
	// Adapt copies gotch from src to the empty folder dst and applies the adaptations.
	Adapt func(src, dst string, flags gotch.Flags) error
	// Missing finds the ops that libtorch lacks and makes the copy build without them.
	Missing func(ctx context.Context, dst, cxx string, flags gotch.Flags) ([]string, error)
	// Build compiles; it returns false when everything was up to date.
	Build func(ctx context.Context, order BuildOrder) (bool, error)
}

// DefaultParts returns the real parts, run on sys.
func DefaultParts(sys *System) Parts {
	return Parts{
		Fingerprint: gotch.Fingerprint,
		Source: func(ctx context.Context, scratch string) (string, error) {
			return gotchSource(ctx, sys, scratch)
		},
		Adapt:   gotch.Adapt,
		Missing: gotch.Missing,
		Build: func(ctx context.Context, order BuildOrder) (bool, error) {
			return buildOnce(ctx, sys, order)
		},
	}
}

// job is one run of set-up.
type job struct {
	sys     *System
	parts   Parts
	opts    Options
	report  Reporter
	cache   *Cache
	project *Project
	pkgs    *packages
}

// Run sets up the module of opts.Dir. It can be interrupted at any time: the next run cleans up and carries on. A
// second run that finds everything done changes nothing.
func Run(ctx context.Context, sys *System, parts Parts, opts Options) (*Result, error) {
	j := &job{sys: sys, parts: parts, opts: opts, report: reporterOrSilent(opts.Report)}
	j.pkgs = newPackages(sys, j.log(), j.report)
	var err error
	if j.project, err = FindProject(ctx, sys, opts.Dir); err != nil {
		return nil, err
	}
	if j.cache, err = OpenCache(sys, opts.Cache); err != nil {
		return nil, err
	}
	release, err := j.cache.Lock(ctx, j.report)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := j.cache.clean(); err != nil {
		return nil, err
	}
	return j.run(ctx)
}

// run does the steps, under the lock.
func (j *job) run(ctx context.Context) (*Result, error) {
	res := &Result{Project: j.project}
	err := j.step(func() (string, error) {
		c, err := j.compiler(ctx)
		res.Compiler = c
		return fmt.Sprintf("%s, %s", j.project.GoVersion, c.Version), err
	})
	if err != nil {
		return nil, err
	}
	err = j.step(func() (string, error) {
		lib, err := j.libtorch(ctx)
		if err != nil {
			return "", err
		}
		res.LibTorch = lib
		return lib.String(), nil
	})
	if err != nil {
		return nil, err
	}
	err = j.step(func() (string, error) {
		c, err := j.ensureCopy(ctx, res.LibTorch, res.Compiler)
		if err != nil {
			return "", err
		}
		res.Copy, res.MissingOps, res.CopyMade = c.Dir, c.Stamp.MissingOps, c.Made
		return fmt.Sprintf("gotch %s, adapted (%d ops are not in this libtorch)", gotch.Version, len(res.MissingOps)), nil
	})
	if err != nil {
		return nil, err
	}
	err = j.step(func() (string, error) {
		var err error
		if j.opts.Vendor != "" {
			res.Copy, err = vendor(j.project, res.Copy, j.opts.Vendor)
			return fmt.Sprintf("%s has it, and go.mod leads there", res.Copy), err
		}
		res.GoWork, res.GoWorkChanged, err = writeWorkspace(j.project, res.Copy)
		return fmt.Sprintf("%s points to it", res.GoWork), err
	})
	if err != nil {
		return nil, err
	}
	if err := j.build(ctx, res); err != nil {
		return nil, err
	}
	return res, nil
}

// build compiles once, so that the user's first build or test does not seem to hang.
func (j *job) build(ctx context.Context, res *Result) error {
	var err error
	if res.KelvinRequired, err = requiresKelvin(ctx, j.sys, j.project); err != nil {
		return err
	}
	order := BuildOrder{
		Project:  j.project,
		Copy:     res.Copy,
		Kelvin:   res.KelvinRequired,
		Compiler: res.Compiler,
		Record:   filepath.Join(j.cache.Dir, "built"),
		Log:      j.log(),
		Report:   j.report,
	}
	return j.step(func() (string, error) {
		built, err := j.parts.Build(ctx, order)
		res.Built = built
		if built {
			return "compiled " + order.what(), err
		}
		return order.what() + " is compiled already", err
	})
}

// step runs one step and reports what it did with the time it took.
func (j *job) step(f func() (string, error)) error {
	start := time.Now()
	done, err := f()
	if err != nil {
		return err
	}
	j.report.Done(done, time.Since(start))
	return nil
}

// Reporter hears how a set-up gets on. Its methods are called from one goroutine at a time.
type Reporter interface {
	// Start says that something has begun that takes a while.
	Start(text string)
	// Done says that a step has ended, and how long it took.
	Done(text string, took time.Duration)
	// Note tells something that the user should know.
	Note(text string)
	// Warn tells something that the user should change.
	Warn(text string)
	// Progress counts the bytes of a download; total is negative when it is not known.
	Progress(text string, done, total int64)
	// Log receives what the commands that set-up runs print, when the user asked to see it.
	Log() io.Writer
}

// silent is the Reporter of a caller that wants none.
type silent struct{}

func (silent) Start(string)                  {}
func (silent) Done(string, time.Duration)    {}
func (silent) Note(string)                   {}
func (silent) Warn(string)                   {}
func (silent) Progress(string, int64, int64) {}
func (silent) Log() io.Writer                { return io.Discard }

func reporterOrSilent(r Reporter) Reporter {
	if r == nil {
		return silent{}
	}
	return r
}

// log returns where commands write when the user wants to see them, and nil otherwise.
func (j *job) log() io.Writer {
	if !j.opts.Verbose {
		return nil
	}
	return j.report.Log()
}

// Error is a failure of set-up that says what is wrong and what to do about it.
type Error struct {
	Problem string // what is wrong, and where
	Remedy  string // what to do
	Err     error  // the cause; may be nil
}

// Error returns the problem, its cause and the remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Problem)
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(strings.TrimRight(e.Err.Error(), "\n"))
	}
	if e.Remedy != "" {
		b.WriteString("\n  what to do: ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error from a cause, which may be nil, a remedy and a formatted problem.
func fail(cause error, remedy, problem string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(problem, args...), Remedy: remedy, Err: cause}
}
