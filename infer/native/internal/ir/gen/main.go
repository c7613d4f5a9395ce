// Command gen writes the assembly of package ir for amd64 with AVX2 and FMA. The functions and their coefficients are
// those of the virtual machine in C, in vm/elementary.h and vm/coefficients.h.
package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type vec = reg.VecVirtual

const lanes = 4

func main() {
	ConstraintExpr("amd64")
	of1("neg", neg)
	of1("abs", abs)
	of1("sqrt", sqrt)
	of1("exp", exp)
	of1("expm1", expm1)
	of1("log", log)
	of1("log1p", log1p)
	of2("add", func(a, b vec) vec { return add(a, b) })
	of2("sub", func(a, b vec) vec { return sub(a, b) })
	of2("mul", func(a, b vec) vec { return mul(a, b) })
	of2("div", func(a, b vec) vec { return div(a, b) })
	of2("min", func(a, b vec) vec { return or(min2(a, b), min2(b, a)) })
	of2("max", func(a, b vec) vec { return or(and(max2(a, b), max2(b, a)), cmp(unordered, a, b)) })
	comparison("lt", less)
	comparison("le", lessEqual)
	comparison("eq", equal)
	comparison("ne", notEqual)
	of3("mulAdd", "a·b + c, rounded twice", func(a, b, c vec) vec { return add(mul(a, b), c) })
	of3("choose", "b where a is not 0, else c", func(a, b, c vec) vec { return blend(cmp(notEqual, a, zero()), b, c) })
	reduce("sum", 1)
	reduce("dot", 2)
	Generate()
}

// Predicates of VCMPPD.
const equal, less, lessEqual, unordered, notEqual = 0, 17, 18, 3, 4

var constants = map[uint64]Mem{}

// constant is a number in each lane, in memory.
func constant(x float64) Mem { return bits(math.Float64bits(x)) }

func bits(x uint64) Mem {
	if m, ok := constants[x]; ok {
		return m
	}
	name := "k"
	for i := 60; i >= 0; i -= 4 {
		name += string("0123456789abcdef"[x>>i&15])
	}
	m := GLOBL(name, rodata|noptr)
	for i := range lanes {
		DATA(8*i, U64(x))
	}
	constants[x] = m
	return m
}

const rodata, noptr, nosplit = 8, 16, 4 // attributes of textflag.h

func load(m Op) vec {
	y := YMM()
	VMOVUPD(m, y)
	return y
}

func zero() vec {
	y := YMM()
	VXORPD(y, y, y)
	return y
}

// Operations of two operands, of which the second may be in memory.
func add(a vec, b Op) vec  { y := YMM(); VADDPD(b, a, y); return y }
func sub(a vec, b Op) vec  { y := YMM(); VSUBPD(b, a, y); return y }
func mul(a vec, b Op) vec  { y := YMM(); VMULPD(b, a, y); return y }
func div(a vec, b Op) vec  { y := YMM(); VDIVPD(b, a, y); return y }
func and(a vec, b Op) vec  { y := YMM(); VANDPD(b, a, y); return y }
func or(a vec, b Op) vec   { y := YMM(); VORPD(b, a, y); return y }
func xor(a vec, b Op) vec  { y := YMM(); VXORPD(b, a, y); return y }
func min2(a vec, b Op) vec { y := YMM(); VMINPD(b, a, y); return y }
func max2(a vec, b Op) vec { y := YMM(); VMAXPD(b, a, y); return y }

func cmp(predicate uint64, a vec, b Op) vec {
	y := YMM()
	VCMPPD(U8(predicate), b, a, y)
	return y
}

// blend is a where the mask is set, else b.
func blend(mask vec, a Op, b vec) vec {
	y := YMM()
	VBLENDVPD(mask, a, b, y)
	return y
}

// fma is a·b + c, and fnma c - a·b.
func fma(a vec, b Op, c Op) vec {
	y := load(c)
	VFMADD231PD(b, a, y)
	return y
}

func fnma(a vec, b Op, c Op) vec {
	y := load(c)
	VFNMADD231PD(b, a, y)
	return y
}

func neg(x vec) vec { return xor(x, bits(1<<63)) }
func abs(x vec) vec { return and(x, bits(1<<63-1)) }

func sqrt(x vec) vec {
	y := YMM()
	VSQRTPD(x, y)
	return y
}

const (
	log2e = 0x1.71547652b82fep+0
	magic = 0x1.8p52
	ln2   = 0x1.62e42ff000000p-1   // the first digits of log 2,
	l     = -0x1.718432a1b0e26p-35 // and the others
)

var cExp = []float64{
	0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100d5p-7, 0x1.6c16c16c162d1p-10,
	0x1.a01a01abeb69fp-13, 0x1.a01a01a6da7e2p-16, 0x1.71de0226bd07ap-19, 0x1.27e4db5e389d2p-22, 0x1.af4e000e84be8p-26,
	0x1.1f73102e57f8bp-29,
}

