// Package ir is what a recorded evaluation of a log density becomes: a plan of fused loops over buffers of numbers.
// Two back ends run plans, the virtual machine and compiled C; [Machine] says what a plan means.
//
// Every number is a float64. A truth value is 0 or 1, a whole number is a float64 without a fraction. A loop has an
// iteration space and a body in static single assignment; every operand of an instruction is an earlier instruction of
// the same body. What is not pointwise is a step of its own: matrix products, factorisations, scans.
package ir

import "slices"

// Kind says where a buffer lives, who writes it and who reads it.
type Kind uint8

const (
	X        Kind = iota // the point, Dim numbers: read by the main part
	Weight               // one number, the weight of the log Jacobian: read by the main part
	Grad                 // the gradient, Dim numbers: written by the main part
	Value                // the log density, one number: written by the main part
	Const                // numbers known when the plan is made: read by both parts
	Input                // a tensor of the batch, by pointer: read by both parts
	Prepared             // written by the prologue from the batch alone, read by both parts
	Work                 // scratch, written before it is read in each call
	Aux                  // a further output, written by the main part
)

// Elem is the type of a buffer's elements in memory. A load converts to float64.
type Elem uint8

const (
	F64 Elem = iota
	F32
	I64
	U8  // also truth values
	I32 // Prepared and Const alone: checked indices, for Address.Index
)

// Buffer is an array of numbers.
type Buffer struct {
	Kind Kind
	Elem Elem
	Len  int       // elements
	Data []float64 // of a Const
	Slot int       // the number of an Input or Aux among its kind
}

// Address says which element of a buffer an iteration touches: Off + Σ_d Strides[d]·i_d, plus Scale times an index that
// is read from an I32 buffer where Index is not nil, plus Turn times the turn of the Repeat that the step is in.
type Address struct {
	Buf     int
	Off     int
	Strides []int // one for each dimension of the loop
	Index   *Address
	Scale   int
	Turn    int
}

// Op is what an instruction does. Comparisons with NaN are false; Min and Max give NaN where an operand is NaN.
type Op uint8

const (
	Num   Op = iota // the number Instr.Num
	Load            // the element at Instr.At
	Coord           // the coordinate i_d of loop dimension Instr.Dim

	Neg
	Abs
	Sqrt
	Exp
	Expm1
	Log
	Log1p
	Sin
	Cos
	Tan
	Asin
	Acos
	Atan
	Sinh
	Cosh
	Tanh
	Lgamma
	Digamma
	Trigamma
	Erf
	Erfc
	Erfcx // exp(x²)·erfc(x)
	Erfinv
	I0e // exp(-|x|)·I0(x)
	I1e // exp(-|x|)·I1(x)
	Floor
	Ceil
	Trunc
	Round // half to even
	Sign
	IsNaN
	IsInf
	Not // 1 where the operand is 0, else 0

	Add
	Sub
	Mul
	Div
	Pow
	Hypot // scaled: finite where the result is
	Atan2
	Rem // a - b·floor(a/b)
	Min
	Max
	Lt
	Le
	Eq
	Ne
	And
	Or

	Select // B where A is not 0, else C

	Store      // element At = A
	Sum        // element At = Σ A over the loop dimensions of stride 0; other dimensions are kept
	Prod       // the product, likewise
	MaxOf      // the maximum, likewise
	ScatterAdd // element At += A, in the order of the loop; At has an Index, and earlier steps have set the buffer
	StoreIndex // I32 element At = A, which must be whole and in [0, Limit): else the prologue fails. Prologue alone
)

// Instr is one instruction of a loop's body. A, B and C are the numbers of earlier instructions.
type Instr struct {
	Op      Op
	A, B, C int
	Num     float64
	Dim     int
	At      Address
	Limit   int
}

// StepKind says what a step is.
type StepKind uint8

const (
	Loop StepKind = iota
	MatMul
	Cholesky
	Solve
	Scan
	Call
	Repeat // Inner, Times times, one turn after the other
)

