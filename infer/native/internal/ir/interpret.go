package ir

import (
	"fmt"
	"math"
)

// Machine runs a plan by the letter, one instruction and one iteration at a time. It is slow; tests compare with it.
type Machine struct {
	// Round replaces each number that is computed; nil leaves it. Where it moves numbers by their rounding, the results
	// say how many of their digits rounding decides.
	Round func(float64) float64

	// Call runs a function in C. address is the two numbers of its address. Plans with such steps need it.
	Call func(address [2]float64, in, out []float64)

	plan *Plan
	mem  [][]float64
	turn int // of the Repeat that runs
}

// NewMachine makes the memory of a plan that was checked.
func NewMachine(p *Plan) *Machine {
	m := &Machine{plan: p, mem: make([][]float64, len(p.Buffers))}
	for i, b := range p.Buffers {
		m.mem[i] = make([]float64, b.Len)
		copy(m.mem[i], b.Data)
	}
	return m
}

// Prepare runs the prologue on a batch: the numbers of each input.
func (m *Machine) Prepare(inputs [][]float64) error {
	for i, b := range m.plan.Buffers {
		if b.Kind == Input {
			copy(m.mem[i], inputs[b.Slot])
		}
	}
	for i := range m.plan.Prologue {
		if err := m.step(&m.plan.Prologue[i]); err != nil {
			return err
		}
	}
	return nil
}

// Eval evaluates the density at x with a weight of its Jacobian. It fills grad and each aux.
func (m *Machine) Eval(x []float64, weight float64, grad []float64, aux [][]float64) (float64, error) {
	for i, b := range m.plan.Buffers {
		switch b.Kind {
		case X:
			copy(m.mem[i], x)
		case Weight:
			m.mem[i][0] = weight
		case Work:
			for k := range m.mem[i] {
				m.mem[i][k] = math.NaN() // nothing may be read before it is written
			}
		}
	}
	for i := range m.plan.Steps {
		if err := m.step(&m.plan.Steps[i]); err != nil {
			return math.NaN(), err
		}
	}
	value := math.NaN()
	for i, b := range m.plan.Buffers {
		switch b.Kind {
		case Value:
			value = m.mem[i][0]
		case Grad:
			copy(grad, m.mem[i])
		case Aux:
			copy(aux[b.Slot], m.mem[i])
		}
	}
	return value, nil
}

// each calls f with every point of a space, the last dimension fastest.
func each(sizes []int, f func(at []int) error) error {
	at := make([]int, len(sizes))
	for {
		if err := f(at); err != nil {
			return err
		}
		if !Next(at, sizes) {
			return nil
		}
	}
}

// rounded is a computed number.
func (m *Machine) rounded(x float64) float64 {
	if m.Round == nil {
		return x
	}
	return m.Round(x)
}

func (m *Machine) offset(a *Address, at []int) int {
	o := a.Off + a.Turn*m.turn
	for d, s := range a.Strides {
		o += s * at[d]
	}
	if a.Index != nil {
		o += a.Scale * int(m.mem[a.Index.Buf][m.offset(a.Index, at)])
	}
	return o
}

