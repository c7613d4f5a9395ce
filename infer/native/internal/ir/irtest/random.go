package irtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Random makes a plan of a few steps. Its numbers stay of moderate size, and what jumps (comparisons, rounding) is
// applied to numbers that every back end has alike, so that results differ by rounding errors alone.
func Random(seed uint64) Case {
	rng := rand.New(rand.NewPCG(seed, 20))
	x := make([]float64, 1+rng.IntN(12))
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	g := &generator{Builder: NewBuilder(fmt.Sprintf("random %d", seed), x...), rng: rng}
	g.Weight = rng.Float64()
	g.full = []int{g.x}
	for range 1 + rng.IntN(6) {
		switch rng.IntN(8) {
		case 0:
			g.product()
		case 1:
			g.scan()
		case 2:
			g.scatter()
		default:
			g.loop()
		}
	}
	return g.Finish()
}

type generator struct {
	*Builder
	rng  *rand.Rand
	full []int // float64 buffers of which every element is written
}

func (g *generator) numbers(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = g.rng.NormFloat64()
		if g.rng.IntN(20) == 0 {
			v[i] = math.Round(v[i])
		}
	}
	return v
}

func (g *generator) sizes() []int {
	var s []int
	for range g.rng.IntN(4) {
		n := 1 + g.rng.IntN(12)
		switch g.rng.IntN(10) {
		case 0:
			n = 1
		case 1:
			n = 1 + g.rng.IntN(700)
		}
		if ir.Iterations(s)*n > 20000 {
			n = 1
		}
		s = append(s, n)
	}
	return s
}

// place lays a space out in memory: the dimensions in some order, all of them or, for loads, some. It gives the number
// of elements, too.
func (g *generator) place(sizes []int, drop bool) (off int, strides []int, length int) {
	strides, length = make([]int, len(sizes)), 1
	order := g.rng.Perm(len(sizes))
	if g.rng.IntN(2) == 0 { // mostly the usual order
		for i := range order {
			order[i] = len(sizes) - 1 - i
		}
	}
	for _, d := range order {
		if drop && g.rng.IntN(4) == 0 {
			continue
		}
		strides[d] = length
		if drop && g.rng.IntN(8) == 0 {
			strides[d] *= 2
		}
		length += strides[d] * (sizes[d] - 1)
		if !drop {
			length = strides[d] * sizes[d]
		}
		if g.rng.IntN(8) == 0 {
			off += strides[d] * (sizes[d] - 1)
			strides[d] = -strides[d]
		}
	}
	return off, strides, length
}

// load reads an old buffer that is long enough, or a new one.
func (g *generator) load(k *Body) int {
	off, strides, length := g.place(k.sizes, true)
	if g.rng.IntN(6) == 0 {
		return g.gather(k)
	}
	if g.rng.IntN(2) == 0 {
		for range 4 {
			b := g.full[g.rng.IntN(len(g.full))]
			if spare := g.Plan.Buffers[b].Len - length; spare >= 0 {
				return k.Load(b, off+g.rng.IntN(spare+1), strides...)
			}
		}
	}
	switch g.rng.IntN(8) {
	case 0:
		return k.Load(g.Input(ir.F64, g.numbers(length)...), off, strides...)
	case 1:
		v := g.numbers(length)
		for i := range v {
			v[i] = float64(float32(v[i]))
		}
		return k.Load(g.Input(ir.F32, v...), off, strides...)
	case 2:
		v := g.numbers(length)
		for i := range v {
			v[i] = math.Round(3 * v[i])
		}
		return k.Load(g.Input(ir.I64, v...), off, strides...)
	case 3:
		v := make([]float64, length)
		for i := range v {
			v[i] = float64(g.rng.IntN(2))
		}
		return k.Load(g.Input(ir.U8, v...), off, strides...)
	}
	return k.Load(g.Const(g.numbers(length)...), off, strides...)
}

// index makes an array of indices below limit, and an address of it.
func (g *generator) index(sizes []int, limit int) ir.Address {
	off, strides, length := g.place(sizes, true)
	v := make([]float64, length)
	for i := range v {
		v[i] = float64(g.rng.IntN(limit))
	}
	a := ir.Address{Off: off, Strides: strides}
	if g.rng.IntN(2) == 0 {
		a.Buf = g.Index(v...)
		return a
	}
	in, out := g.Input(ir.I64, v...), g.PreparedIndex(length)
	g.Before([]int{length}, func(k *Body) {
		k.StoreIndex(k.Load(in, 0, 1), out, limit, 0, 1)
	})
	a.Buf = out
	return a
}

func (g *generator) gather(k *Body) int {
	limit, scale := 1+g.rng.IntN(9), 1+g.rng.IntN(3)
	strides := make([]int, len(k.sizes))
	length := 1 + scale*(limit-1)
	for d, n := range k.sizes {
		if g.rng.IntN(3) == 0 {
			strides[d] = 1 + g.rng.IntN(2)
			length += strides[d] * (n - 1)
		}
	}
	return k.Gather(g.Const(g.numbers(length)...), 0, strides, scale, g.index(k.sizes, limit))
}

