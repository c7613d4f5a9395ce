package statespace

import "github.com/kelvin-ppl/kelvin/torch"

// factored is a covariance of m states as w diag(l) wᵀ, with w of shape [..., m, k] and l of [..., k], none negative.
type factored struct{ w, l torch.Tensor }

// tiny keeps a division of 0 by 0 from being NaN. It changes no quotient whose divisor is a variance of double
// precision.
const tiny = 1e-290

// square is the same covariance with m columns: weighted modified Gram-Schmidt of the rows of w (Thornton 1976,
// Triangular covariance factorizations for Kalman filtering). Row j, freed from those before, is v, and
//
//	u = w diag(l) v / (v' diag(l) v),  w ← w − u v',  column j is u, of weight v' diag(l) v
//
// Row j of column j is 1, and rows before are 0, which are numbers of Go: a compiled filter leaves them out. A row that
// depends on those before gets a weight of 0.
func (f factored) square() factored {
	shape := f.w.Shape()
	n := len(shape)
	lead, m := shape[:n-2], shape[n-2]
	columns, weights := make([]torch.Tensor, m), make([]torch.Tensor, m)
	w := f.w
	for j := range m {
		v := w.Slice(-2, 0, 1)
		products := w.Mul(v.Mul(f.l.Unsqueeze(-2))).Sum(-1)
		weights[j] = products.Slice(-1, 0, 1)
		known := make([]float64, j+1)
		known[j] = 1
		column := spread(torch.New(known, j+1), lead, []int{j + 1})
		if j < m-1 {
			u := products.Slice(-1, 1, m-j).Div(weights[j].Add(tiny))
			w = w.Slice(-2, 1, m-j).Sub(u.Unsqueeze(-1).Mul(v))
			column = torch.Cat(-1, column, u)
		}
		columns[j] = column.Unsqueeze(-1)
	}
	return factored{torch.Cat(-1, columns), torch.Cat(-1, weights)}
}

// move is the covariance after a step: a P a' + g g'.
func (f factored) move(a, g torch.Tensor) factored {
	shape := f.w.Shape()
	lead := shape[:len(shape)-2]
	size := g.Shape()
	return factored{
		torch.Cat(-1, a.MatMul(f.w), spread(g, lead, size)),
		torch.Cat(-1, f.l, spread(torch.Of(1), lead, size[1:])),
	}.square()
}

// times is P x for vectors x of shape [..., m].
func (f factored) times(x torch.Tensor) torch.Tensor {
	return rowTimes(f.w, f.l.Mul(timesColumns(x, f.w)))
}

// dense is the covariance matrix.
func (f factored) dense() torch.Tensor {
	return f.w.MatMul(f.w.Mul(f.l.Unsqueeze(-2)).Transpose())
}

// rowTimes is a x, and timesColumns x' a, for a of shape [..., m, k].
func rowTimes(a, x torch.Tensor) torch.Tensor     { return a.Mul(x.Unsqueeze(-2)).Sum(-1) }
func timesColumns(x, a torch.Tensor) torch.Tensor { return a.Mul(x.Unsqueeze(-1)).Sum(-2) }

// spread is a tensor with these dimensions in front of its own.
func spread(x torch.Tensor, lead, own []int) torch.Tensor {
	shape := append(append([]int{}, lead...), own...)
	return x.Expand(shape...)
}
