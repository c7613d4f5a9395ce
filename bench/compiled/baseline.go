package main

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kelvin-ppl/kelvin/internal/atomicfile"
)

//go:embed hand/baseline.c
var source []byte

// flags are those of compiled models.
var flags = []string{"-std=gnu11", "-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math",
	"-fassociative-math", "-fno-signed-zeros", "-ffp-contract=fast", "-fopenmp-simd"}

// baseline is the compiled program of hand-written gradients.
type baseline struct{ dir, program string }

func newBaseline() (*baseline, error) {
	dir, err := os.MkdirTemp("", "kelvin-baseline")
	if err != nil {
		return nil, err
	}
	b := &baseline{dir, filepath.Join(dir, "baseline")}
	file := filepath.Join(dir, "baseline.c")
	if err := atomicfile.Write(file, source, 0o600); err != nil {
		return nil, err
	}
	// Not every machine has vectors of 512 bits, nor the library of vector functions.
	var last error
	for _, more := range [][]string{{"-mprefer-vector-width=512", "-lmvec"}, {"-lmvec"}, nil} {
		args := append(append([]string{}, flags...), file, "-o", b.program)
		out, err := exec.Command("cc", append(append(args, more...), "-lm")...).CombinedOutput()
		if err == nil {
			return b, nil
		}
		last = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	b.remove()
	return nil, last
}

func (b *baseline) remove() { os.RemoveAll(b.dir) }

// time is the microseconds of a model's hand-written gradient, which must be data times the compiled one.
func (b *baseline) time(m model, x, grad []float64, data, seconds float64) (float64, error) {
	var in bytes.Buffer
	for _, v := range append([][]float64{x}, m.data...) {
		if err := binary.Write(&in, binary.NativeEndian, append([]float64{float64(len(v))}, v...)); err != nil {
			return 0, err
		}
	}
	c := exec.Command(b.program, m.hand, strconv.FormatFloat(seconds, 'g', -1, 64))
	c.Stdin = &in
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("the baseline: %w", err)
	}
	words := strings.Fields(string(out))
	if len(words) != 2+len(grad) {
		return 0, errors.New("the baseline prints something else")
	}
	numbers := make([]float64, len(words))
	for i, w := range words {
		if numbers[i], err = strconv.ParseFloat(w, 64); err != nil {
			return 0, err
		}
	}
	largest := 1.0
	for _, g := range grad {
		largest = max(largest, data*math.Abs(g))
	}
	for i, g := range grad {
		if d := math.Abs(numbers[2+i] - data*g); !(d <= 1e-10*largest) {
			return 0, fmt.Errorf("element %d of the gradient is %v hand-written and %v compiled", i, numbers[2+i], data*g)
		}
	}
	return numbers[0], nil
}
