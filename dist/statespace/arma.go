package statespace

import (
	"github.com/kelvin-ppl/kelvin/torch"
)

// ARMA is a stationary series of mean 0 with p coefficients AR and q coefficients MA:
//
//	x_t = AR_1 x_{t−1} + … + AR_p x_{t−p} + e_t + MA_1 e_{t−1} + … + MA_q e_{t−q},  e_t ~ N(0, Scale²)
//
// Its likelihood is exact: the first states have their stationary distribution. Its m = max(p, q + 1) states are
// those of Harvey (1989, section 3.3); the first is x_t. Where AR is not stationary the log density is not
// finite; [Stationary] makes coefficients that are.
type ARMA struct {
	AR, MA torch.Tensor // of shape [p] and [q]; the zero value is no coefficients
	Scale  any          // standard deviation of e; nil is 1
}

// System is the series as a system.
func (c ARMA) System() System {
	ar, p := coefficients("ARMA.AR", c.AR)
	ma, q := coefficients("ARMA.MA", c.MA)
	m := max(p, q+1)
	padded := func(x []any, n int) torch.Tensor {
		for len(x) < n {
			x = append(x, 0.0)
		}
		return torch.Stack(0, x...)
	}
	first := padded(ar, m).Unsqueeze(-1)
	transition := first
	if m > 1 {
		shift := make([]float64, m*(m-1))
		for i := range m - 1 {
			shift[i*(m-1)+i] = 1
		}
		transition = torch.Cat(-1, first, constant(shift, m, m-1))
	}
	noise := padded(append([]any{1.0}, ma...), m).Mul(scale("ARMA.Scale", c.Scale, 1)).Unsqueeze(-1)
	start := stationary(transition, noise)
	return System{Design: unit(m), Transition: transition, Noise: noise, Spread: start.w, weights: start.l}
}

// coefficients are the elements of a vector.
func coefficients(what string, x torch.Tensor) ([]any, int) {
	if n, ok := x.Number(); ok {
		if n != 0 {
			fail(what, "a number", "it must be a vector of coefficients")
		}
		return nil, 0
	}
	shape := x.Shape()
	if len(shape) != 1 {
		fail(what, sized(shape), "it must be a vector of coefficients")
	}
	out := make([]any, shape[0])
	for i := range out {
		out[i] = x.At(i)
	}
	return out, len(out)
}

// doublings is how often [stationary] doubles the past that it has: to 2³⁰ steps.
const doublings = 30

// stationary is the covariance P = a P a' + g g' = Σ_k aᵏ g g' a'ᵏ, by doubling (Anderson and Moore 1979, Optimal
// Filtering, section 6.7), of factors, so that rounding cannot make it negative:
//
//	P ← P + b P b',  b ← b²,  from P = g g' and b = a
func stationary(a, g torch.Tensor) factored {
	columns := g.Shape()[1]
	p := factored{g, torch.Of(1).Expand(columns)}.square()
	for range doublings {
		p = factored{torch.Cat(-1, p.w, a.MatMul(p.w)), torch.Cat(-1, p.l, p.l)}.square()
		a = a.MatMul(a)
	}
	return p
}

// Stationary takes partial autocorrelations, a vector of numbers between −1 and 1, to the coefficients of a stationary
// autoregression, and is one to one (Monahan 1984, Biometrika 71, 403–404). Of a moving average −Stationary are the
// coefficients of one that is invertible.
//
//	φ_kk = r_k,  φ_ki = φ_{k−1,i} − r_k φ_{k−1,k−i}
func Stationary(partial torch.Tensor) torch.Tensor {
	r, n := coefficients("Stationary.partial", partial)
	if n == 0 {
		return partial
	}
	var phi []torch.Tensor
	for k := range n {
		rk := r[k].(torch.Tensor)
		next := make([]torch.Tensor, k+1)
		for i := range k {
			next[i] = phi[i].Sub(rk.Mul(phi[k-1-i]))
		}
		next[k] = rk
		phi = next
	}
	return torch.Stack(0, anys(phi)...)
}
