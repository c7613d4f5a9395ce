// Command kelvin-fit fits regressions from the shell, and looks at them. The command kelvin builds it once, and runs it
// as kelvin fit, predict, effects, hypothesis, compare, code and export: it needs libtorch, and kelvin does not.
package main

import (
	"context"
	_ "embed"
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

//go:embed usage.txt
var usage string

// app is where the command writes to: results to out, what it does to err.
type app struct{ out, err io.Writer }

// commands are the commands by name.
var commands = map[string]func(a *app, ctx context.Context, args []string) error{"fit": (*app).fit,
	"predict": (*app).predict, "effects": (*app).effects, "hypothesis": (*app).hypothesis,
	"compare": (*app).compare, "code": (*app).code, "export": (*app).export}

// errUsage is wrapped by the error of a call that is wrong.
var errUsage = errors.New("")

// wrong is the error of a wrong call.
func wrong(format string, args ...any) error {
	return fmt.Errorf("%w%s", errUsage, fmt.Sprintf(format, args...))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Names are those of files of strangers.
	code := (&app{out: visible.Writer(os.Stdout), err: os.Stderr}).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run does what the arguments say and returns the exit code: as kelvin 0, 1 for a failure, or 2 for a wrong call.
func (a *app) run(ctx context.Context, args []string) int {
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprintln(a.err, "kelvin-fit: the commands are fit, predict, effects, hypothesis, compare, code and export; run "+
			"it as kelvin")
		return 2
	}
	err := commands[args[0]](a, ctx, args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		err = errors.New("interrupted: nothing was written")
	}
	fmt.Fprintf(visible.Writer(a.err), "kelvin %s: %s\n", args[0], inShell(err.Error()))
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// words are what Go's packages tell a caller to set, and the flags for it.
var words = strings.NewReplacer("CSV.Factors", "--factor", "CSV.Missing", "--missing", "CSV.Levels", "--levels",
	"CSV.Comma", "--comma", "CSV.Decimal", "--decimal",
	"CSV.Columns names it", "the formula needs it", "CSV.Numbers", "the fit",
	"drop such rows with Table.DropMissing", "leave such rows out with --drop-missing",
	"with infer.Options{Draws: ...}", "with --draws", "infer.Options.Warmup", "--warmup",
	"sample with hmc.NUTS{}", "sample with --method nuts", "set DrawNew or MeanNew",
	"give --new-levels draw or mean", ", or keep all with Formula.Collinear", "",
	", or keep it with Formula.EmptyCells", "")

// numbered are those with a number: of draws, or an acceptance.
var draw, accept = regexp.MustCompile(`infer\.Options\{Draws: (\d+)\}`),
	regexp.MustCompile(`hmc\.NUTS\{TargetAccept: ([0-9.]+)\}`)

// inShell is an error or advice in the words of the shell.
func inShell(text string) string {
	return accept.ReplaceAllString(draw.ReplaceAllString(words.Replace(text), "--draws $1"), "--target-accept $1")
}

// parse reads flags that stand before, between or after arguments, of which there must be from least to most.
func (a *app) parse(flags *flag.FlagSet, args []string, least, most int) (others []string, err error) {
	flags.SetOutput(io.Discard)
	for len(args) > 0 {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			_, text, _ := strings.Cut(usage, "usage: kelvin "+flags.Name())
			text, _, _ = strings.Cut(text, "usage:")
			fmt.Fprint(a.err, "usage: kelvin ", flags.Name(), strings.TrimRight(text, "\n"), "\n\n")
			flags.SetOutput(a.err)
			flags.PrintDefaults()
			return nil, err
		}
		if err != nil {
			return nil, wrong("%v; see kelvin %s -help", err, flags.Name())
		}
		if args = flags.Args(); len(args) > 0 {
			others, args = append(others, args[0]), args[1:]
		}
	}
	if len(others) < least || len(others) > most {
		return nil, wrong("the arguments %q are too few or too many; see kelvin %s -help", others, flags.Name())
	}
	return others, nil
}
