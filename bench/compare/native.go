package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/torch"
)

//go:embed native/networks.cpp
var networksSource []byte

//go:embed native/baseline.cpp
var baselineSource []byte

// source is the C++ program: the networks, then all else.
var source = slices.Concat(networksSource, baselineSource)

// flags are what set-up wrote into the adapted gotch for the libtorch in use.
type flags struct{ compile, link []string }

var cgoLine = regexp.MustCompile(`(?m)^\s*// #cgo (CXXFLAGS|LDFLAGS): (.*)$`)

// parseFlags reads the cgo lines of a Go file in the folder dir.
func parseFlags(file, dir string) (flags, error) {
	var f flags
	for _, m := range cgoLine.FindAllStringSubmatch(file, -1) {
		words := splitFlags(strings.ReplaceAll(m[2], "${SRCDIR}", dir))
		if m[1] == "CXXFLAGS" {
			f.compile = append(f.compile, words...)
		} else {
			f.link = append(f.link, words...)
		}
	}
	if len(f.compile) == 0 || len(f.link) == 0 {
		return f, errors.New("the adapted gotch names no compiler or linker flags; run set-up again")
	}
	return f, nil
}

// splitFlags splits at spaces outside double quotes.
func splitFlags(s string) []string {
	quoted := false
	words := strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t')
	})
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, `"`, "")
	}
	return words
}

// findFlags reads the flags from the gotch that this module is built with.
func findFlags(ctx context.Context) (flags, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sugarme/gotch").Output()
	if err != nil {
		return flags{}, fmt.Errorf("asking go list where gotch is: %w%s", err, stderrOf(err))
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "libtch")
	file, err := os.ReadFile(filepath.Join(dir, "lib.go"))
	if err != nil {
		return flags{}, err
	}
	return parseFlags(string(file), dir)
}

// build compiles the C++ program, or finds it compiled, and returns its path. note tells the user of long work.
func build(ctx context.Context, note func(string)) (string, error) {
	f, err := findFlags(ctx)
	if err != nil {
		return "", err
	}
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	words := splitFlags(compiler) // $CXX may carry flags, or a wrapper before the compiler
	if len(words) == 0 {
		return "", errors.New("$CXX is blank")
	}
	args := append(words[1:], f.compile...)
	args = append(args, "-O2", "-DNDEBUG", "-x", "c++", "-")

	h := sha256.New()
	h.Write(source)
	fmt.Fprintf(h, "\x00%q\x00%q\x00%s\x00%s", append([]string{words[0]}, args...), f.link, torch.Version(),
		torch.Library().Config)
	dir, err := folder(hex.EncodeToString(h.Sum(nil)[:8]))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "baseline")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	note("building the C++ program with " + words[0] + ", once: this takes half a minute")
	unfinished, err := os.CreateTemp(dir, "baseline.tmp-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return "", err
	}
	args = append(args, "-x", "none", "-o", unfinished.Name())
	cmd := exec.CommandContext(ctx, words[0], append(args, f.link...)...)
	cmd.Stdin = bytes.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the C++ program with %s ($CXX names another compiler): %w\n%s", words[0], err,
			tail(out, 4000))
	}
	if err := os.Chmod(unfinished.Name(), 0o755); err != nil {
		return "", err
	}
	return program, os.Rename(unfinished.Name(), program)
}

// folder is a folder of Kelvin's cache, or else of the system's temporary files.
func folder(name string) (string, error) {
	cache := os.Getenv("KELVIN_CACHE")
	if cache == "" {
		if user, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(user, "kelvin")
		}
	}
	if cache != "" {
		dir := filepath.Join(cache, "bench", name)
		if os.MkdirAll(dir, 0o755) == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "kelvin-bench-*")
}

// native is the running C++ program. See native/baseline.cpp for its commands.
type native struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
}

func start(ctx context.Context, program, device string) (*native, error) {
	n := &native{cmd: exec.CommandContext(ctx, program, device), stderr: new(bytes.Buffer)}
	n.cmd.Stderr = n.stderr
	var err error
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	return n, n.cmd.Start()
}

// stop ends the program and waits for it.
func (n *native) stop() error {
	if err := n.in.Close(); err != nil {
		return err
	}
	return n.cmd.Wait()
}

// ask sends a command and returns the answer's words.
func (n *native) ask(command string) ([]string, error) {
	// One that ended can no longer be written to: reading tells why.
	_, _ = io.WriteString(n.in, command+"\n")
	line, err := n.out.ReadString('\n')
	if err != nil {
		err = errors.Join(errors.New("the C++ program ended"), n.cmd.Wait())
		return nil, fmt.Errorf("%w: %s", err, tail(n.stderr.Bytes(), 1000))
	}
	if message, failed := strings.CutPrefix(line, "error "); failed {
		return nil, fmt.Errorf("the C++ program: %s", strings.TrimSpace(message))
	}
	return strings.Fields(line), nil
}

// put gives the program a tensor of double precision.
func (n *native) put(name string, data []float64, shape ...int) error {
	return n.putAs("double", name, data, shape...)
}

// putAs gives the program a tensor of double, float or long.
func (n *native) putAs(dtype, name string, data []float64, shape ...int) error {
	line := fmt.Appendf(nil, "put %s %s %s", name, dtype, dimensions(shape))
	for _, v := range data {
		line = strconv.AppendFloat(append(line, ' '), v, 'g', -1, 64)
	}
	_, err := n.ask(string(line))
	return err
}

// net gives the program a network on the tensors name.x and name.y.
func (n *native) net(name, kind string, data int, sites []infer.Site) error {
	var b strings.Builder
	fmt.Fprintf(&b, "net %s %s %d %d", name, kind, data, len(sites))
	for _, s := range sites {
		fmt.Fprintf(&b, " %s %s", s.Name, dimensions(s.Shape))
	}
	_, err := n.ask(b.String())
	return err
}

// dimensions are the rank and the sizes of a shape.
func dimensions(shape []int) string {
	text := fmt.Sprint(len(shape))
	for _, size := range shape {
		text += fmt.Sprintf(" %d", size)
	}
	return text
}

// eval returns the values and the gradients of a case at a tensor, one after the other.
func (n *native) eval(key, at string) ([]float64, error) {
	words, err := n.ask(fmt.Sprintf("eval %s %s", key, at))
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(words))
	for i, w := range words {
		if out[i], err = strconv.ParseFloat(w, 64); err != nil {
			return nil, fmt.Errorf("the C++ program answered with %q: %w", w, err)
		}
	}
	return out, nil
}

// time returns the nanoseconds of a call.
func (n *native) time(key, at string, repetitions int) (float64, error) {
	words, err := n.ask(fmt.Sprintf("time %s %s %d", key, at, repetitions))
	if err != nil {
		return 0, err
	}
	if len(words) != 1 {
		return 0, fmt.Errorf("the C++ program answered with %q, expected one number", words)
	}
	return strconv.ParseFloat(words[0], 64)
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return "\n" + tail(exit.Stderr, 1000)
	}
	return ""
}

func tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
	}
	return strings.TrimSpace(string(b))
}
