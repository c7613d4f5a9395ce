package fuse

// #include "loop.h"
import "C"

import "fmt"

// Register is a vector of as many numbers as there are parameters, for each chain.
type Register int32

// The registers. An update reads Grad, the gradient at Theta, and Noise, standard normal numbers; A, B, D and E are
// its own.
const (
	Theta Register = C.KELVIN_THETA
	Grad  Register = C.KELVIN_GRAD
	Noise Register = C.KELVIN_NOISE
	A     Register = C.KELVIN_A
	B     Register = C.KELVIN_B
	D     Register = C.KELVIN_D
	E     Register = C.KELVIN_E
)

// MostParts is how many tensors a state may have besides θ.
const MostParts = C.KELVIN_REGISTERS - C.KELVIN_PARTS

// Part is the i-th tensor of a state besides θ.
func Part(i int) Register { return C.KELVIN_PARTS + Register(i) }

// OfState is the register of the i-th tensor of a state, the first of which is θ.
func OfState(i int) Register {
	if i == 0 {
		return Theta
	}
	return Part(i - 1)
}

// Program is a sequence of updates. An update is a sequence of operations on the elements of registers. All chains make
// the same.
type Program struct {
	moves []C.kelvin_move
	ops   []C.kelvin_op
	means int
	stats []stat
}

// stat is a mean that an update tells.
type stat struct {
	name string
	mean int
}

// Term is c·x, a summand of [Program.Combine]; or a [Product].
type Term struct {
	C float64
	X Register
	y Register // of a product, plus 1
}

// Times is c·x, a summand of [Program.Combine].
func (x Register) Times(c float64) Term { return Term{C: c, X: x} }

// Product is c·x·y, a summand of [Program.Combine].
func Product(c float64, x, y Register) Term { return Term{C: c, X: x, y: y + 1} }

// Reset empties the program.
func (p *Program) Reset() { p.moves, p.ops, p.means, p.stats = p.moves[:0], p.ops[:0], 0, p.stats[:0] }

// Truncate leaves the first n updates.
func (p *Program) Truncate(n int) {
	if n < len(p.moves) {
		p.ops, p.moves = p.ops[:p.moves[n].first], p.moves[:n]
	}
}

// Still takes the operations away: the updates evaluate and leave their chains where they are.
func (p *Program) Still() {
	for i := range p.moves {
		p.moves[i].count, p.moves[i].noise = 0, 0
	}
}

// Len is the number of updates.
func (p *Program) Len() int { return len(p.moves) }

// Begin begins an update that evaluates log density + weight · log |Jacobian|. With value that must be finite, and
// record keeps the points before the update; without value only the gradient is evaluated, and recorded values are
// NaN.
func (p *Program) Begin(weight float64, value, record bool) {
	p.moves = append(p.moves, C.kelvin_move{first: C.int32_t(len(p.ops)), value: truth(value), record: truth(record),
		weight: C.double(weight)})
}

// Records is how many of the first n updates record.
func (p *Program) Records(n int) int {
	sum := 0
	for i := range p.moves[:n] {
		sum += int(p.moves[i].record)
	}
	return sum
}

// Values is how many updates need the value.
func (p *Program) Values() int {
	sum := 0
	for i := range p.moves {
		sum += int(p.moves[i].value)
	}
	return sum
}

// Combine sets a register to the sum of terms, which may contain it: of at most four registers. Only the last of
// several may be a product. Noise of coefficient 0 is not drawn.
func (p *Program) Combine(to Register, terms ...Term) {
	op := C.kelvin_op{code: C.KELVIN_COMBINE, to: C.int32_t(to)}
	for _, t := range terms {
		if (t.X == Noise || t.y == Noise+1) && t.C == 0 {
			continue
		}
		n := int(op.terms)
		if n+int(truth(t.y != 0)) >= len(op.from) || op.code != C.KELVIN_COMBINE {
			panic(fmt.Sprintf("fuse: Combine has at most %d registers, and a product is its last term", len(op.from)))
		}
		op.from[n], op.c[n] = C.int32_t(t.X), C.double(t.C)
		op.terms++
		if t.y != 0 {
			op.from[n+1], op.code = C.int32_t(t.y-1), C.KELVIN_COMBINE_PRODUCT
			op.terms++
		}
	}
	if op.code == C.KELVIN_COMBINE_PRODUCT && op.terms == 2 {
		op.code = C.KELVIN_MULTIPLY
	}
	p.add(op)
}

// Add adds terms to a register, at most three.
func (p *Program) Add(to Register, terms ...Term) {
	all := [4]Term{to.Times(1)}
	if copy(all[1:], terms) < len(terms) {
		panic(fmt.Sprintf("fuse: Add has at most %d terms", len(all)-1))
	}
	p.Combine(to, all[:1+len(terms)]...)
}

