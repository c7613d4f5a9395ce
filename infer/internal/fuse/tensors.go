package fuse

// #include "loop.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
	"github.com/sugarme/gotch"
	"github.com/sugarme/gotch/ts"
)

// Tensors is one update of chains whose states are tensors of any device and precision: libtorch makes one operation
// of a program after the other. It is what [Chains] and [Pass] are compared with. Parts have a row for each chain, one
// for all of them, or one number for each chain.
type Tensors struct {
	Normal func() *ts.Tensor // standard normal numbers in the form of θ

	registers [C.KELVIN_REGISTERS]*ts.Tensor
}

// Set puts a tensor in a register.
func (x *Tensors) Set(r Register, t *ts.Tensor) { x.registers[r] = t }

// Get is the tensor of a register: after [Tensors.Run] what the update made, or what was set.
func (x *Tensors) Get(r Register) *ts.Tensor { return x.registers[r] }

// Run makes the first update of a program, whatever it says of values and records, and returns the statistics that the
// program tells. It never writes to a tensor that was set. It panics with errors, as [torch.Must] does.
func (x *Tensors) Run(p *Program) (stats map[string][]float64) {
	if p.moves[0].noise != 0 {
		x.registers[Noise] = x.Normal()
	}
	means := make([]*ts.Tensor, p.means)
	var drifts []*C.kelvin_op
	for i := range p.ops {
		switch op := &p.ops[i]; op.code {
		case C.KELVIN_MEAN:
			means[op.to] = x.of(op, 0).MustMeanDim([]int64{-1}, true, gotch.Double, false)
		case C.KELVIN_DRIFT:
			drifts = append(drifts, op)
		case C.KELVIN_ATMC:
			x.atmc(op)
		default:
			x.registers[op.to] = x.made(op)
		}
	}
	for _, op := range drifts { // last: all other operations read what it was before
		old := x.registers[op.to]
		mean := means[op.from[0]].MustTotype(torch.Must(torch.DTypeOfTensor(torch.Of(old))), false)
		x.registers[op.to] = shifted(sum([]float64{1, float64(op.c[0])}, old, mean), op.c[1])
	}
	for _, s := range p.stats {
		if stats == nil {
			stats = make(map[string][]float64, len(p.stats))
		}
		stats[s.name] = torch.Must(torch.ToSlice[float64](torch.Of(means[s.mean])))
	}
	return stats
}

// of is the i-th register that an operation reads.
func (x *Tensors) of(op *C.kelvin_op, i int) *ts.Tensor {
	t := x.registers[op.from[i]]
	if t == nil {
		torch.Must(0, fmt.Errorf("fuse: operation %d reads register %d, which is empty", op.code, op.from[i]))
	}
	return t
}

// made is what an operation on elements makes, a new tensor.
func (x *Tensors) made(op *C.kelvin_op) *ts.Tensor {
	if op.code == C.KELVIN_COMBINE || op.code == C.KELVIN_COMBINE_PRODUCT {
		return x.combined(op)
	}
	a := x.of(op, 0)
	switch op.code {
	case C.KELVIN_MULTIPLY:
		return scaled(a.MustMul(x.of(op, 1), false), op.c[0])
	case C.KELVIN_DIVIDE:
		return scaled(a.MustDiv(x.of(op, 1), false), op.c[0])
	case C.KELVIN_ROOT:
		return shifted(scaled(a.MustSqrt(false), op.c[0]), op.c[1])
	case C.KELVIN_INVERSE_ROOT:
		return scaled(shifted(a, op.c[1]).MustRsqrt(false), op.c[0])
	case C.KELVIN_SHIFT:
		return a.MustAddScalar(number(op.c[0]), false)
	case C.KELVIN_CLAMP:
		return a.MustClamp(number(op.c[0]), number(op.c[1]), false)
	case C.KELVIN_BELOW:
		return a.MustLt(number(0), false).MustTotype(torch.Must(torch.DTypeOfTensor(torch.Of(a))), false)
	}
	panic(fmt.Sprintf("fuse: no operation %d", op.code))
}

// combined is a sum of products.
func (x *Tensors) combined(op *C.kelvin_op) *ts.Tensor {
	n := int(op.terms)
	if n == 0 {
		return x.registers[Theta].MustZerosLike(false)
	}
	var c []float64
	var terms []*ts.Tensor
	for i := range n {
		t := x.of(op, i)
		if i == n-2 && op.code == C.KELVIN_COMBINE_PRODUCT {
			c, terms = append(c, float64(op.c[i])), append(terms, t.MustMul(x.of(op, i+1), false))
			break
		}
		c, terms = append(c, float64(op.c[i])), append(terms, t)
	}
	return sum(c, terms...)
}

// atmc is [Program.ATMC].
func (x *Tensors) atmc(op *C.kelvin_op) {
	h, friction, scale := float64(op.c[0]), float64(op.c[1]), float64(op.c[2])
	velocity, plus, limit := float64(op.c[3]), float64(op.c[4]), float64(op.c[5])
	p, xi := torch.Of(x.of(op, 0)), torch.Of(x.of(op, 1))
	// move is p r(p), and slowness r(p).
	move := func(p torch.Tensor) (move, slowness torch.Tensor) {
		if limit == 0 {
			return p, torch.Of(1)
		}
		bound := 1e15 / math.Sqrt(limit) // beyond it the velocity is the limit's but for rounding, and squares overflow
		p = p.Clamp(-bound, bound)
		slowness = p.Square().Mul(limit).Add(1).Sqrt().Reciprocal()
		return p.Mul(slowness), slowness
	}
	_, slowness := move(p)
	b := xi.Max(friction).Mul(slowness)
	u := b.Mul(-h).Expm1()
	k := u.Div(b).Neg()
	p = p.Add(u.Mul(p)).Add(k.Mul(torch.Of(x.registers[Grad])))
	if scale > 0 {
		injected := xi.Neg().Add(friction).Max(0).Mul(k).Mul(u.Add(2)).Sqrt()
		p = p.Add(injected.Mul(torch.Of(x.of(op, 2))).Mul(scale))
	}
	v, slowness := move(p)
	x.registers[Theta] = torch.Of(x.registers[Theta]).Add(v.Mul(velocity)).T()
	x.registers[op.to] = p.T()
	x.registers[op.from[1]] = xi.Add(v.Square().Mul(velocity)).Add(slowness.Mul(slowness).Mul(slowness).Mul(plus)).T()
}

func number(c C.double) *ts.Scalar { return ts.FloatScalar(float64(c)) }

// scaled is c·t of a tensor that nobody else has.
func scaled(t *ts.Tensor, c C.double) *ts.Tensor {
	if c != 1 {
		t.MustMulScalar_(number(c))
	}
	return t
}

// shifted is t + c, which may be t.
func shifted(t *ts.Tensor, c C.double) *ts.Tensor {
	if c == 0 {
		return t
	}
	return t.MustAddScalar(number(c), false)
}

// sum is a sum of products, see [torch.Combine].
func sum(c []float64, x ...*ts.Tensor) *ts.Tensor { return torch.Must(ts.KelvinCombine(c, x)) }
