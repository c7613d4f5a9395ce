package cc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

// Options say how a plan is compiled. The zero value is the default.
type Options struct {
	CacheDir string        // default is kelvin/native in the user's cache folder; NoCache for none
	Timeout  time.Duration // of the compiler; default 20 s
}

// Info tells how a program came about.
type Info struct {
	Compiler Compiler
	Seconds  float64 // in all, without making the plan
	Cached   bool    // the object was in the cache
	Linked   bool    // the functions were linked into this binary
	Lines    int     // of C
	Cache    string  // why the object is not in the cache, "" where it is
}

// Compile makes a program of a plan that has passed its checks.
func Compile(p *ir.Plan, o Options) (*Program, Info, error) {
	began := time.Now()
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	var info Info
	text, err := Emit(p)
	if err != nil {
		return nil, info, err
	}
	info.Lines = strings.Count(text, "\n")
	if program, ok := findLinked(text); ok {
		info.Linked = true
		return program, info, nil
	}
	if info.Compiler, err = Find(); err != nil {
		return nil, info, err
	}
	program, err := build(text, o, &info)
	info.Seconds = time.Since(began).Seconds()
	return program, info, err
}

// Compiler is a C compiler of this machine.
type Compiler struct{ ccompiler.Compiler }

// ErrNoCompiler is the error of a machine without a C compiler.
var ErrNoCompiler = ccompiler.ErrNoCompiler

// Find finds the C compiler.
func Find() (Compiler, error) {
	c, err := ccompiler.Find()
	if err != nil {
		err = fmt.Errorf("cc: %w", err)
	}
	return Compiler{c}, err
}

// flags are all that the compiler gets besides the files.
//
// Reductions may be reordered where the text has them, and products may be fused with sums. In vectorised code gcc may
// also lose signs of zeros, and it would cancel a number that is added and taken away again: cancel.go has what keeps
// it from that. Nothing else is given up: no rule assumes that there are no infinities and NaN.
func (c Compiler) flags() []string {
	f := []string{"-std=gnu11", "-w", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast",
		"-fopenmp-simd", "-fno-tree-slp-vectorize"} // which takes most of the time and gains nothing here
	if c.Barrier {
		// Without it, gcc adds up the lanes of a reduction one by one.
		f = append(f, "-fassociative-math", "-fno-signed-zeros", "-DKELVIN_BARRIER")
		// Vectorised code has lost its barriers when this pass comes, and it would add up a difference of large numbers
		// last. It is of no use for reductions, which the vectoriser reorders.
		f = append(f, "-fno-tree-reassoc")
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
	if _, err := c.Run(limit, dir, []byte(text), args...); err != nil {
		return nil, fmt.Errorf("cc: %w", err)
	}
	object, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("cc: %s made no object: %w", c.Path, err)
	}
	return object, nil
}

// cpu describes the processor: its model and features as the system tells them, "" where it does not. Code is made for
// this very processor.
var cpu = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		switch name = strings.TrimSpace(name); name {
		case "model name", "vendor_id", "cpu family", "model", "stepping", "flags", "Features", "isa", "CPU implementer",
			"CPU architecture", "CPU variant", "CPU part", "CPU revision":
			lines = append(lines, name+": "+strings.TrimSpace(value))
		}
	}
	slices.Sort(lines)
	return runtime.GOARCH + "\n" + strings.Join(slices.Compact(lines), "\n")
})

// native are the flags for this processor and its libraries.
func native() []string {
	f := []string{"-march=native"}
	if runtime.GOARCH == "amd64" && strings.Contains(cpu(), "avx512f") {
		f = append(f, "-mprefer-vector-width=512")
	}
	if v := libmvec(); v > 0 {
		f = append(f, fmt.Sprintf("-DKELVIN_LIBMVEC=%d", v))
	}
	return f
}
