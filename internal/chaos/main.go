// Command chaos runs the tests that kill, damage and misuse Kelvin, whose commands stand in docs/reliability.md, and
// writes what they saw into its table.
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

const (
	page   = "docs/reliability.md"
	failed = "FAILED"
)

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
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w; run it in the root of the repository", err)
	}
	checks, err := parse(string(text))
	if err != nil {
		return err
	}
	var bad []string
	for _, c := range checks {
		switch {
		case !pattern.MatchString(c.name):
			continue
		case list:
			fmt.Fprintf(out, "%-12s %s\n", c.name, strings.Join(c.commands, "\n             "))
			continue
		}
		c.run(ctx, out, verbose)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(out, "%-12s %4s s  %s\n", c.name, c.seconds, c.seen)
		if strings.HasPrefix(c.seen, failed) {
			bad = append(bad, c.name)
		}
		// The page is written after each check, so that a stop loses nothing.
		if err := atomicfile.Write(page, []byte(render(string(text), checks)), 0o644); err != nil {
			return err
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d checks failed: %s", len(bad), strings.Join(bad, ", "))
	}
	return nil
}

// run runs the commands of a check one after the other.
func (c *check) run(ctx context.Context, out io.Writer, verbose bool) {
	start := time.Now()
	var figures []string
	var all error
	for _, command := range c.commands {
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+command+" -count=1 -timeout 30m -v")
		text, err := cmd.CombinedOutput()
		if err == nil && !bytes.Contains(text, []byte("=== RUN")) {
			err = fmt.Errorf("%s: there is no such test", command)
		}
		if verbose || err != nil {
			_, _ = out.Write(text)
		}
		figures, all = append(figures, seen(text)...), errors.Join(all, err)
	}
	c.saw(figures, time.Since(start), all)
}

var figure = regexp.MustCompile(`(?m)^\s*(?:\S+\.go:\d+: )?seen: (.+)$`)

// seen are the figures in a log of tests.
func seen(text []byte) (found []string) {
	for _, m := range figure.FindAllSubmatch(text, -1) {
		found = append(found, strings.TrimSpace(string(m[1])))
	}
	return found
}
