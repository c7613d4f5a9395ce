package regression

import (
	"gonum.org/v1/gonum/mat"
)

// informative is the ratio F of an analysis of variance above which the effects of a group are sampled themselves. With
// n rows a level, F - 1 estimates n τ²/σ², and the centred form is the better conditioned one where that is well above
// 1 (Papaspiliopoulos, Roberts and Sköld 2007, Statistical Science 22).
const informative = 5

// informed are the groups of which data say much about each level: those whose levels differ far more in an outcome
// than rows of one level do, after the common columns are fitted by least squares.
func (p *predictor) informed(y []float64) map[string]bool {
	out := map[string]bool{}
	groups := p.design.Groups()
	if len(groups) == 0 {
		return out
	}
	y = p.residuals(y)
	for i, d := range groups {
		if d.Members > 1 {
			continue
		}
		sums, counts := make([]float64, len(d.Levels)), make([]float64, len(d.Levels))
		square := 0.0
		for row, level := range p.rows.Groups[i].Index {
			sums[level] += y[row]
			counts[level]++
			square += y[row] * y[row]
		}
		between, levels := 0.0, 0.0
		for level, n := range counts {
			if n > 0 {
				between += sums[level] * sums[level] / n
				levels++
			}
		}
		within := square - between
		free := float64(len(y)) - levels - float64(len(p.means))
		enough := float64(len(y)) >= levels*float64(len(d.Columns)+1)
		out[d.Name] = enough && levels > 1 && free > 0 && within > 0 &&
			between/(levels-1) > informative*within/free
	}
	return out
}

// residuals are those of a least-squares fit on the columns, less the mean.
func (p *predictor) residuals(y []float64) []float64 {
	n, k := len(y), len(p.means)
	mean, _ := moments(y, 0, 1)
	out := make([]float64, n)
	for i, v := range y {
		out[i] = v - mean
	}
	if k == 0 || k >= n {
		return out
	}
	x := mat.NewDense(n, k, nil)
	for i := range n {
		for j := range k {
			x.Set(i, j, p.rows.X[i*k+j]-p.means[j])
		}
	}
	var b mat.VecDense
	if b.SolveVec(x, mat.NewVecDense(n, out)) != nil {
		return out
	}
	var fitted mat.VecDense
	fitted.MulVec(x, &b)
	for i := range out {
		out[i] -= fitted.AtVec(i)
	}
	return out
}
