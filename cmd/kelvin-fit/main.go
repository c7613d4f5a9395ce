// Command kelvin-fit fits regressions from the shell, and looks at them. The command kelvin builds it once, and runs it
// as kelvin fit, predict, effects, compare and code: it needs libtorch, and kelvin does not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/kelvin-ppl/kelvin/internal/visible"
)

// The exit codes are those of kelvin.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is where the command writes to: results to out, what it does to err.
type app struct{ out, err io.Writer }

// commands are the commands by name.
var commands = map[string]func(a *app, ctx context.Context, args []string) error{
	"fit":     (*app).fit,
	"predict": (*app).predict,
	"effects": (*app).effects,
	"compare": (*app).compare,
	"code":    (*app).code,
}

// errUsage is wrapped by the error of a call that is wrong.
var errUsage = errors.New("wrong call")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Names are those of files of strangers.
	code := (&app{out: visible.Writer(os.Stdout), err: os.Stderr}).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run does what the arguments say and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintln(a.err, "kelvin-fit: the commands are fit, predict, effects, compare and code; run it as kelvin")
		return exitUsage
	}
	err := commands[args[0]](a, ctx, args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case ctx.Err() != nil:
		err = errors.New("interrupted: nothing was written")
	}
	fmt.Fprintf(visible.Writer(a.err), "kelvin %s: %s\n", args[0], inShell(err.Error()))
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

// words are what Go's packages tell a caller to set, and the flags for it.
var words = strings.NewReplacer(
	"CSV.Factors", "--factor", "CSV.Numbers", "--number", "CSV.Missing", "--missing", "CSV.Levels", "--levels",
	"CSV.Comma", "--comma", "CSV.Decimal", "--decimal",
	"drop such rows with Table.DropMissing", "leave such rows out with --drop-missing",
	"set NewLevels to regression.DrawNew or MeanNew to predict for new ones",
	"--new-levels draw or --new-levels mean predicts for new ones",
	"with infer.Options{Draws: ...}", "with --draws", "infer.Options.Warmup", "--warmup",
	"sample with hmc.NUTS{}", "sample with --method nuts",
)

// numbered are those with a number.
var numbered = regexp.MustCompile(`(infer\.Options|hmc\.NUTS)\{(Draws|Warmup|TargetAccept): ([0-9.]+)\}`)

// inShell is an error or advice in the words of the shell.
func inShell(text string) string {
	return numbered.ReplaceAllStringFunc(words.Replace(text), func(m string) string {
		part := numbered.FindStringSubmatch(m)
		return map[string]string{"Draws": "--draws ", "Warmup": "--warmup ", "TargetAccept": "--target-accept "}[part[2]] +
			part[3]
	})
}

// parse reads flags that stand before, between or after arguments, of which there must be from least to most.
func (a *app) parse(flags *flag.FlagSet, usage string, args []string, least, most int) (others []string, err error) {
	flags.SetOutput(io.Discard)
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(a.err, usage, "\n")
			flags.SetOutput(a.err)
			flags.PrintDefaults()
			return nil, err
		}
		if err != nil {
			return nil, wrong("%v; see kelvin %s -help", err, flags.Name())
		}
		rest := flags.Args()
		if stop := len(args) - len(rest); stop > 0 && args[stop-1] == "--" {
			others, rest = append(others, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		others, args = append(others, rest[0]), rest[1:]
	}
	if len(others) < least || len(others) > most {
		return nil, wrong("%d arguments %q are not what it takes; see kelvin %s -help", len(others), others, flags.Name())
	}
	return others, nil
}

// usageError is the error of a wrong call.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }
func (usageError) Unwrap() error   { return errUsage }

func wrong(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// several is a flag that may be given several times.
func several(flags *flag.FlagSet, name, usage string, add func(text string) error) {
	flags.Func(name, usage+"; may be given several times", add)
}
