package cc

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kelvin-ppl/kelvin/internal/ccompiler"
)

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
