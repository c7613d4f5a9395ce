package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/kelvin-ppl/kelvin/internal/visible"
	"github.com/kelvin-ppl/kelvin/store"
)

// stored are the commands that look at stored draws.
var stored = map[string]func(args []string, stdout, stderr io.Writer) error{
	"summary":  summary,
	"diagnose": diagnose,
	"report":   report,
}

var (
	// errUsage is wrapped by the error of a call that is wrong.
	errUsage = errors.New("wrong call")
	// errSerious is the error of draws with a serious warning, which has been printed.
	errSerious = errors.New("the draws have a serious warning")
)

// stored runs a command and returns the exit code.
func (a *app) stored(command func([]string, io.Writer, io.Writer) error, args []string) int {
	// Names and notes are those of files of strangers.
	a.out, a.err = visible.Writer(a.out), visible.Writer(a.err)
	err := command(args, a.out, a.err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errSerious):
		return exitFailed
	}
	a.fail(err)
	if errors.Is(err, errUsage) || errors.Is(err, errReportUsage) {
		return exitUsage
	}
	return exitFailed
}

const storedFiles = `FILE is what Kelvin, CmdStan or ArviZ have stored: CSV files of one run (or a pattern, or their
directory), a JSON file, or a Zarr directory. Flags may stand before or behind it.
`

// open parses the flags of a command and opens the files that it names; there must be a posterior.
func open(flags *flag.FlagSet, about string, args []string, stderr io.Writer) (*store.Inference, error) {
	flags.SetOutput(io.Discard)
	files, err := mixed(flags, args)
	switch name := flags.Name(); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, about, "\n", storedFiles, "\n")
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see kelvin %s -help%w", err, name, silent{errUsage})
	case len(files) == 0:
		return nil, fmt.Errorf("%s: no file is given; see kelvin %s -help%w", name, name, silent{errUsage})
	}
	inf, err := store.Open(files...)
	if err != nil {
		return nil, err
	}
	for _, note := range inf.Notes {
		fmt.Fprintf(stderr, "note: %s\n", note)
	}
	if inf.Posterior == nil {
		return nil, fmt.Errorf("%s: there is no posterior", files[0])
	}
	return inf, nil
}

// silent is an error to be found by errors.Is without words of its own.
type silent struct{ err error }

func (s silent) Error() string { return "" }
func (s silent) Unwrap() error { return s.err }

// finite is a number for JSON, which has no NaN and no infinities: null.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
