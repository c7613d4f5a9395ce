package native

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch"
)

// normal is -½ Σ (y_i - θ)² + w·θ, where y is a tensor of the batch, with its gradient and the output Σ (y_i - θ)². The
// prologue copies y.
func normal(n int) *ir.Plan {
	one := []int{1}
	return &ir.Plan{Dim: 1,
		Buffers: []ir.Buffer{{Kind: ir.X, Len: 1}, {Kind: ir.Input, Len: n}, {Kind: ir.Prepared, Len: n},
			{Kind: ir.Work, Len: 2}, {Kind: ir.Value, Len: 1}, {Kind: ir.Grad, Len: 1}, {Kind: ir.Weight, Len: 1},
			{Kind: ir.Aux, Len: 1}, {Kind: ir.Const, Len: 1, Data: []float64{-0.5}}},
		Inputs:  []ir.Slot{{Name: "y", Shape: []int{n}}},
		Outputs: []ir.Slot{{Name: "square", Shape: []int{}}},
		Prologue: []ir.Step{{Sizes: []int{n}, Body: []ir.Instr{{Op: ir.Load, At: ir.Address{Buf: 1, Strides: one}},
			{Op: ir.Store, A: 0, At: ir.Address{Buf: 2, Strides: one}}}}},
		Steps: []ir.Step{
			{Sizes: []int{n}, Body: []ir.Instr{
				{Op: ir.Load, At: ir.Address{Buf: 2, Strides: one}}, {Op: ir.Load, At: ir.Address{Buf: 0, Strides: []int{0}}},
				{Op: ir.Sub, A: 0, B: 1}, {Op: ir.Mul, A: 2, B: 2},
				{Op: ir.Sum, A: 3, At: ir.Address{Buf: 3, Strides: []int{0}}},
				{Op: ir.Sum, A: 2, At: ir.Address{Buf: 3, Off: 1, Strides: []int{0}}},
			}},
			{Body: []ir.Instr{
				{Op: ir.Load, At: ir.Address{Buf: 8}}, {Op: ir.Load, At: ir.Address{Buf: 3}},
				{Op: ir.Mul, A: 0, B: 1}, {Op: ir.Load, At: ir.Address{Buf: 6}}, {Op: ir.Load, At: ir.Address{Buf: 0}},
				{Op: ir.Mul, A: 3, B: 4}, {Op: ir.Add, A: 2, B: 5}, {Op: ir.Store, A: 6, At: ir.Address{Buf: 4}},
				{Op: ir.Load, At: ir.Address{Buf: 3, Off: 1}}, {Op: ir.Add, A: 8, B: 3},
				{Op: ir.Store, A: 9, At: ir.Address{Buf: 5}}, {Op: ir.Store, A: 1, At: ir.Address{Buf: 7}},
			}},
		}}
}

// eagerNormal is the same with tensors.
func eagerNormal(t *testing.T, y torch.Tensor) Source {
	return Source{Dim: 1, Batch: map[string]torch.Tensor{"y": y},
		Evaluate: func(x torch.Tensor, batch map[string]torch.Tensor) (values, grads []torch.Tensor,
			aux map[string]torch.Tensor,
			err error) {
			for _, f := range []func(torch.Tensor) torch.Tensor{
				func(x torch.Tensor) torch.Tensor {
					return batch["y"].Sub(x).Square().Sum().Mul(-0.5)
				},
				func(x torch.Tensor) torch.Tensor { return x.Sum() },
			} {
				value, grad, err := torch.ValueAndGrad(f, x)
				require.NoError(t, err)
				values, grads = append(values, value), append(grads, grad)
			}
			return values, grads, nil, nil
		}}
}

func made(t *testing.T, tier Tier, p *ir.Plan, s Source) *Func {
	t.Helper()
	require.NoError(t, p.Check())
	var report Report
	f, _, err := choose(p, s, [][]float64{{0.5}, {-3}}, tier, Options{}, &report)
	require.NoError(t, err)
	require.Equal(t, tier, report.Tier)
	require.Less(t, report.Error, 1e-15)
	return f
}

func vector(t *testing.T, y ...float64) torch.Tensor {
	t.Helper()
	x, err := torch.FromSlice(y)
	require.NoError(t, err)
	t.Cleanup(func() { torch.Free(x) })
	return x
}

