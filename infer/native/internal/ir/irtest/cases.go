package irtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/internal/ir"
)

// Cases are the hand-written plans: every operation, form of address, reduction and kind of step.
func Cases() []Case {
	var all []Case
	all = append(all, pointwise()...)
	all = append(all, operands()...)
	all = append(all, addresses()...)
	all = append(all, reductions()...)
	all = append(all, lengths()...)
	all = append(all, matrices()...)
	all = append(all, aliases()...)
	return append(all, EightSchools(), Logistic(768, 8), LogLinear(1192))
}

var special = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, 3, -2.5, 1e-300, -1e-300, 5e-324, 1e300, -1e300,
	math.Inf(1), math.Inf(-1), math.NaN(), 0.1, 7.25, 25.5, 1e-9, 123456.75}

// domain gives points of an operation where ir.Machine itself is exact to 1e-12.
func domain(op ir.Op) []float64 {
	v := append([]float64{}, special...)
	rng := rand.New(rand.NewPCG(3, uint64(op)))
	for range 60 {
		v = append(v, 3*rng.NormFloat64(), math.Exp(4*rng.NormFloat64()))
	}
	keep := v[:0]
	for _, x := range v {
		whole := x <= 0 && x == math.Trunc(x)
		switch op {
		case ir.Log: // Go's own is wrong for subnormal numbers on some processors
			if x > 0 && x < 1e-307 {
				continue
			}
		case ir.Sin, ir.Cos, ir.Tan:
			if math.Abs(x) > 1e6 && !math.IsInf(x, 0) {
				continue
			}
		case ir.Lgamma, ir.Digamma, ir.Trigamma:
			if whole || x < -20 || math.Abs(x) < 1e-307 ||
				op == ir.Trigamma && (math.Abs(x) < 1e-100 || math.IsInf(x, 0)) {
				continue
			}
		case ir.Erfcx:
			if x < -5 || x > 4 && x < 25 || math.IsInf(x, 0) {
				continue
			}
		case ir.I0e, ir.I1e:
			if !(math.Abs(x) < 1e3) {
				continue
			}
		}
		keep = append(keep, x)
	}
	return keep
}

func pointwise() []Case {
	var all []Case
	for op := ir.Neg; op <= ir.Not; op++ {
		x := domain(op)
		b := NewBuilder(fmt.Sprintf("unary %d", op), 1)
		in, out, one := b.Const(x...), b.Aux(len(x)), b.Aux(len(x))
		b.Loop([]int{len(x)}, func(k *Body) { k.Write(ir.Store, k.Op(op, k.Load(in, 0, 1)), out, 0, 1) })
		for i := range x {
			b.Loop(nil, func(k *Body) { k.Write(ir.Store, k.Op(op, k.Load(in, i)), one, i) })
		}
		all = append(all, b.Finish())
	}
	for op := ir.Add; op <= ir.Or; op++ {
		list := special
		if op == ir.Pow || op == ir.Atan2 { // Go's own are wrong where a logarithm or a quotient is subnormal
			list = slices.DeleteFunc(slices.Clone(list), func(x float64) bool {
				return math.Abs(math.Log10(math.Abs(x))) > 100 && !math.IsInf(x, 0) && x != 0
			})
		}
		n := len(list)
		b := NewBuilder(fmt.Sprintf("binary %d", op), 1)
		in := b.Const(list...)
		pairs, rows, one := b.Aux(n*n), b.Aux(n*n), b.Aux(n*n)
		b.Loop([]int{n, n}, func(k *Body) {
			k.Write(ir.Store, k.Op(op, k.Load(in, 0, 1, 0), k.Load(in, 0, 0, 1)), pairs, 0, n, 1)
		})
		for i := range n {
			b.Loop([]int{n}, func(k *Body) {
				k.Write(ir.Store, k.Op(op, k.Load(in, i, 0), k.Load(in, 0, 1)), rows, i*n, 1)
			})
			for j := range n {
				b.Loop(nil, func(k *Body) {
					k.Write(ir.Store, k.Op(op, k.Load(in, i), k.Load(in, j)), one, i*n+j)
				})
			}
		}
		all = append(all, b.Finish())
	}
	return all
}

