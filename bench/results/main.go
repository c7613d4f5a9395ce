// Command results runs benchmarks and writes what they print into the page of results, as tables, with the machine, the
// date and the commit. A block of the page says by its first line which benchmark it is of:
//
//	<!-- results: go run ./bench/language -->
//	…
//	<!-- end of results -->
//
// A benchmark behind the word POSTERIORDB is left as it is where that environment variable is not set, and one behind
// GPU where there is none. With -only NAME no other benchmark runs than that of the folder. Run it on a quiet machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/kelvin-ppl/kelvin/bench"
	"github.com/kelvin-ppl/kelvin/bench/internal/command"
	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
	"github.com/kelvin-ppl/kelvin/torch"
)

func main() { command.Main("results", run) }

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("results", flag.ContinueOnError)
	page := f.String("page", "docs/results.md", "the page")
	only := f.String("only", "", "the folder below bench of the one benchmark that runs; all without it")
	if err := f.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*page)
	if err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return fmt.Errorf("the commit: %w", err)
	}
	machine := bench.ThisMachine()
	ran := 0
	next, err := rewritten(string(text), func(b benchmark) (string, error) {
		if *only != "" && b.name() != *only {
			return "", nil
		}
		if lacks := b.lacks(); lacks != "" {
			_, err := fmt.Fprintf(out, "%s: left as it is, %s\n", b.name(), lacks)
			return "", err
		}
		if _, err := fmt.Fprintln(out, strings.Join(b.words, " ")); err != nil {
			return "", err
		}
		ran++
		cmd, began := exec.CommandContext(ctx, b.words[0], b.words[1:]...), time.Now()
		cmd.Stderr = os.Stderr
		printed, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", b.name(), err)
		}
		return fmt.Sprintf("%s\n%s, %d cores, %s, libtorch %s; %s, commit %s, %.0f s.\n", tables(string(printed)),
			machine.Processor, machine.Cores, machine.System, machine.Libtorch, time.Now().Format(time.DateOnly),
			strings.TrimSpace(string(commit)), time.Since(began).Seconds()), nil
	})
	if err != nil {
		return err
	}
	if ran == 0 && *only != "" {
		return fmt.Errorf("%s has no block of bench/%s that can run", *page, *only)
	}
	return atomicfile.Replace(*page, func(w io.Writer) error {
		_, err := io.WriteString(w, next)
		return err
	})
}

// benchmark is what fills a block.
type benchmark struct {
	words []string // of the command
	needs string   // POSTERIORDB, the posteriors, GPU, or nothing
}

// lacks says what it needs and is not there.
func (b benchmark) lacks() string {
	switch b.needs {
	case "POSTERIORDB":
		if os.Getenv("POSTERIORDB") == "" {
			return "POSTERIORDB is not set"
		}
	case "GPU":
		if _, err := torch.CUDA(0); err != nil {
			return "no GPU"
		}
	}
	return ""
}

// name is the folder of the benchmark below bench.
func (b benchmark) name() string { return path.Base(b.words[2]) }

var (
	block = regexp.MustCompile(`(?s)(<!-- results: (POSTERIORDB |GPU )?(go run \./bench/[^\n]*?) -->\n)` +
		`(.*?)(<!-- end of results -->)`)
	apart = regexp.MustCompile(` {2,}`)
)

// rewritten is a page whose blocks have what fill gives for them; where that is empty they stay.
func rewritten(page string, fill func(benchmark) (string, error)) (string, error) {
	if strings.Count(page, "<!-- results: ") != len(block.FindAllString(page, -1)) {
		return "", fmt.Errorf("a block of results has no end, or its command does not begin with go run ./bench/")
	}
	var failed error
	next := block.ReplaceAllStringFunc(page, func(old string) string {
		part := block.FindStringSubmatch(old)
		if failed != nil {
			return old
		}
		text, err := fill(benchmark{strings.Fields(part[3]), strings.TrimSpace(part[2])})
		if failed = err; err != nil || text == "" {
			return old
		}
		return part[1] + text + part[5]
	})
	return next, failed
}

// tables are the columns of a text as tables of a page: lines one after the other with as many cells, two spaces or
// more apart. Other lines stay.
func tables(text string) string {
	var out strings.Builder
	columns := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := apart.Split(line, -1)
		if len(cells) < 2 {
			columns = 0
			out.WriteString(line + "\n")
			continue
		}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if len(cells) != columns {
			columns = len(cells)
			out.WriteString(strings.Repeat("|---", columns) + "|\n")
		}
	}
	return out.String()
}