var (
	smooth1 = []ir.Op{ir.Neg, ir.Abs, ir.Sin, ir.Cos, ir.Tanh, ir.Atan, ir.Erf}
	smooth2 = []ir.Op{ir.Add, ir.Sub, ir.Mul, ir.Add, ir.Mul, ir.Hypot, ir.Min, ir.Max}
	jumps1  = []ir.Op{ir.Floor, ir.Ceil, ir.Trunc, ir.Round, ir.Sign, ir.Not, ir.IsNaN, ir.IsInf}
	jumps2  = []ir.Op{ir.Lt, ir.Le, ir.Eq, ir.Ne, ir.And, ir.Or}
)

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func (g *generator) loop() {
	sizes := g.sizes()
	g.Loop(sizes, func(k *Body) {
		var leaves, values []int
		for range 1 + g.rng.IntN(4) {
			leaves = append(leaves, g.load(k))
		}
		leaves = append(leaves, k.Num(g.rng.NormFloat64()))
		if len(sizes) > 0 {
			leaves = append(leaves, k.Coord(g.rng.IntN(len(sizes))))
		}
		values = append(values, leaves...)
		exact := append([]int{}, leaves...)
		for i, v := range leaves {
			if k.list[v].Op == ir.Load && g.Plan.Buffers[k.list[v].At.Buf].Kind == ir.Work {
				exact[i] = leaves[len(leaves)-1] // a computed number, whose last bits may differ
			}
		}
		for range 1 + g.rng.IntN(14) {
			one := func() int { return pick(g.rng, values) }
			var v int
			switch g.rng.IntN(8) {
			case 0, 1:
				v = k.Op(pick(g.rng, smooth1), one())
			case 2:
				v = k.Op(pick(g.rng, jumps1), pick(g.rng, exact))
			case 3:
				c := k.Op(pick(g.rng, jumps2), pick(g.rng, exact), pick(g.rng, exact))
				v = k.Op(ir.Select, c, one(), one())
			case 4: // squash, so that products do not grow
				v = k.Op(pick(g.rng, []ir.Op{ir.Tanh, ir.Sin}), one())
			case 5:
				v = k.Op(ir.Sqrt, k.Op(ir.Abs, k.Op(ir.Tanh, one())))
			default:
				v = k.Op(pick(g.rng, smooth2), one(), one())
			}
			values = append(values, v)
		}
		for i := range 1 + g.rng.IntN(3) {
			v := values[len(values)-1-g.rng.IntN(min(3, len(values)))]
			v = k.Op(ir.Tanh, v)
			if i == 0 || g.rng.IntN(2) == 0 {
				off, strides, length := g.place(sizes, false)
				k.Write(ir.Store, v, g.target(length), off, strides...)
				continue
			}
			g.reduce(k, v)
		}
	})
}

func (g *generator) target(length int) int {
	if g.rng.IntN(2) == 0 {
		return g.Aux(length)
	}
	b := g.Work(length)
	g.full = append(g.full, b)
	return b
}

func (g *generator) reduce(k *Body, v int) {
	kept := make([]int, len(k.sizes))
	for d, n := range k.sizes {
		kept[d] = n
		if g.rng.IntN(2) == 0 {
			kept[d] = 1
		}
	}
	off, strides, length := g.place(kept, false)
	for d := range strides {
		if kept[d] != k.sizes[d] || k.sizes[d] == 1 {
			strides[d] = 0
		}
	}
	k.Write(pick(g.rng, []ir.Op{ir.Sum, ir.Sum, ir.Prod, ir.MaxOf}), v, g.target(length), off, strides...)
}

func (g *generator) scatter() {
	sizes := g.sizes()
	limit := 1 + g.rng.IntN(20)
	to := g.Aux(limit)
	g.Loop([]int{limit}, func(k *Body) { k.Write(ir.Store, k.Num(0.5), to, 0, 1) })
	index := g.index(sizes, limit)
	g.Loop(sizes, func(k *Body) {
		v := k.Op(ir.Tanh, g.load(k))
		k.Scatter(v, to, 0, make([]int, len(sizes)), 1, index)
	})
}

// matrix is one operand of a repeated step, in a new constant.
func (g *generator) matrix(sizes []int, rows, cols int) ir.Matrix {
	off, strides, length := g.place(append(append([]int{}, sizes...), rows, cols), true)
	n := len(sizes)
	buf := g.Const(g.numbers(length)...)
	return ir.Matrix{Buf: buf, Off: off, Row: strides[n], Col: strides[n+1], Strides: strides[:n]}
}

func (g *generator) result(sizes []int, rows, cols int) ir.Matrix {
	off, strides, length := g.place(append(append([]int{}, sizes...), rows, cols), false)
	n := len(sizes)
	return ir.Matrix{Buf: g.target(length), Off: off, Row: strides[n], Col: strides[n+1], Strides: strides[:n]}
}

func (g *generator) repeats() []int {
	if g.rng.IntN(2) == 0 {
		return nil
	}
	return []int{1 + g.rng.IntN(4)}
}

func (g *generator) side() int {
	if g.rng.IntN(4) == 0 {
		return 1
	}
	return 1 + g.rng.IntN(40)
}

func (g *generator) product() {
	s := g.repeats()
	m, n, k := g.side(), g.side(), g.side()
	g.Step(ir.Step{Kind: ir.MatMul, Sizes: s, M: m, N: n, K: k, A: g.matrix(s, m, k), B: g.matrix(s, k, n),
		Out: g.result(s, m, n)})
}

func (g *generator) scan() {
	s := g.repeats()
	n := g.side()
	g.Step(ir.Step{Kind: ir.Scan, Sizes: s, N: n, A: g.matrix(s, 1, n), Out: g.result(s, 1, n),
		Product: g.rng.IntN(2) == 0})
}