// Multiply sets a register to c·x·y.
func (p *Program) Multiply(to Register, c float64, x, y Register) {
	p.pair(C.KELVIN_MULTIPLY, to, c, x, y)
}

// Divide sets a register to c·x/y.
func (p *Program) Divide(to Register, c float64, x, y Register) { p.pair(C.KELVIN_DIVIDE, to, c, x, y) }

// Root sets a register to c·√x + plus.
func (p *Program) Root(to Register, c float64, x Register, plus float64) {
	p.single(C.KELVIN_ROOT, to, x, c, plus)
}

// InverseRoot sets a register to c/√(x + plus).
func (p *Program) InverseRoot(to Register, c float64, x Register, plus float64) {
	p.single(C.KELVIN_INVERSE_ROOT, to, x, c, plus)
}

// Shift sets a register to x + c.
func (p *Program) Shift(to Register, x Register, c float64) { p.single(C.KELVIN_SHIFT, to, x, c, 0) }

// Clamp sets a register to min(max(x, least), most).
func (p *Program) Clamp(to Register, x Register, least, most float64) {
	p.single(C.KELVIN_CLAMP, to, x, least, most)
}

// ATMC are the numbers of [Program.ATMC].
type ATMC struct {
	H, Friction, Scale, Velocity, Plus float64
	Limit                              float64 // of relativistic momenta; 0 for Gaussian ones
}

// ATMC is a whole update of ATMC, in one operation because its registers would go through the caches thrice. With
// r(p) = 1/√(1 + Limit·p²), b = max(ξ, Friction)·r(p), u = e⁻ᵇᴴ − 1 and k = −u/b it is, of momenta p and thermostats ξ,
//
//	p' = p + up + k·Grad + Scale·√(max(Friction − ξ, 0)·k·(2 + u))·Noise
//	θ' = θ + Velocity·p'r(p')
//	ξ' = ξ + Velocity·(p'r(p'))² + Plus·r(p')³
//
// With Scale 0 no noise is drawn.
func (p *Program) ATMC(momenta, xi Register, a ATMC) {
	noise := Noise
	if a.Scale == 0 {
		noise = Grad // any register that is there
	}
	p.add(C.kelvin_op{code: C.KELVIN_ATMC, to: C.int32_t(momenta), terms: 3,
		from: [4]C.int32_t{C.int32_t(momenta), C.int32_t(xi), C.int32_t(noise)},
		c: [6]C.double{C.double(a.H), C.double(a.Friction), C.double(a.Scale), C.double(a.Velocity), C.double(a.Plus),
			C.double(a.Limit)}})
}

// Below sets a register to 1 where x < 0, else to 0.
func (p *Program) Below(to, x Register) { p.single(C.KELVIN_BELOW, to, x, 0, 0) }

// Mean is the mean of the elements of a register for each chain, by a number that [Program.Drift] takes. [Chains]
// cannot make it.
func (p *Program) Mean(x Register) int {
	p.single(C.KELVIN_MEAN, Register(p.means), x, 0, 0)
	p.means++
	return p.means - 1
}

// Tell makes the mean of a register a statistic of the update. [Chains] cannot make it.
func (p *Program) Tell(name string, x Register) { p.stats = append(p.stats, stat{name, p.Mean(x)}) }

// Drift adds c·mean + plus to a part that has one number for each chain. All operations read what it was before.
// [Chains] cannot make it.
func (p *Program) Drift(to Register, c float64, mean int, plus float64) {
	p.single(C.KELVIN_DRIFT, to, Register(mean), c, plus)
}

func (p *Program) single(code C.int32_t, to, x Register, c0, c1 float64) {
	op := C.kelvin_op{code: code, to: C.int32_t(to), terms: 1}
	op.from[0], op.c[0], op.c[1] = C.int32_t(x), C.double(c0), C.double(c1)
	p.add(op)
}

func (p *Program) pair(code C.int32_t, to Register, c float64, x, y Register) {
	op := C.kelvin_op{code: code, to: C.int32_t(to), terms: 2}
	op.from[0], op.from[1], op.c[0] = C.int32_t(x), C.int32_t(y), C.double(c)
	p.add(op)
}

func (p *Program) add(op C.kelvin_op) {
	m := &p.moves[len(p.moves)-1]
	for _, x := range op.from[:op.terms] {
		if x == C.KELVIN_NOISE && op.code != C.KELVIN_DRIFT {
			m.noise = 1
		}
	}
	m.count++
	p.ops = append(p.ops, op)
}

func truth(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}
