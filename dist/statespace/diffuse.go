package statespace

import (
	"fmt"
	"math"
	"slices"

	"github.com/kelvin-ppl/kelvin/torch"
)

// A diffuse start is exact: the filter runs for first states Mean + Spread e_0 + Diffuse δ, with δ a parameter, in
// which all means are linear. Density and states are those integrated over a flat prior of δ (Rosenberg 1973, Annals
// of Economic and Social Measurement 2, 399–428; de Jong 1991, Annals of Statistics 19, 1073–1083). With V the
// derivative of −v in δ, summed over the observations,
//
//	S = Σ V V'/s,  δ̂ = S⁻¹ Σ V v/s,  log ∫ p(y | δ) dδ = log p(y | δ̂) − (log det S − q log 2π)/2

// diffuse is the number q of elements of δ.
func (s System) diffuse() int {
	if shape := s.Diffuse.Shape(); len(shape) == 2 {
		return shape[1]
	}
	return 0
}

// responses are the derivatives V of all observations, [..., T, p] for each element of δ. Each element has vectors of
// its own, and what the steps give is collected once: the compiler then finds that filter and gradient are loops.
func (f *filtered) responses() []torch.Tensor {
	out := make([]torch.Tensor, f.s.sys.diffuse())
	for k := range out {
		out[k] = f.all(func(o seen) torch.Tensor { return o.response[k] })
	}
	return out
}

// leastPivot is the least square of a pivot of S beside the number on its diagonal: the rest is rounding.
const leastPivot = 1e-12

// start is δ̂, [..., q], and the Cholesky factor of S, [..., q, q]. They are NaN where the series does not determine δ.
func (f *filtered) start(v, inverse torch.Tensor, responses []torch.Tensor) (mean, factor torch.Tensor) {
	q := len(responses)
	s, right := make([]any, q*q), make([]any, q)
	for i, response := range responses {
		weighted := response.Mul(inverse)
		right[i] = weighted.Mul(v).Sum(-1, -2)
		for j := range i + 1 {
			s[i*q+j] = weighted.Mul(responses[j]).Sum(-1, -2)
			s[j*q+i] = s[i*q+j]
		}
	}
	square := torch.Stack(-1, s...).Reshape(append(slices.Clone(f.lead), q, q)...)
	factor = square.Cholesky()
	// Rounding makes a pivot that is 0 a small number of either sign. Only a negative one becomes NaN.
	determined := factor.Diag().Square().Gt(square.Diag().Mul(leastPivot))
	factor = factor.Add(torch.Choose(determined, 0, math.NaN()).Sum(-1).Unsqueeze(-1).Unsqueeze(-1))
	half := factor.SolveTriangular(torch.Stack(-1, right...).Unsqueeze(-1), false)
	return factor.Transpose().SolveTriangular(half, true).Squeeze(-1), factor
}

// Undetermined says why a series has no density: the numbers that are there do not determine its diffuse start. It is
// empty where they do.
func (s Series) Undetermined(value torch.Tensor) string {
	q := s.sys.diffuse()
	if q == 0 {
		return ""
	}
	f := s.filter(value)
	v, inverse := f.all(func(o seen) torch.Tensor { return o.v }), f.all(func(o seen) torch.Tensor { return o.inverse })
	_, factor := f.start(v, inverse, f.responses())
	if there := f.mask.Sum().Item(); math.IsNaN(factor.Sum().Item()) {
		return fmt.Sprintf("the flat start of %d states (Diffuse) is not determined by the %g numbers that are there, as "+
			"where a phase of a season is never observed: give that part a Spread in place of Diffuse", q, there)
	}
	return ""
}

// integrated are the errors of prediction at δ̂, [..., T, p], and what integration adds to the log density.
func (f *filtered) integrated(v, inverse torch.Tensor) (at, more torch.Tensor) {
	responses := f.responses()
	mean, factor := f.start(v, inverse, responses)
	for k, response := range responses {
		v = v.Sub(response.Mul(mean.Slice(-1, k, k+1).Unsqueeze(-1)))
	}
	return v, factor.Diag().Log().Sum(-1).Neg().Add(float64(len(responses)) / 2 * math.Log(2*math.Pi))
}

// posterior is δ̂ and a root of the covariance S⁻¹ of δ.
func (f *filtered) posterior() (mean, root torch.Tensor) {
	v, inverse := f.all(func(o seen) torch.Tensor { return o.v }), f.all(func(o seen) torch.Tensor { return o.inverse })
	mean, factor := f.start(v, inverse, f.responses())
	identity := spread(eye(f.s.sys.diffuse()), f.lead, factor.Shape()[len(f.lead):])
	return mean, factor.SolveTriangular(identity, false).Transpose()
}

// settle moves all means to δ̂, and all responses to those in standard normal numbers that have the covariance of δ.
func (f *filtered) settle() {
	if f.s.sys.diffuse() == 0 {
		return
	}
	mean, root := f.posterior()
	// move is the change of something with these responses.
	move := func(responses []torch.Tensor) torch.Tensor {
		columns := matrix(responses)
		rotated := columns.MatMul(root)
		for k := range responses {
			responses[k] = rotated.Slice(-1, k, k+1).Squeeze(-1)
		}
		return rowTimes(columns, mean)
	}
	for t := range f.steps {
		n := &f.steps[t]
		n.a, n.after = n.a.Add(move(n.response)), n.after.Add(move(n.responseAfter))
		for i := range n.seen {
			o := &n.seen[i]
			row := matrix(o.response)
			moved := row.Mul(mean).Sum(-1)
			o.mean, o.v = o.mean.Add(moved), o.v.Sub(moved)
			rotated := timesColumns(row, root)
			for k := range o.response {
				o.response[k] = rotated.Slice(-1, k, k+1).Squeeze(-1)
			}
		}
	}
}

// matrix has the columns x.
func matrix(x []torch.Tensor) torch.Tensor { return torch.Stack(-1, anys(x)...) }

// squared is x xᵀ.
func squared(x torch.Tensor) torch.Tensor { return x.MatMul(x.Transpose()) }
