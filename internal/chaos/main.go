// Command chaos runs the tests that kill, damage and misuse Kelvin, and writes what they saw into docs/reliability.md.
//
//	go run ./internal/chaos              all checks
//	go run ./internal/chaos -only zarr   the checks whose name fits the pattern; the others keep their lines
//	go run ./internal/chaos -list        names the checks and the commands, and runs nothing
//
// A test tells a figure in a line of its log that begins with "seen: ". A check that fails, or that tells no figure,
// makes the command fail; the page then says so.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

const page = "docs/reliability.md"

func main() {
	only := flag.String("only", "", "run the checks whose name fits this regular expression")
	list := flag.Bool("list", false, "print the checks and their commands, and run nothing")
	verbose := flag.Bool("v", false, "print what the tests print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := chaos(ctx, os.Stdout, *only, *list, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func chaos(ctx context.Context, out io.Writer, only string, list, verbose bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if list {
		for _, c := range checks {
			for _, s := range c.suites {
				fmt.Fprintf(out, "%-12s %s\n", c.name, s.command())
			}
		}
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w; run it in the root of the repository", err)
	}
	results := parse(string(old))
	failed := []string{}
	for _, c := range checks {
		if !pattern.MatchString(c.name) {
			continue
		}
		r := c.run(ctx, out, verbose)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		results[c.name] = r
		fmt.Fprintf(out, "%-12s %4d s  %s\n", c.name, r.seconds, r.seen)
		if r.failed {
			failed = append(failed, c.name)
		}
		// The page is written after each check, so that a stop loses nothing.
		text, err := render(string(old), results)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(page, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d checks failed: %s", len(failed), strings.Join(failed, ", "))
	}
	return nil
}

// result is what a check saw.
type result struct {
	seen    string
	seconds int
	failed  bool
}

// run runs the suites of a check one after the other.
func (c check) run(ctx context.Context, out io.Writer, verbose bool) result {
	start := time.Now()
	var figures []string
	var err error
	for _, s := range c.suites {
		text, e := s.run(ctx)
		if verbose || e != nil {
			_, _ = out.Write(text)
		}
		figures = append(figures, seen(text)...)
		err = errors.Join(err, e)
	}
	r := result{seen: strings.Join(figures, "; "), seconds: int(time.Since(start).Seconds() + 0.5)}
	switch {
	case err != nil:
		r.seen, r.failed = "FAILED", true
	case len(figures) == 0:
		r.seen, r.failed = "FAILED: no figure was told", true
	}
	return r
}

// suite is a run of tests of one or more packages.
type suite struct {
	packages string
	tests    string // pattern of the tests; empty is all
	more     string // further flags
}

func (s suite) args() []string {
	args := []string{"test", "-tags", "slow", "-count=1", "-timeout", "30m"}
	args = append(args, strings.Fields(s.more)...)
	if s.tests != "" {
		args = append(args, "-run", s.tests)
	}
	return append(args, strings.Fields(s.packages)...)
}

// command is what a user types.
func (s suite) command() string {
	words := []string{"go test -tags slow"}
	if s.more != "" {
		words = append(words, s.more)
	}
	if s.tests != "" {
		words = append(words, "-run '"+s.tests+"'")
	}
	return strings.Join(append(words, s.packages), " ")
}

func (s suite) run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", append(s.args(), "-v")...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if err == nil && !bytes.Contains(text.Bytes(), []byte("=== RUN")) {
		err = fmt.Errorf("%s: there is no such test", s.command())
	}
	return text.Bytes(), err
}

var figure = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?seen: (.+)$`)

// seen are the figures in a log of tests.
func seen(text []byte) (found []string) {
	for _, m := range figure.FindAllSubmatch(text, -1) {
		found = append(found, strings.TrimSpace(string(m[1])))
	}
	return found
}
