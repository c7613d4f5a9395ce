// Package ccompiler finds the machine's C compiler, and the folder that keeps what it made of gradients. Package native
// and set-up use it; it needs neither cgo nor libtorch.
package ccompiler

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
	"sync"
	"time"
)

// Compiler is a C compiler of this machine.
type Compiler struct {
	Path    string
	Args    []string // that come before all others
	Version string   // the first line of what --version prints

	Barrier bool // it knows __builtin_assoc_barrier, as gcc has from version 12 on
}

// ErrNoCompiler is the error of a machine without a C compiler.
var ErrNoCompiler = errors.New("no C compiler: neither KELVIN_CC nor CC is set, and there is no cc, gcc or clang")

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
			return Compiler{}, fmt.Errorf("the compiler that %s names: %w", variable, err)
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

// asked are the compilers that have said their versions, by path and arguments.
var asked sync.Map

// answer is what a compiler was when it was asked.
type answer struct {
	Compiler
	size    int64
	changed time.Time
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
	now, err := os.Stat(path)
	if err != nil {
		return Compiler{}, err
	}
	// Asking takes milliseconds. What has not changed says the same.
	key := strings.Join(append([]string{path}, c.Args...), "\x00")
	if last, ok := asked.Load(key); ok {
		a := last.(answer)
		if a.size == now.Size() && a.changed.Equal(now.ModTime()) {
			return a.Compiler, nil
		}
	}
	out, err := c.Run(5*time.Second, "", nil, "--version")
	if err != nil {
		return Compiler{}, err
	}
	c.Version, _, _ = strings.Cut(string(out), "\n")
	// The copyright tells gcc, under whatever name, from what else prints versions.
	if strings.Contains(string(out), "Free Software Foundation") {
		words := strings.Fields(c.Version)
		major, _, _ := strings.Cut(words[len(words)-1], ".")
		n, _ := strconv.Atoi(major)
		c.Barrier = n >= 12
	}
	asked.Store(key, answer{c, now.Size(), now.ModTime()})
	return c, nil
}

// Run runs the compiler in a folder and returns what it printed. After the time limit it and its children are killed.
func (c Compiler) Run(limit time.Duration, dir string, input []byte, args ...string) ([]byte, error) {
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
