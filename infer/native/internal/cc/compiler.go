package cc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Compiler is a C compiler of this machine.
type Compiler struct {
	Path    string
	Args    []string // that come before all others
	Version string   // the first line of what --version prints

	barrier bool // it knows __builtin_assoc_barrier, as gcc has from version 12 on
}

// ErrNoCompiler is the error of a machine without a C compiler.
var ErrNoCompiler = errors.New("cc: no C compiler: neither KELVIN_CC nor CC is set, and there is no cc, gcc or clang")

// Find finds the C compiler: KELVIN_CC, then CC, then cc, gcc and clang of the path. What a variable names must work;
// it is not passed over.
func Find() (Compiler, error) {
	for _, variable := range []string{"KELVIN_CC", "CC"} {
		words := strings.Fields(os.Getenv(variable))
		if len(words) == 0 {
			continue
		}
		c, err := probe(words)
		if err != nil {
			return Compiler{}, fmt.Errorf("cc: the compiler that %s names: %w", variable, err)
		}
		return c, nil
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if c, err := probe([]string{name}); err == nil {
			return c, nil
		}
	}
	return Compiler{}, ErrNoCompiler
}

// probe asks a compiler for its version.
func probe(words []string) (Compiler, error) {
	path, err := exec.LookPath(words[0])
	if err != nil {
		return Compiler{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Compiler{}, err
	}
	c := Compiler{Path: path, Args: words[1:]}
	out, err := c.run(5*time.Second, "", nil, "--version")
	if err != nil {
		return Compiler{}, err
	}
	c.Version, _, _ = strings.Cut(string(out), "\n")
	// The copyright tells gcc, under whatever name, from what else prints versions.
	if strings.Contains(string(out), "Free Software Foundation") {
		words := strings.Fields(c.Version)
		major, _, _ := strings.Cut(words[len(words)-1], ".")
		n, _ := strconv.Atoi(major)
		c.barrier = n >= 12
	}
	return c, nil
}

// run runs the compiler in a folder and returns what it printed. After the time limit it and its children are killed.
func (c Compiler) run(limit time.Duration, dir string, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Path, append(append([]string{}, c.Args...), args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if dir != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	group(cmd)
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s took longer than %v", c.Path, limit)
	}
	if err != nil {
		text := strings.TrimSpace(out.String())
		if len(text) > 2000 {
			text = text[:2000] + " ..."
		}
		return nil, fmt.Errorf("%s: %w: %s", c.Path, err, text)
	}
	return out.Bytes(), nil
}

// flags are all that the compiler gets besides the files.
//
// Reductions may be reordered where the text has them, and products may be fused with sums. No other rule of the
// arithmetic is given up, so that infinities and NaN stay what they are.
func (c Compiler) flags() []string {
	f := []string{"-std=gnu11", "-w", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
		"-fopenmp-simd", "-fno-tree-slp-vectorize"} // which takes most of the time and gains nothing here
	if c.barrier {
		// Without it, gcc adds up the lanes of a reduction one by one.
		f = append(f, "-fassociative-math", "-fno-signed-zeros", "-DKELVIN_BARRIER")
		// It makes branches of choices that depend on each other, and loops with branches are not vectorised.
		f = append(f, "-fno-tree-pre")
	}
	return append(append(f, native()...), "-fPIC", "-shared")
}

// object compiles a text into a shared object, with more flags than those of every plan where there are any.
func (c Compiler) object(text string, limit time.Duration, more ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kelvin-cc-") // of this user alone
	if err != nil {
		return nil, fmt.Errorf("cc: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "object.so")
	args := append(append(c.flags(), more...), "-x", "c", "-", "-o", out, "-lm")
	if _, err := c.run(limit, dir, []byte(text), args...); err != nil {
		return nil, fmt.Errorf("cc: %w", err)
	}
	object, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("cc: %s made no object: %w", c.Path, err)
	}
	return object, nil
}