func numbers(seed uint64, n int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 4))
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

// operands: each operand of an operation of two or three is a number, one element or an array; sums of products,
// comparisons that a select takes, and negations, which back ends fuse.
func operands() []Case {
	var all []Case
	const n = 37
	for form := range 27 {
		b := NewBuilder(fmt.Sprintf("operands %d", form), 0.7, -1.3)
		data := []int{b.Const(numbers(1, n)...), b.Const(numbers(2, n)...), b.Const(numbers(3, n)...)}
		for _, size := range [][]int{nil, {n}} {
			b.Loop(size, func(k *Body) {
				stride := make([]int, len(size))
				v := make([]int, 3)
				for i, f := 0, form; i < 3; i, f = i+1, f/3 {
					switch f % 3 {
					case 0:
						v[i] = k.Num(0.5 + float64(i))
					case 1:
						v[i] = k.Load(b.x, i%2, stride...)
					case 2:
						one := append([]int{}, stride...)
						for d := range one {
							one[d] = 1
						}
						v[i] = k.Load(data[i], 0, one...)
					}
				}
				unit := make([]int, len(size))
				for d := range unit {
					unit[d] = 1
				}
				out := func(value int) { k.Write(ir.Store, value, b.Aux(ir.Iterations(size)), 0, unit...) }
				for op := ir.Add; op <= ir.Or; op++ {
					out(k.Op(op, v[0], v[1]))
				}
				out(k.Op(ir.Select, v[0], v[1], v[2]))
				out(k.Op(ir.Add, k.Op(ir.Mul, v[0], v[1]), v[2]))
				out(k.Op(ir.Add, v[2], k.Op(ir.Mul, v[0], v[1])))
				out(k.Op(ir.Sub, k.Op(ir.Mul, v[0], v[1]), v[2]))
				out(k.Op(ir.Sub, v[2], k.Op(ir.Mul, v[0], v[1])))
				out(k.Op(ir.Neg, k.Op(ir.Mul, v[0], v[1])))
				out(k.Op(ir.Add, v[0], k.Op(ir.Neg, v[1])))
				out(k.Op(ir.Sub, v[0], k.Op(ir.Neg, v[1])))
				out(k.Op(ir.Mul, k.Op(ir.Neg, v[0]), v[1]))
				out(k.Op(ir.Div, v[0], k.Op(ir.Neg, v[1])))
				for op := ir.Lt; op <= ir.Or; op++ {
					out(k.Op(ir.Select, k.Op(op, v[0], v[1]), v[2], v[0]))
					out(k.Op(ir.Select, k.Op(ir.Not, k.Op(op, v[0], v[1])), v[1], v[2]))
				}
				shared := k.Op(ir.Mul, v[0], v[1])
				out(k.Op(ir.Add, shared, v[2]))
				out(shared)
				if size != nil {
					k.Write(ir.Sum, k.Op(ir.Mul, v[0], v[1]), b.Aux(1), 0, 0)
					k.Write(ir.Sum, k.Op(ir.Mul, v[0], v[0]), b.Aux(1), 0, 0)
					k.Write(ir.Sum, v[0], b.Aux(1), 0, 0)
				}
			})
		}
		all = append(all, b.Finish())
	}
	return all
}