var cLog = []float64{
	0x1.5555555555558p-1, 0x1.9999999995261p-2, 0x1.2492492dff905p-2, 0x1.c71c62d34ccd6p-3, 0x1.7462b9d873fd0p-3,
	0x1.39fdb46b1eaf8p-3, 0x1.2b609728174cbp-3,
}

// poly is Σ c_i x^i, of an odd number of coefficients, even and odd powers apart.
func poly(x vec, c []float64) vec {
	n := len(c)
	square := mul(x, x)
	top, below := load(constant(c[n-1])), load(constant(c[n-2]))
	for i := n - 3; i > 0; i -= 2 {
		top = fma(top, square, constant(c[i]))
		below = fma(below, square, constant(c[i-1]))
	}
	return fma(fma(top, x, below), x, constant(c[0]))
}

// clamp leaves NaN as it is: VMINPD and VMAXPD give their second operand then.
func clamp(x vec, low, high float64) vec {
	return min2(load(constant(high)), max2(load(constant(low)), x))
}

// whole is x/log 2 as a whole number.
func whole(x vec) vec { return sub(fma(x, constant(log2e), constant(magic)), constant(magic)) }

// twoTo is 2^k for a whole k from -1022 to 1023.
func twoTo(k vec) vec {
	y := add(k, constant(magic))
	VPADDQ(bits(1023), y, y)
	VPSLLQ(U8(52), y, y)
	return y
}

// scale is x·2^k.
func scale(x, k vec) vec {
	half := mul(k, constant(0.5))
	VROUNDPD(U8(9), half, half)
	return mul(mul(x, twoTo(half)), twoTo(sub(k, half)))
}

func exp(x vec) vec {
	c := clamp(x, -746, 710)
	k := whole(c)
	r := fnma(k, constant(ln2), c)
	low := mul(k, constant(-l))
	s := add(r, low)
	rest := add(sub(r, s), low)
	p := add(s, fma(mul(s, s), poly(s, cExp), rest))
	return scale(add(p, constant(1)), k)
}

func expm1(x vec) vec {
	c := clamp(x, -50, 710)
	k := whole(c)
	high, low := fnma(k, constant(ln2), c), mul(k, constant(l))
	r := sub(high, low)
	low = sub(sub(high, r), low)
	one := load(constant(1))
	a := sub(one, scale(one, neg(k)))
	s := add(a, r)
	rest := add(sub(a, s), r)
	y := scale(add(s, add(rest, fma(mul(r, r), poly(r, cExp), low))), k)
	return blend(cmp(equal, x, zero()), x, y)
}

// logPart is log((1 + f)·2^e) + tail, for 1 + f between √½ and √2.
func logPart(f, e vec, tail Op) vec {
	s := div(f, add(f, constant(2)))
	z := mul(s, s)
	half := mul(mul(f, constant(0.5)), f)
	q := fma(z, poly(z, cLog), half)
	inner := fma(s, q, fma(e, constant(l), tail))
	return fma(e, constant(ln2), sub(f, sub(half, inner)))
}

// split is x = m·2^e with m between √½ and √2, for a normal x above 0.
func split(x vec) (m, e vec) {
	shifted := YMM()
	VMOVUPD(x, shifted)
	moved := uint64(1024) << 52
	moved -= 0x3fe6a09e667f3bcd
	VPADDQ(bits(moved), shifted, shifted)
	VPSRLQ(U8(52), shifted, shifted)
	e = or(shifted, bits(0x4330000000000000))
	e = sub(e, constant(0x1p52+1024))
	VPSUBQ(bits(1024), shifted, shifted)
	VPSLLQ(U8(52), shifted, shifted)
	m = YMM()
	VPSUBQ(shifted, x, m)
	return m, e
}

func log(x vec) vec {
	small := cmp(less, x, constant(0x1p-1022))
	m, e := split(blend(small, mul(x, constant(0x1p54)), x))
	y := logPart(sub(m, constant(1)), sub(e, and(small, constant(54))), zero())
	return ends(x, y, 0)
}

// ends has the values of a logarithm beside its domain, which begins at a number, and at infinity.
func ends(x, y vec, first float64) vec {
	inside := and(cmp(less, load(constant(first)), x), cmp(less, x, constant(math.Inf(1))))
	y = blend(inside, y, load(constant(math.NaN())))
	y = blend(cmp(equal, x, constant(first)), constant(math.Inf(-1)), y)
	return blend(cmp(equal, x, constant(math.Inf(1))), x, y)
}

func log1p(x vec) vec {
	one := load(constant(1))
	u := add(one, x)
	c := blend(cmp(less, x, one), sub(x, sub(u, one)), sub(one, sub(u, x)))
	m, e := split(u)
	f := sub(m, constant(1))
	few := fnma(f, fnma(f, fnma(f, sub(load(constant(1)), f), constant(1)), constant(1)), constant(1))
	t := mul(c, twoTo(neg(clamp(e, -60, 60))))
	t = and(t, cmp(less, e, constant(60)))
	y := ends(x, logPart(f, e, mul(t, few)), -1)
	return blend(cmp(equal, x, zero()), x, y)
}