// Step is a fused loop, or an operation on matrices, which is repeated over the space Sizes; or a Repeat of other
// steps. A step of a Repeat sees what earlier turns have written.
type Step struct {
	Kind  StepKind
	Sizes []int   // the iteration space, outermost dimension first; empty for one iteration
	Body  []Instr // of a Loop

	// MatMul:   Out[M,N] = A[M,K] · B[K,N]. With Upper A is 0 below its diagonal, which need not be read; with Lower of
	//           Out the lower triangle is computed alone, and 0 is above it.
	// Cholesky: Out[N,N] is the lower factor of A, and 0 above it. Only the lower triangle of A is read. If A has no
	//           factor, Out is NaN on and below the diagonal.
	// Solve:    A·Out = B, or Out·A = B with Right, for a triangular A; Out and B are [M,N]. Of A the other triangle
	//           is not read.
	// Scan:     Out[k] = Σ_{l<=k} A[l] for k < N, or the product where Product is set; the Col strides are used.
	// Call:     Out[k], k < N, is what a function in C makes of A[l], l < K; both lie contiguous. B is two numbers whose
	//           bits are the addresses of the function and of what it belongs to, see abi.h.
	M, N, K            int
	Out, A, B          Matrix
	Upper, Unit, Right bool
	Lower              bool
	Product            bool

	Times  int    // of a Repeat
	Inner  []Step // of a Repeat; none is a Repeat
	Blocks bool   // a Repeat goes through blocks of rows, and not through time; of no meaning for a machine

	// Parts of a Repeat are so many ranges of its turns that may run at once; 0 where turn follows turn. Part p has the
	// turns from p·Times/Parts on. Before its first turn and After its last one it does more; there Turn counts parts.
	// What is written with Turn 0 is a part's own: it sees nothing of other parts, and is gone behind the Repeat.
	Parts         int
	Before, After []Step
}

// Matrix is an operand of a step: element (i, j) of repetition s is at Off + Σ_d Strides[d]·s_d + Row·i + Col·j, plus
// Turn times the turn of the Repeat that the step is in.
type Matrix struct {
	Buf, Off int
	Row, Col int
	Strides  []int // one for each dimension of Step.Sizes
	Turn     int
}

// Plan is a log density with its gradient. The prologue reads the batch and the constants; it runs once for each batch.
// The steps run at each evaluation.
type Plan struct {
	Dim      int
	Buffers  []Buffer
	Prologue []Step
	Steps    []Step
	Inputs   []Slot   // what the batch must be
	Outputs  []Slot   // what Aux buffers are
	Notes    []string // what stays as it is, and why; of no meaning for a machine
}

// Slot describes a tensor that goes in or out by pointer. It is contiguous.
type Slot struct {
	Name  string
	Elem  Elem
	Shape []int
}

// Len is the number of elements of a slot's tensor.
func (s Slot) Len() int {
	n := 1
	for _, size := range s.Shape {
		n *= size
	}
	return n
}

// Equal says whether two slots are for the same tensors.
func (s Slot) Equal(t Slot) bool {
	return s.Name == t.Name && s.Elem == t.Elem && slices.Equal(s.Shape, t.Shape)
}

// arity is how many operands an operation has.
func (o Op) arity() int {
	switch {
	case o <= Coord:
		return 0
	case o <= Not:
		return 1
	case o <= Or:
		return 2
	case o == Select:
		return 3
	}
	return 1
}

// Writes says whether an instruction changes memory; other instructions have a value.
func (o Op) Writes() bool { return o >= Store }

// reduces says whether an instruction combines what all iterations along some dimensions have.
func (o Op) reduces() bool { return o == Sum || o == Prod || o == MaxOf }

// rounds says whether the result of an operation is a number that is rounded; others are exact.
func (o Op) rounds() bool {
	switch o {
	case Neg, Abs, Floor, Ceil, Trunc, Round, Sign, IsNaN, IsInf, Not, Min, Max, Lt, Le, Eq, Ne, And, Or, Select:
		return false
	}
	return true
}