// lengths: every length of a loop, with all that has a remainder.
func lengths() []Case {
	var all []Case
	list := []int{255, 256, 257, 300, 511, 512, 513, 769, 999, 1000}
	for n := 1; n < 70; n++ {
		list = append(list, n)
	}
	for _, n := range list {
		b := NewBuilder(fmt.Sprintf("length %d", n), 0.25)
		a, c := b.Const(numbers(5, n)...), b.Const(numbers(6, n)...)
		b.Loop([]int{n}, func(k *Body) {
			x, y := k.Load(a, 0, 1), k.Load(c, 0, 1)
			v := k.Op(ir.Add, k.Op(ir.Mul, x, y), k.Load(b.x, 0, 0))
			k.Write(ir.Store, v, b.Aux(n), 0, 1)
			k.Write(ir.Store, k.Op(ir.Exp, v), b.Aux(n), n-1, -1)
			k.Write(ir.Store, k.Op(ir.Lt, x, y), b.Aux(3*n), 1, 3)
			k.Write(ir.Store, k.Op(ir.Tanh, k.Op(ir.Sub, v, y)), b.Aux(n), 0, 1)
			k.Write(ir.Sum, v, b.Aux(1), 0, 0)
			k.Write(ir.Sum, k.Op(ir.Mul, v, y), b.value, 0, 0)
			k.Write(ir.Prod, k.Op(ir.Tanh, k.Op(ir.Add, k.Num(3), v)), b.Aux(1), 0, 0)
			k.Write(ir.MaxOf, v, b.Aux(1), 0, 0)
			k.Write(ir.Store, k.Op(ir.Mul, k.Coord(0), v), b.Aux(n), 0, 1)
			k.Write(ir.Store, v, b.Aux(1), 0, 0)
		})
		all = append(all, fill(b.Case))
	}
	return all
}

// fill writes 0 first to outputs that have gaps.
func fill(c Case) Case {
	var first []ir.Step
	for i, u := range c.Plan.Buffers {
		if u.Kind == ir.Aux || u.Kind == ir.Grad || u.Kind == ir.Value {
			first = append(first, ir.Step{Sizes: []int{u.Len}, Body: []ir.Instr{{Op: ir.Num},
				{Op: ir.Store, At: ir.Address{Buf: i, Strides: []int{1}}}}})
		}
	}
	c.Plan.Steps = append(first, c.Plan.Steps...)
	return c
}

// aliases: loops that read what they write, one iteration after the other.
func aliases() []Case {
	b := NewBuilder("aliases", 0.25)
	const n = 600
	init := func(len int) int {
		w := b.Aux(len)
		b.Loop([]int{len}, func(k *Body) { k.Write(ir.Store, k.Op(ir.Sin, k.Coord(0)), w, 0, 1) })
		return w
	}
	same, ahead, behind, halves := init(n), init(n+1), init(n+1), init(2*n)
	b.Loop([]int{n}, func(k *Body) {
		v := k.Load(same, 0, 1)
		k.Write(ir.Store, k.Op(ir.Mul, v, k.Num(3)), same, 0, 1)
		k.Write(ir.Store, k.Op(ir.Add, v, k.Load(same, 0, 1)), b.Aux(n), 0, 1)
	})
	b.Loop([]int{n}, func(k *Body) {
		k.Write(ir.Store, k.Op(ir.Mul, k.Load(ahead, 1, 1), k.Num(3)), ahead, 0, 1)
	})
	b.Loop([]int{n}, func(k *Body) {
		k.Write(ir.Store, k.Op(ir.Sin, k.Op(ir.Add, k.Load(behind, 0, 1), k.Num(1))), behind, 1, 1)
	})
	b.Loop([]int{n}, func(k *Body) {
		k.Write(ir.Store, k.Op(ir.Mul, k.Load(halves, 0, 1), k.Num(3)), halves, n, 1)
	})
	first := init(n)
	b.Loop([]int{n}, func(k *Body) {
		k.Write(ir.Store, k.Op(ir.Add, k.Load(first, 0, 0), k.Load(first, 0, 1)), first, 0, 1)
	})
	twice := init(n)
	b.Loop([]int{n}, func(k *Body) {
		v := k.Coord(0)
		k.Write(ir.Store, v, twice, 0, 1)
		k.Write(ir.Store, k.Op(ir.Neg, v), twice, 0, 1)
	})
	one := b.Work(1)
	b.Loop(nil, func(k *Body) { k.Write(ir.Store, k.Load(b.x, 0), one, 0) })
	b.Loop(nil, func(k *Body) {
		v := k.Load(one, 0)
		k.Write(ir.Store, k.Op(ir.Add, v, k.Num(1)), one, 0)
		k.Write(ir.Store, k.Op(ir.Add, v, k.Load(one, 0)), b.Aux(1), 0)
	})
	return []Case{b.Finish()}
}
