package statespace

import (
	"math"

	"github.com/kelvin-ppl/kelvin/torch"
)

// ARMA is a stationary series of mean 0 with p coefficients AR and q coefficients MA:
//
//	x_t = AR_1 x_{t−1} + … + AR_p x_{t−p} + e_t + MA_1 e_{t−1} + … + MA_q e_{t−q},  e_t ~ N(0, Scale²)
//
// Its likelihood is exact: the first states have their stationary distribution. Its m = max(p, q + 1) states are
// those of Harvey (1989, section 3.3); the first is x_t. Where AR is not stationary, or so close to the edge that
// rounding would move the log density by 1e-9, the log density is NaN; [Stationary] makes coefficients that are
// stationary.
type ARMA struct {
	AR, MA torch.Tensor // of shape [p] and [q]; the zero value is no coefficients
	Scale  any          // standard deviation of e; nil is 1
}

// System is the series as a system.
func (c ARMA) System() System {
	ar, p := coefficients("ARMA.AR", c.AR)
	ma, q := coefficients("ARMA.MA", c.MA)
	m := max(p, q+1)
	phi, theta := padded(ar, m), padded(append([]any{1.0}, ma...), m)
	transition := torch.Stack(0, anys(phi)...).Unsqueeze(-1)
	if m > 1 {
		shift := make([]float64, m*(m-1))
		for i := range m - 1 {
			shift[i*(m-1)+i] = 1
		}
		transition = torch.Cat(-1, transition, torch.New(shift, m, m-1))
	}
	deviation := scale("ARMA.Scale", c.Scale, 1)
	lags := autoregression(phi[:p], m)
	return System{
		Design: unit(m), Transition: transition, Noise: torch.Stack(0, anys(theta)...).Mul(deviation).Unsqueeze(-1),
		Spread: fromLags(phi, theta).MatMul(lags.w), weights: lags.l.Mul(deviation.Square()),
	}
}

// padded are coefficients with zeros behind them, n in all.
func padded(x []any, n int) []torch.Tensor {
	out := make([]torch.Tensor, n)
	for i := range out {
		if out[i] = torch.Of(0); i < len(x) {
			out[i] = torch.Of(x[i])
		}
	}
	return out
}

// fromLags are the states of the series as combinations of the lags u_t … u_{t−m+1} of the autoregression u whose
// moving average it is, x_t = u_t + θ_1 u_{t−1} + …. Both have the same transitions, which gives column after column,
// with θ_0 = 1:
//
//	M_i1 = θ_{i−1},  M_i,k+1 = M_i+1,k + φ_i θ_{k−1} − φ_k θ_{i−1}
func fromLags(phi, theta []torch.Tensor) torch.Tensor {
	m := len(phi)
	columns := make([]torch.Tensor, m)
	now := theta
	for k := range m {
		columns[k] = torch.Stack(0, anys(now)...)
		next := make([]torch.Tensor, m)
		for i := range m {
			next[i] = phi[i].Mul(theta[k]).Sub(phi[k].Mul(theta[i]))
			if i < m-1 {
				next[i] = next[i].Add(now[i+1])
			}
		}
		now = next
	}
	return torch.Stack(-1, anys(columns)...)
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

// mostRounding is the greatest relative error by rounding that the variances of a start may have.
const mostRounding = 1e-9

// autoregression is the covariance of m successive numbers of a stationary autoregression with errors of variance 1,
// the latest first. The recursion of Levinson and Durbin is run backwards, from the coefficients φ_p to the partial
// autocorrelations r_k = φ_kk (Brockwell and Davis 1991, section 5.2):
//
//	φ_{k−1,i} = (φ_ki + r_k φ_k,k−i)/(1 − r_k²)
//
// Given the k numbers after it, a number has the mean Σ_i φ_ki x_{t−k+i} and the variance Π_{j>k} 1/(1 − r_j²). With
// A(z) = 1 − Σ φ_i zⁱ, Π_k (1 − r_k) is A(1) and Π_k (1 − (−1)ᵏ r_k) is A(−1): they give 1 − r_1² without the
// cancellation of roots close to 1 and −1. The weights are NaN where some r_k is not between −1 and 1, or where the
// bound of the rounding errors of all 1 − r_k² reaches mostRounding.
func autoregression(phi []torch.Tensor, m int) factored {
	p := len(phi)
	below, weights := make([][]torch.Tensor, m), make([]any, m) // φ_k and the variance of each number
	for k := p; k < m; k++ {
		below[k], weights[k] = phi, 1.0
	}
	weight, rounding, edge := torch.Of(1), torch.Of(0), torch.Of(0)
	product := alternating(phi, 1).Mul(alternating(phi, -1))
	errors := padded(nil, p)
	for k := p; k > 0; k-- {
		r := phi[k-1]
		left := r.Neg().Add(1).Mul(r.Add(1))
		if k == 1 {
			left = product
		} else {
			rounding = rounding.Add(errors[k-1].Div(left))
			phi, errors = levinson(phi, errors, left)
			product = product.Div(r.Neg().Add(1)).Div(r.Mul(float64(2*(k%2) - 1)).Add(1))
		}
		edge = edge.Add(torch.Choose(left.Gt(0), 0, math.NaN()))
		weight = weight.Div(left)
		below[k-1], weights[k-1] = phi[:k-1], weight
	}
	edge = edge.Add(torch.Choose(rounding.Lt(mostRounding/4), 0, math.NaN()))
	return factored{combinations(below), torch.Stack(0, weights...).Add(edge)}
}

// levinson are φ_{k−1} from φ_k, left = 1 − r_k² and the bounds of the rounding errors of φ_k, with those of φ_{k−1}.
func levinson(phi, errors []torch.Tensor, left torch.Tensor) (below, rounding []torch.Tensor) {
	k := len(phi) - 1
	r, off := phi[k], errors[k]
	below, rounding = make([]torch.Tensor, k), make([]torch.Tensor, k)
	for i := range k {
		mirror := phi[k-1-i]
		below[i] = phi[i].Add(r.Mul(mirror)).Div(left)
		moved := errors[i].Add(r.Abs().Mul(errors[k-1-i])).Add(mirror.Abs().Mul(off))
		own := phi[i].Abs().Add(r.Mul(mirror).Abs().Mul(2)).Mul(0x1p-53)
		relative := r.Abs().Mul(off).Mul(2).Div(left).Add(0x1p-51)
		rounding[i] = moved.Add(own).Div(left).Add(below[i].Abs().Mul(relative))
	}
	return below, rounding
}

// combinations is the matrix of numbers in their own errors, of which row k has the coefficients φ_k of those before:
// row_k = e_k + Σ_i φ_ki row_{k−i}.
func combinations(phi [][]torch.Tensor) torch.Tensor {
	m := len(phi)
	identity := eye(m)
	rows := make([]torch.Tensor, m)
	for k := range rows {
		rows[k] = identity.At(k)
		for i, c := range phi[k] {
			rows[k] = rows[k].Add(c.Mul(rows[k-1-i]))
		}
	}
	return torch.Stack(0, anys(rows)...)
}

// alternating is 1 − Σ φ_i signⁱ, with the rounding errors of the sum added to it (Knuth's two-sum).
func alternating(phi []torch.Tensor, sign float64) torch.Tensor {
	sum, lost, factor := torch.Of(1), torch.Of(0), -1.0
	for _, x := range phi {
		factor *= sign
		x = x.Mul(factor)
		next := sum.Add(x)
		part := next.Sub(sum)
		lost = lost.Add(sum.Sub(next.Sub(part))).Add(x.Sub(part))
		sum = next
	}
	return sum.Add(lost)
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
