//go:build slow

package curvature_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/torch"
)

// A classifier of texts with 2.7 million parameters: embedding (20,000 x 128), convolution (64 x 5), pooling (4), LSTM
// (64) and a linear layer, on 32 texts of 100 words, in float32.
const (
	words, wide, channels, hidden, length100, texts, classes = 20_000, 128, 64, 64, 100, 32, 2
)

func textNetwork(t testing.TB) (infer.Params, infer.Batch) {
	t.Helper()
	l := layoutOf(t, infer.Shapes{
		"embedding": {words, wide}, "conv.w": {channels, wide, 5}, "conv.b": {channels},
		"lstm.x": {channels, 4 * hidden}, "lstm.h": {hidden, 4 * hidden}, "lstm.b": {4 * hidden}, "out.w": {hidden, classes},
		"out.b": {classes},
	})
	flat := numbers(l.Dim(), 0)
	for i := range flat {
		flat[i] *= 0.1
	}
	p, err := pointOf(t, l, flat...).To(torch.CPU, gotch.Float)
	require.NoError(t, err)
	index, y := make([]int, texts*length100), make([]int, texts)
	for i, v := range numbers(len(index), 9) {
		index[i] = int((v + 1) / 2 * words)
	}
	for i, v := range numbers(len(y), 5) {
		y[i] = int((v + 1) / 2 * classes)
	}
	return p, infer.Batch{"words": torch.New(index, texts, length100),
		"y": torch.New(y)}
}

func textForward(p infer.Params, b infer.Batch) torch.Tensor {
	x := ts.MustEmbedding(p.Get("embedding").T(), b.Get("words").T(), -1, false, false).MustTranspose(1, 2, false)
	x = ts.MustConv1d(x, p.Get("conv.w").T(), p.Get("conv.b").T(), []int64{1}, []int64{2}, []int64{1}, 1).MustRelu(false)
	x = x.MustUnsqueeze(2, false).MustMaxPool2d([]int64{1, 4}, []int64{1, 4}, []int64{0, 0}, []int64{1, 1}, false,
		false).MustSqueezeDim(2, false)
	n := shapeOf(x)[0]
	in := x.MustTranspose(1, 2, false).MustMatmul(p.Get("lstm.x").T(), false).MustAdd(p.Get("lstm.b").T(), false)
	w := p.Get("lstm.h").T()
	h, c := ts.MustZeros([]int64{int64(n), hidden}, x.DType(), torch.CPU), ts.MustZeros([]int64{int64(n),
		hidden}, x.DType(), torch.CPU)
	for step := range shapeOf(in)[1] {
		gates := in.MustSelect(1, int64(step), false).MustAdd(h.MustMatmul(w, false), false).MustChunk(4, 1, false)
		c = gates[1].MustSigmoid(false).MustMul(c,
			false).MustAdd(gates[0].MustSigmoid(false).MustMul(gates[2].MustTanh(false), false), false)
		h = gates[3].MustSigmoid(false).MustMul(c.MustTanh(false), false)
	}
	return torch.Of(h).MatMul(p.Get("out.w")).Add(p.Get("out.b"))
}

// peak is the most memory that f had in RAM beyond what there was before, in bytes.
func peak(t testing.TB, f func()) int {
	t.Helper()
	read := func(field string) int {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skipf("peak memory is read from /proc, which this system does not have: %v", err)
		}
		kb, err := strconv.ParseInt(regexp.MustCompile(field + `:\s+(\d+)`).FindStringSubmatch(string(text))[1], 10, 64)
		require.NoError(t, err)
		return int(kb << 10)
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("peak memory cannot be reset: %v", err)
	}
	before := read("VmRSS")
	f()
	return read("VmHWM") - before
}

func TestDiagonalsOfATextNetwork(t *testing.T) {
	p, b := textNetwork(t)
	outer := softmaxes("", classes).outer
	f := curvature.Likelihood(textForward, outer)
	d := p.Layout.Dim()
	t.Logf("%d parameters, %.1f MB", d, float64(d)*4e-6)
	gradient, err := infer.NewGradient(infer.Sum(func(p infer.Params, b infer.Batch) (torch.Tensor,
		infer.Aux) {
		return f(p, b).Sum(), nil
	}, 1))
	require.NoError(t, err)
	backward := func(b infer.Batch) {
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			_, err := gradient.ValueAndGrad(p, b, 0)
			return err
		}))
	}
	// The C library keeps freed memory for itself unless large arrays come from the system: run this test with
	// MALLOC_MMAP_THRESHOLD_=131072 for exact figures of memory, and without for those of time.
	timed := func(what string, f func()) (time.Duration, int) {
		f()
		start := time.Now()
		memory := peak(t, f)
		took := time.Since(start)
		t.Logf("%-40s %8.3f s %8.1f MB", what, took.Seconds(), float64(memory)*1e-6)
		return took, memory
	}
	_, own := timed("forward and backward of the batch", func() { backward(b) })
	timed("loop over single data", func() {
		for _, one := range split(b, 1) {
			backward(one)
		}
	})
	sum := make([]float64, d)
	for _, one := range split(b, 1) {
		require.NoError(t, torch.Do(func(*torch.Scope) error {
			e, err := gradient.ValueAndGrad(p, one, 0)
			for i, v := range floats(e.Grad) {
				sum[i] += v * v
			}
			return err
		}))
	}
	for _, memory := range []int{1 << 20, 100 << 20, 1 << 30} {
		o := curvature.Options{Memory: memory}
		var x torch.Tensor
		_, fisher := timed(fmt.Sprintf("FisherDiag in %d MiB", memory>>20), func() {
			torch.Free(x)
			x, err = curvature.FisherDiag(f, p, b, o)
			require.NoError(t, err)
		})
		near(t, sum, floats(x), 1e-5, "FisherDiag")
		_, ggn := timed(fmt.Sprintf("GGNDiag in %d MiB", memory>>20), func() {
			torch.Free(x)
			x, err = curvature.GGNDiag(textForward, outer, p, b, o)
			require.NoError(t, err)
		})
		torch.Free(x)
		if memory == 1<<20 && os.Getenv("MALLOC_MMAP_THRESHOLD_") != "" {
			assert.Less(t, fisher, 2*own, "FisherDiag with little memory")
			assert.Less(t, ggn, 2*own, "GGNDiag with little memory")
		}
	}
}
