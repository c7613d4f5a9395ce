package gotch

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

const generatedC = "torch_api_generated.cpp.h"

// maxPasses bounds the search: one pass finds the ops, one shows that the rest compiles, the others are for errors that
// the compiler only reports when earlier ones are gone.
const maxPasses = 6

var errorLine = regexp.MustCompile(`(?m)^(?:In file included from )?(.*?):(\d+):\d+: (?:fatal )?error: (.*)$`)
var generatedLine = regexp.MustCompile(regexp.QuoteMeta(generatedC) + `:(\d+)`)

// Missing finds the operations of the adapted copy at dst that the libtorch in use lacks, by asking the compiler cxx to
// check the C++ file. An operation that only changed its signature gets the form that this libtorch has; any other gets
// a body that reports "not in this libtorch". The names of the latter are returned and written into the copy. Anything
// else that does not compile is an error with the compiler's text.
func Missing(ctx context.Context, dst, cxx string, flags Flags) ([]string, error) {
	if err := checkOwn(ctx, dst, cxx, flags); err != nil {
		return nil, err
	}
	path := filepath.Join(dst, "libtch", generatedC)
	missing := map[string]bool{}
	tried := map[string]bool{}
	for pass := 0; pass < maxPasses; pass++ {
		out, err := check(ctx, dst, cxx, flags, "", filepath.Join(dst, "libtch", "torch_api.cpp"))
		if err != nil {
			return nil, err
		}
		if out == "" {
			names := make([]string, 0, len(missing))
			for op := range missing {
				names = append(names, op)
			}
			sort.Strings(names)
			return names, writeMissing(dst, names)
		}
		ops, err := failingOps(path, out)
		if err != nil {
			return nil, err
		}
		err = rewrite(dst, "libtch/"+generatedC, func(s string) (string, error) {
			for _, op := range ops {
				body, ok := fallbackFor(op)
				if !ok || tried[op] {
					body = `throw std::runtime_error("the operation ` + strings.TrimPrefix(op, "atg_") +
						` is not in this libtorch (" TORCH_VERSION ")");`
					missing[op] = true
				}
				tried[op] = true
				var done bool
				if s, done = replaceBody(s, op, body); !done {
					return "", fmt.Errorf("adapting %s: %s has no function %s of the expected form",
						Module, generatedC, op)
				}
			}
			return s, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("adapting %s: still finding operations that do not compile after %d passes",
		Module, maxPasses)
}

// checkOwn checks Kelvin's own C++ before anything else. What it lacks has no replacement, and would come up only after
// minutes of compiling. The files are checked as one, since most of the time goes to libtorch's headers.
func checkOwn(ctx context.Context, dst, cxx string, flags Flags) error {
	var all strings.Builder
	for _, pattern := range []string{"libtch/kelvin*.cpp", "record/*.cpp"} {
		files, err := filepath.Glob(filepath.Join(dst, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, file := range files {
			fmt.Fprintf(&all, "#include %q\n", file)
		}
	}
	if all.Len() == 0 {
		return nil
	}
	out, err := check(ctx, dst, cxx, flags, all.String(), "-x", "c++", "-I"+filepath.Join(dst, "record"), "-")
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("the C++ of Kelvin does not compile against this libtorch: %s", errorLine.FindString(out))
	}
	return nil
}

// check runs the compiler's syntax check on what the last arguments name, and returns its output when it found errors.
func check(ctx context.Context, dst, cxx string, flags Flags, input string, what ...string) (string, error) {
	if strings.TrimSpace(cxx) == "" {
		return "", fmt.Errorf("no C++ compiler was named")
	}
	dir := filepath.Join(dst, "libtch")
	args := append(compilerFlags(flags), "-I"+dir, "-fsyntax-only")
	switch {
	case strings.Contains(cxx, "clang"):
		args = append(args, "-ferror-limit=0")
	case strings.Contains(cxx, "g++"):
		args = append(args, "-fmax-errors=0")
	} // whichever compiler c++ is, the passes do the rest
	// A compiler may come with arguments: "ccache g++".
	words := strings.Fields(cxx)
	args = append(append(words[1:], args...), what...)
	cmd := exec.CommandContext(ctx, words[0], args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if !errorLine.Match(out) {
		return "", fmt.Errorf("running %s: %w\n%s", cxx, err, tail(string(out), 20))
	}
	return string(out), nil
}

// failingOps maps the compiler's errors to the functions that they are in. An error in a header that was included is
// charged to the generated line that brought it up; one that no generated line brought up ends the search.
func failingOps(path, out string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	owner := owners(string(text))
	found := map[string]bool{}
	var context string // the last generated line that a note or an error named
	sc := bufio.NewScanner(strings.NewReader(out))
	sc.Buffer(make([]byte, 1<<20), 1<<26)
	stray := ""
	for sc.Scan() {
		line := sc.Text()
		if m := generatedLine.FindStringSubmatch(line); m != nil {
			if n, _ := strconv.Atoi(m[1]); n < len(owner) && owner[n] != "" {
				context = owner[n]
				if strings.Contains(line, "error:") || strings.Contains(line, "required from here") ||
					strings.Contains(line, "in instantiation of") {
					found[context] = true
				}
			}
		} else if strings.Contains(line, "error:") && context == "" && stray == "" {
			stray = line
		}
	}
	if len(found) == 0 {
		if stray == "" {
			stray = tail(out, 20)
		}
		return nil, fmt.Errorf("the C++ of the adapted gotch does not compile against this libtorch: %s", stray)
	}
	ops := make([]string, 0, len(found))
	for op := range found {
		ops = append(ops, op)
	}
	sort.Strings(ops)
	return ops, nil
}

var anyFunction = regexp.MustCompile(`^\S.*\b(atg_\w+)\(.*\{$`)

// owners names the function of each line, counted from 1.
func owners(text string) []string {
	lines := strings.Split(text, "\n")
	owner := make([]string, len(lines)+1)
	current := ""
	for i, line := range lines {
		if m := anyFunction.FindStringSubmatch(line); m != nil {
			current = m[1]
		}
		owner[i+1] = current
		if line == "}" {
			current = ""
		}
	}
	return owner
}

// replaceBody puts a new statement list into the protected body of a function.
func replaceBody(s, op, body string) (string, bool) {
	re := regexp.MustCompile(`(?s)(\n\S[^\n]*\b` + op + `\([^\n]*\{\n\s*(?:PROTECT\(|KELVIN_OP\(\d+, )\n).*?(\n  \)\n)`)
	loc := re.FindStringSubmatchIndex(s)
	if loc == nil {
		return s, false
	}
	return s[:loc[3]] + "    " + body + s[loc[4]:], true
}

// writeMissing records the names in the copy, for doctor.
func writeMissing(dst string, names []string) error {
	var b strings.Builder
	b.WriteString("package ts\n\n// KelvinMissing names the operations that the libtorch in use lacks.\n" +
		"var KelvinMissing = []string{\n")
	for _, n := range names {
		fmt.Fprintf(&b, "\t%q,\n", strings.TrimPrefix(n, "atg_"))
	}
	b.WriteString("}\n")
	return atomicfile.Write(filepath.Join(dst, "ts", "kelvin_missing.go"), []byte(b.String()), 0o644)
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