// A function follows its batch, in rows and alone, with its outputs, when the tensors are gone that it was given.
func TestBatches(t *testing.T) {
	for _, tier := range []Tier{C, VM} {
		y := vector(t, 1, 2, 4)
		f := made(t, tier, normal(3), eagerNormal(t, y))
		values, grads, aux := make([]float64, 2), make([]float64, 2), make([]float64, 2)
		require.NoError(t, f.Rows([]float64{3, 0}, 2, values, grads, [][]float64{aux}))
		assert.Equal(t, []float64{-3 + 6, -10.5}, values)
		assert.Equal(t, []float64{-2 + 2, 7 + 2}, grads)
		assert.Equal(t, []float64{6, 21}, aux)
		value, err := f.Eval([]float64{3}, 2, grads[:1])
		require.NoError(t, err)
		assert.Equal(t, 3.0, value, "Eval leaves the outputs out")
		for _, wrong := range [][2][]float64{{nil, grads[:1]}, {{1, 2}, grads[:1]}, {{1}, nil}, {{1}, grads}} {
			value, err = f.Eval(wrong[0], 2, wrong[1])
			assert.ErrorContains(t, err, "expected 1 of each")
			assert.True(t, math.IsNaN(value))
		}

		other, err := torch.FromSlice([]float64{1, 1, 1})
		require.NoError(t, err)
		require.NoError(t, f.Set(map[string]torch.Tensor{"y": other}))
		torch.Free(other)
		runtime.GC()
		require.NoError(t, f.Rows([]float64{3, 0}, 0, values, grads, [][]float64{aux}))
		assert.Equal(t, []float64{-6, -1.5}, values)

		long := vector(t, 1, 2)
		assert.ErrorContains(t, f.Set(map[string]torch.Tensor{"y": long}), "of shape [3]")
		single, err := torch.FromSliceOn(torch.CPU, gotch.Float, []float64{1, 2, 3})
		require.NoError(t, err)
		defer torch.Free(single)
		assert.ErrorContains(t, f.Set(map[string]torch.Tensor{"y": single}), `batch tensor "y"`)
		assert.ErrorContains(t, f.Set(nil), `no tensor "y"`)
		assert.Error(t, f.Rows([]float64{3}, 0, values, grads, [][]float64{aux}))
	}
}

// C code may have a workspace for long. The collector has then freed the outputs that it was used with last, and must
// not meet their address when the next ones are put in the place: it would end the process.
func TestOutputsThatAreGone(t *testing.T) {
	y := vector(t, 1, 2, 4)
	f := made(t, VM, normal(3), eagerNormal(t, y))
	values, grads, kept := make([]float64, 2), make([]float64, 2), make([]float64, 2)
	evaluate := func(aux []float64) {
		require.NoError(t, f.Rows([]float64{3, 0}, 2, values, grads, [][]float64{aux}))
		require.Equal(t, []float64{6, 21}, aux)
	}
	heap := make([]*int, 1<<20) // so that the collector takes some time
	for i := range heap {
		heap[i] = new(int)
	}
	for range 50 {
		evaluate(make([]float64, 2))
		_, _, _, done, err := f.Addresses()
		require.NoError(t, err)
		runtime.GC()
		collected := make(chan struct{})
		go func() { runtime.GC(); close(collected) }()
		time.Sleep(200 * time.Microsecond)
		done()
		evaluate(kept)
		<-collected
	}
	runtime.KeepAlive(heap)
}

// A function that does not give the numbers of eager evaluation is not used.
func TestWrongNumbersAreRefused(t *testing.T) {
	y := vector(t, 1, 2, 4)
	p := normal(3)
	p.Buffers[8].Data[0] = -0.5000001
	_, _, err := choose(p, eagerNormal(t, y), [][]float64{{0.5}, {-3}}, Auto, Options{}, &Report{})
	assert.ErrorContains(t, err, "where eager evaluation gives")
}

// Many goroutines share a function.
func TestConcurrentCalls(t *testing.T) {
	y := vector(t, 1, 2, 4)
	p := normal(3)
	p.Outputs, p.Buffers[7] = nil, ir.Buffer{Kind: ir.Work, Len: 1}
	for _, tier := range []Tier{C, VM} {
		f := made(t, tier, p, eagerNormal(t, y))
		var wg sync.WaitGroup
		for k := range 64 {
			wg.Go(func() {
				x, grad := []float64{float64(k)}, []float64{0}
				for range 1000 {
					value, err := f.Eval(x, 0, grad)
					v := float64(k)
					want := -0.5 * ((1-v)*(1-v) + (2-v)*(2-v) + (4-v)*(4-v))
					if err != nil || value != want || grad[0] != 7-3*v {
						t.Errorf("at %v: %v and %v, %v", v, value, grad[0], err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

func BenchmarkCall(b *testing.B) {
	t := &testing.T{}
	y := vector(t, 1, 2, 4)
	p := normal(3)
	p.Outputs, p.Buffers[7] = nil, ir.Buffer{Kind: ir.Work, Len: 1}
	for _, tier := range []Tier{C, VM} {
		f := made(t, tier, p, eagerNormal(t, y))
		x, grad := []float64{1}, []float64{0}
		b.Run(string(tier), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Eval(x, 0, grad); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