// of1 writes d = f(a).
func of1(name string, f func(vec) vec) {
	TEXT(name+"AVX2", nosplit, "func(d, a *float64, n int)")
	Doc(name + "AVX2 sets d to " + name + " of a, for n > 0, a multiple of 4.")
	Pragma("noescape")
	d, a := Load(Param("d"), GP64()), Load(Param("a"), GP64())
	loop(func() {
		VMOVUPD(f(load(Mem{Base: a})), Mem{Base: d})
	}, [2]reg.Register{d, nil}, [2]reg.Register{a, nil})
}

// of2 writes d = f(a, b). An operand moves by its step, 32 bytes, or 0 for a number in four places.
func of2(name string, f func(a, b vec) vec) {
	TEXT(name+"AVX2", nosplit, "func(d, a, b *float64, as, bs, n int)")
	Doc(name+"AVX2 sets d to "+name+" of a and b, for n > 0, a multiple of 4. Operands move by their steps, 32 bytes,",
		"or 0 for a number in four places.")
	Pragma("noescape")
	d, a, b := Load(Param("d"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	as, bs := Load(Param("as"), GP64()), Load(Param("bs"), GP64())
	loop(func() {
		VMOVUPD(f(load(Mem{Base: a}), load(Mem{Base: b})), Mem{Base: d})
	}, [2]reg.Register{d, nil}, [2]reg.Register{a, as}, [2]reg.Register{b, bs})
}

// comparison writes a comparison, whose truth is 1.
func comparison(name string, predicate uint64) {
	of2(name, func(a, b vec) vec { return and(cmp(predicate, a, b), constant(1)) })
}

// of3 writes d = f(a, b, c).
func of3(name, says string, f func(a, b, c vec) vec) {
	TEXT(name+"AVX2", nosplit, "func(d, a, b, c *float64, as, bs, cs, n int)")
	Doc(name + "AVX2 sets d to " + says + ", as addAVX2.")
	Pragma("noescape")
	d, a, b, c := Load(Param("d"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64())
	as, bs, cs := Load(Param("as"), GP64()), Load(Param("bs"), GP64()), Load(Param("cs"), GP64())
	loop(func() {
		VMOVUPD(f(load(Mem{Base: a}), load(Mem{Base: b}), load(Mem{Base: c})), Mem{Base: d})
	}, [2]reg.Register{d, nil}, [2]reg.Register{a, as}, [2]reg.Register{b, bs}, [2]reg.Register{c, cs})
}

// loop runs a body for each four elements, and moves pointers, by 32 bytes or by what a register has.
func loop(body func(), moves ...[2]reg.Register) {
	n := Load(Param("n"), GP64())
	Label("loop")
	body()
	for _, m := range moves {
		if m[1] == nil {
			ADDQ(Imm(32), m[0])
		} else {
			ADDQ(m[1], m[0])
		}
	}
	SUBQ(Imm(4), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// reduce writes Σ a, or Σ a·b, in four vectors side by side.
func reduce(name string, operands int) {
	signature, says := "func(a *float64, n int) float64", "Σ a"
	if operands == 2 {
		signature, says = "func(a, b *float64, n int) float64", "Σ a·b"
	}
	TEXT(name+"AVX2", nosplit, signature)
	Doc(name + "AVX2 is " + says + ", for n > 0, a multiple of 4.")
	Pragma("noescape")
	p := []reg.Register{Load(Param("a"), GP64())}
	if operands == 2 {
		p = append(p, Load(Param("b"), GP64()))
	}
	n := Load(Param("n"), GP64())
	var sums []vec
	for range 4 {
		sums = append(sums, zero())
	}
	take := func(i int) {
		x := load(Mem{Base: p[0], Disp: 32 * i})
		if operands == 2 {
			x = mul(x, Mem{Base: p[1], Disp: 32 * i})
		}
		VADDPD(x, sums[i], sums[i])
	}
	move := func(by int) {
		for _, r := range p {
			ADDQ(Imm(uint64(32*by)), r)
		}
		SUBQ(Imm(uint64(4*by)), n)
	}
	Label("four")
	CMPQ(n, Imm(16))
	JL(LabelRef("one"))
	for i := range 4 {
		take(i)
	}
	move(4)
	JMP(LabelRef("four"))
	Label("one")
	CMPQ(n, Imm(0))
	JE(LabelRef("end"))
	take(0)
	move(1)
	JMP(LabelRef("one"))
	Label("end")
	VADDPD(sums[1], sums[0], sums[0])
	VADDPD(sums[3], sums[2], sums[2])
	VADDPD(sums[2], sums[0], sums[0])
	high := XMM()
	VEXTRACTF128(U8(1), sums[0], high)
	low := sums[0].AsX()
	VADDPD(high, low, low)
	VHADDPD(low, low, low)
	VZEROUPPER()
	Store(low, ReturnIndex(0))
	RET()
}
