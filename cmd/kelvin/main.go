// Command kelvin makes a machine and a module ready for Kelvin, says what is there, and looks at stored draws.
//
//	kelvin setup             find or install libtorch, adapt gotch to it, write go.work, build once
//	kelvin doctor            show what was found and whether it works
//	kelvin compile [PACKAGE] write the C of a program's gradients, to be linked into it
//	kelvin version           show the version and the commit of Kelvin, gotch, libtorch and Go
//	kelvin summary FILE...   print means, intervals and diagnostics of stored draws
//	kelvin diagnose FILE...  say in words whether stored draws can be trusted
//	kelvin report FILE...    write a page with plots of stored draws
//	kelvin serve FILE        put an exported model, or a fit, behind HTTP
//	kelvin fit FILE FORMULA  fit a regression to a CSV file: draws, report, pictures in a folder
//	kelvin predict DIR FILE  predict new rows with such a fit
//	kelvin effects DIR       what a column does to the outcome
//	kelvin hypothesis DIR TEXT what the draws make of a statement
//	kelvin compare DIR...    rank fits by cross-validation
//	kelvin code DIR          print the Go program that does the same
//	kelvin export DIR        write a fit into one file, that predicts without libtorch
//
// It builds without libtorch. Fit and the commands below it are a second program, with libtorch, that it builds once.
// It exits with 0 when all went well, 1 when something failed or diagnose has a serious warning, 2 when it was called
// wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/term"

	"github.com/kelvin-ppl/kelvin/internal/setup"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Kelvin: probabilistic programming in Go.

usage:
  kelvin setup [flags]    find or install libtorch, adapt gotch to it, write go.work, build once
  kelvin doctor [flags]   show what was found and whether it works
  kelvin compile [package [arguments...]]
                          run a program and write the C of its gradients, to be linked into it
  kelvin version          show the version and the commit of Kelvin, gotch, libtorch and Go
  kelvin summary FILE...  print means, intervals and diagnostics of stored draws
  kelvin diagnose FILE... say in words whether stored draws can be trusted
  kelvin report FILE...   write a page with plots of stored draws
  kelvin serve FILE       put an exported model with its draws, or the folder of a fit, behind HTTP

  kelvin fit data.csv 'y ~ x + (1 | g)' [flags]
                          fit a regression: priors, summary and findings, and a folder with draws, report and pictures
  kelvin predict DIR new.csv
                          predict new rows with a fit
  kelvin effects DIR --by COLUMN
                          what a column does to the outcome, on average and as a picture
  kelvin hypothesis DIR 'age > 0.1'
                          what the draws make of a statement
  kelvin compare DIR...   rank fits by leave-one-out cross-validation
  kelvin code DIR         print the Go program that does the same as a fit
  kelvin export DIR       write a fit into one file, that predicts without libtorch

  kelvin help [command]   show this, or the flags of a command

Run it in the folder of your module: go run ` + setup.Kelvin + `/cmd/kelvin setup
`

// app is the command with what it talks to; tests replace its fields.
type app struct {
	out, err io.Writer
	terminal bool // err is a terminal, and progress may be drawn on it
	sys      *setup.System
	parts    setup.Parts
	exec     func(program string, args, env []string) error // [syscall.Exec]: it returns where it fails alone
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	sys := setup.Host(term.IsTerminal(int(os.Stdin.Fd())))
	a := &app{
		out: os.Stdout, err: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd())),
		sys: sys, parts: setup.DefaultParts(sys), exec: syscall.Exec,
	}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run does what the arguments say and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(a.err, usage)
		return exitUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "setup":
		return a.setup(ctx, rest)
	case "doctor":
		return a.doctor(ctx, rest)
	case "compile":
		return a.compile(ctx, rest)
	case "serve":
		return a.serve(ctx, rest)
	case "version", "-version", "--version":
		return a.version(ctx, rest)
	case "help", "-h", "-help", "--help":
		return a.help(ctx, rest)
	}
	if slices.Contains(regressions, name) {
		return a.regression(ctx, args)
	}
	if command, ok := stored[name]; ok {
		return a.stored(command, rest)
	}
	fmt.Fprintf(a.err, "kelvin: there is no command %q; the commands are setup, doctor, compile, serve, version and "+
		"help, for stored draws summary, diagnose and report, for regressions fit, predict, effects, hypothesis, compare, "+
		"code and export\n",
		name)
	return exitUsage
}

// help shows the usage, or the flags of a command.
func (a *app) help(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(a.out, usage)
		return exitOK
	}
	return a.run(ctx, []string{args[0], "-help"})
}

// parse reads a command's flags. When it returns false, the command ends with the code.
func (a *app) parse(flags *flag.FlagSet, args []string) (code int, ok bool) {
	flags.SetOutput(a.err)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, false
	case err != nil:
		return exitUsage, false
	case flags.NArg() > 0:
		fmt.Fprintf(a.err, "kelvin: %s takes no argument %q; see kelvin help %s\n", flags.Name(), flags.Arg(0), flags.Name())
		return exitUsage, false
	}
	return exitOK, true
}

// fail prints an error and returns the exit code.
func (a *app) fail(err error) int {
	fmt.Fprintf(a.err, "kelvin: %v\n", err)
	return exitFailed
}
