package vm

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir/irtest"
	"github.com/kelvin-ppl/kelvin/internal/testkit"
)

// 64 goroutines share a program; each has memory of its own, and gets the same bits at its own points.
func TestConcurrent(t *testing.T) {
	c := irtest.Logistic(300, 5)
	_, e := compile(t, Variants()[0], c)
	point := func(g int) []float64 {
		x := append([]float64{}, c.X...)
		x[g%len(x)] += float64(g)
		return x
	}
	var want [64]irtest.Result
	for g := range want {
		m := irtest.NewMemory(e, c)
		require.NoError(t, m.Prepare())
		var err error
		want[g], err = m.Eval(point(g), 1)
		require.NoError(t, err)
		m.Close()
	}
	var all sync.WaitGroup
	for g := range want {
		all.Go(func() {
			m := irtest.NewMemory(e, c)
			defer m.Close()
			assert.NoError(t, m.Prepare())
			for range 20 {
				r, err := m.Eval(point(g), 1)
				assert.NoError(t, err)
				assert.NoError(t, irtest.Differ(r, want[g], 0))
			}
		})
	}
	all.Wait()
}

// A million evaluations need no more memory than the first thousand. Were 8 bytes of each
// evaluation lost, it would be twice the bound.
func TestNoGrowth(t *testing.T) {
	c := irtest.EightSchools()
	_, e := compile(t, Variants()[0], c)
	m := irtest.NewMemory(e, c)
	defer m.Close()
	require.NoError(t, m.Prepare())
	_, err := m.Eval(c.X, 1)
	require.NoError(t, err)
	m.Repeat(1000)
	runtime.GC()
	before := testkit.Resident(t)
	m.Repeat(1_000_000)
	testkit.Grown(t, before, 4<<20)
}

// Many programs are made and closed; each has more than 100 KB of tables.
func TestCloseFrees(t *testing.T) {
	b := irtest.NewBuilder("coordinates", 1)
	b.Loop([]int{20000}, func(k *irtest.Body) { k.Write(ir.Store, k.Coord(0), b.Aux(20000), 0, 1) })
	c := b.Finish()
	make1 := func() {
		p, err := Compile(c.Plan)
		require.NoError(t, err)
		p.Close()
	}
	for range 20 {
		make1()
	}
	debug.FreeOSMemory() // Go's own garbage is as large as a leak where the collector gets little time
	before := testkit.Resident(t)
	for range 300 {
		make1()
	}
	debug.FreeOSMemory()
	testkit.Grown(t, before, 300*160000/2)
}

// The prologue refuses an index that is out of range or no whole number, and names its step.
func TestIndexOutOfRange(t *testing.T) {
	for _, bad := range []float64{-1, 5, 1e300} {
		for _, n := range []int{1, 300} {
			data := make([]float64, n)
			data[n-1] = bad
			b := irtest.NewBuilder("index", 1)
			in, to := b.Input(ir.F64, data...), b.PreparedIndex(n)
			first := b.Prepared(1)
			b.Before(nil, func(k *irtest.Body) { k.Write(ir.Store, k.Num(1), first, 0) })
			b.Before([]int{n}, func(k *irtest.Body) { k.StoreIndex(k.Load(in, 0, 1), to, 5, 0, 1) })
			table := b.Const(0, 1, 2, 3, 4)
			b.Loop([]int{n}, func(k *irtest.Body) {
				k.Write(ir.Sum, k.Gather(table, 0, []int{0}, 1, ir.Address{Buf: to, Strides: []int{1}}), b.Aux(1), 0, 0)
			})
			c := b.Finish()
			for _, v := range Variants() {
				_, e := compile(t, v, c)
				_, err := irtest.Run(e, c)
				assert.ErrorContains(t, err, "step 1", "%v %d", bad, n)
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	c := irtest.EightSchools()
	_, err := CompileFor("vax", c.Plan)
	assert.ErrorContains(t, err, "vax")
	c.Plan.Dim = 0
	_, err = Compile(c.Plan)
	assert.Error(t, err)
}