func (m *Machine) step(s *Step) error {
	switch s.Kind {
	case Repeat:
		defer func() { m.turn = 0 }()
		for m.turn = 0; m.turn < s.Times; m.turn++ {
			for i := range s.Inner {
				if err := m.step(&s.Inner[i]); err != nil {
					return err
				}
			}
		}
		return nil
	case MatMul, Cholesky, Solve, Scan, Call:
		return each(s.Sizes, func(at []int) error { m.matrices(s, at); return nil })
	}
	v := make([]float64, len(s.Body))
	started := map[[2]int]bool{} // elements of reductions that have a first term
	return each(s.Sizes, func(at []int) error {
		for k := range s.Body {
			in := &s.Body[k]
			var a, b, c float64
			if n := in.Op.arity(); n > 0 {
				a = v[in.A]
				if n > 1 {
					b = v[in.B]
				}
				if n > 2 {
					c = v[in.C]
				}
			}
			switch in.Op {
			case Num:
				v[k] = in.Num
			case Load:
				v[k] = m.mem[in.At.Buf][m.offset(&in.At, at)]
			case Coord:
				v[k] = float64(at[in.Dim])
			case Store:
				m.mem[in.At.Buf][m.offset(&in.At, at)] = a
			case StoreIndex:
				if a != math.Trunc(a) || a < 0 || a >= float64(in.Limit) {
					return fmt.Errorf("the index %v is not in [0, %d)", a, in.Limit)
				}
				m.mem[in.At.Buf][m.offset(&in.At, at)] = a
			case ScatterAdd:
				to := &m.mem[in.At.Buf][m.offset(&in.At, at)]
				*to = m.rounded(*to + a)
			case Sum, Prod, MaxOf:
				o := m.offset(&in.At, at)
				to := &m.mem[in.At.Buf][o]
				first := [2]int{k, o}
				switch {
				case !started[first]:
					*to, started[first] = a, true
				case in.Op == Sum:
					*to = m.rounded(*to + a)
				case in.Op == Prod:
					*to = m.rounded(*to * a)
				default:
					*to = binary(Max, *to, a)
				}
			default:
				if v[k] = Apply(in.Op, a, b, c); in.Op.rounds() {
					v[k] = m.rounded(v[k])
				}
			}
		}
		return nil
	})
}

func (m *Machine) matrices(s *Step, at []int) {
	element := func(x Matrix, i, j int) *float64 {
		o := x.Off + x.Turn*m.turn + x.Row*i + x.Col*j
		for d, k := range x.Strides {
			o += k * at[d]
		}
		return &m.mem[x.Buf][o]
	}
	switch s.Kind {
	case MatMul:
		for i := range s.M {
			for j := range s.N {
				sum := 0.0
				for k := range s.K {
					if s.Upper && k < i || s.Lower && j > i {
						continue
					}
					sum = m.rounded(sum + *element(s.A, i, k)**element(s.B, k, j))
				}
				*element(s.Out, i, j) = sum
			}
		}
	case Cholesky:
		for j := range s.N {
			for i := range j {
				*element(s.Out, i, j) = 0
			}
			for i := j; i < s.N; i++ {
				sum := *element(s.A, i, j)
				for k := range j {
					sum = m.rounded(sum - *element(s.Out, i, k)**element(s.Out, j, k))
				}
				if i == j {
					if !(sum > 0) {
						sum = math.NaN() // which every later column takes over
					}
					*element(s.Out, i, j) = m.rounded(math.Sqrt(sum))
				} else {
					*element(s.Out, i, j) = m.rounded(sum / *element(s.Out, j, j))
				}
			}
		}
	case Solve:
		n, lines := s.M, s.N
		if s.Right {
			n, lines = s.N, s.M
		}
		x := func(i, line int) (*float64, float64) {
			if s.Right {
				return element(s.Out, line, i), *element(s.B, line, i)
			}
			return element(s.Out, i, line), *element(s.B, i, line)
		}
		forward := s.Upper == s.Right // X A = B with an upper A goes forward, as A X = B with a lower one
		for line := range lines {
			for q := range n {
				i := q
				if !forward {
					i = n - 1 - q
				}
				to, sum := x(i, line)
				for r := range q {
					k := r
					if !forward {
						k = n - 1 - r
					}
					from, _ := x(k, line)
					if s.Right {
						sum = m.rounded(sum - *element(s.A, k, i)**from)
					} else {
						sum = m.rounded(sum - *element(s.A, i, k)**from)
					}
				}
				if !s.Unit {
					sum = m.rounded(sum / *element(s.A, i, i))
				}
				*to = sum
			}
		}
	case Call:
		in, out := make([]float64, s.K), make([]float64, s.N)
		for k := range in {
			in[k] = *element(s.A, 0, k)
		}
		m.Call([2]float64{*element(s.B, 0, 0), *element(s.B, 0, 1)}, in, out)
		for k, v := range out {
			*element(s.Out, 0, k) = v
		}
	case Scan:
		sum := 0.0
		if s.Product {
			sum = 1
		}
		for k := range s.N {
			if s.Product {
				sum = m.rounded(sum * *element(s.A, 0, k))
			} else {
				sum = m.rounded(sum + *element(s.A, 0, k))
			}
			*element(s.Out, 0, k) = sum
		}
	}
}