// Operands are the numbers of the instructions whose values this one takes.
func (i Instr) Operands() []int { return []int{i.A, i.B, i.C}[:i.Op.arity()] }

// Iterations is the number of points of a space.
func Iterations(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

// Next moves to the next point of a space, the last dimension fastest. It is false behind the last point, which is the
// first again.
func Next(at, sizes []int) bool {
	for d := len(sizes) - 1; d >= 0; d-- {
		if at[d]++; at[d] < sizes[d] {
			return true
		}
		at[d] = 0
	}
	return false
}

// Divisor is the greatest common divisor, and 0 for two zeros.
func Divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// Align is the alignment of each buffer inside a block, in bytes: a cache line, and the widest vector.
const Align = 64

// Size is the number of bytes of an element.
func (e Elem) Size() int {
	switch e {
	case F32, I32:
		return 4
	case U8:
		return 1
	}
	return 8
}

// Layout places the buffers of the kinds Const, Prepared and Work in one block each. Both back ends use it, so that a
// caller makes the blocks without knowing who runs the plan.
type Layout struct {
	Offset                   []int // of each buffer in its block, in bytes; 0 for kinds without a block
	Const, Prepared, Scratch int   // bytes of the blocks
}

// Place computes the layout of a plan.
func (p *Plan) Place() Layout {
	l := Layout{Offset: make([]int, len(p.Buffers))}
	for i, b := range p.Buffers {
		var end *int
		switch b.Kind {
		case Const:
			end = &l.Const
		case Prepared:
			end = &l.Prepared
		case Work:
			end = &l.Scratch
		default:
			continue
		}
		l.Offset[i] = *end
		*end += (b.Len*b.Elem.Size() + Align - 1) / Align * Align
	}
	return l
}

// Leaves are the steps that are no Repeat, those inside of one included.
func Leaves(steps []Step) []*Step {
	var out []*Step
	for i := range steps {
		if s := &steps[i]; s.Kind == Repeat {
			out = append(append(append(out, Leaves(s.Before)...), Leaves(s.Inner)...), Leaves(s.After)...)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Unrolled are the same steps with each turn of a Repeat written out.
func Unrolled(steps []Step) []Step {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Kind == Repeat }) {
		return steps
	}
	var out []Step
	for _, s := range InOrder(steps) {
		if s.Kind != Repeat {
			out = append(out, s)
			continue
		}
		for turn := range s.Times {
			out = append(out, from(s.Inner, turn, false)...)
		}
	}
	return out
}

// InOrder are the same steps with the parts of each Repeat one after the other.
func InOrder(steps []Step) []Step {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.Parts > 0 }) {
		return steps
	}
	var out []Step
	for _, s := range steps {
		if s.Parts == 0 {
			out = append(out, s)
			continue
		}
		for p := range s.Parts {
			first, end := p*s.Times/s.Parts, (p+1)*s.Times/s.Parts
			out = append(out, from(s.Before, p, false)...)
			out = append(out, Step{Kind: Repeat, Blocks: s.Blocks, Times: end - first, Inner: from(s.Inner, first, true)})
			out = append(out, from(s.After, p, false)...)
		}
	}
	return out
}

// from are steps of a Repeat as they are in one turn, or where turns follow, as they are from that one on.
func from(steps []Step, turn int, turns bool) []Step {
	out := slices.Clone(steps)
	for k := range out {
		s := &out[k]
		s.Body = slices.Clone(s.Body)
		for i := range s.Body {
			s.Body[i].At = s.Body[i].At.from(turn, turns)
		}
		for _, m := range []*Matrix{&s.Out, &s.A, &s.B} {
			if m.Off += m.Turn * turn; !turns {
				m.Turn = 0
			}
		}
	}
	return out
}

func (a Address) from(turn int, turns bool) Address {
	if a.Off += a.Turn * turn; !turns {
		a.Turn = 0
	}
	if a.Index != nil {
		index := a.Index.from(turn, turns)
		a.Index = &index
	}
	return a
}
