package regression

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// informative is the ratio F of an analysis of variance above which the effects of a group are sampled themselves. With
// n rows a level, F - 1 estimates n τ²/σ², and the centred form is the better conditioned one where that is above 1
// (Papaspiliopoulos, Roberts and Sköld 2007, Statistical Science 22). Of few levels F tells little, and of a group with
// slopes nothing of these, of which data may say much less: there it must be well above.
func informative(levels float64, columns int) float64 {
	if columns == 1 && levels >= 10 {
		return 2
	}
	return 5
}

// informed are the groups of which data say much about each level: those whose levels differ far more in an outcome
// than rows of one level do, after the common columns are fitted by least squares.
// Rows have weights, which their variances are inverse to; nil is 1 for each.
func (p *predictor) informed(y, weights []float64) map[string]bool {
	out := map[string]bool{}
	groups := p.design.Groups()
	if len(groups) == 0 {
		return out
	}
	weights = orElse(weights, len(y), 1)
	y = p.residuals(y, weights)
	for i, d := range groups {
		if d.Members > 1 {
			continue
		}
		sums, counts := make([]float64, len(d.Levels)), make([]float64, len(d.Levels))
		square := 0.0
		for row, level := range p.rows.Groups[i].Index {
			sums[level] += weights[row] * y[row]
			counts[level] += weights[row]
			square += weights[row] * y[row] * y[row]
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
			between/(levels-1) > informative(levels, len(d.Columns))*within/free
	}
	return out
}

// residuals are those of a least-squares fit on the columns with weights, less the mean.
func (p *predictor) residuals(y, weights []float64) []float64 {
	n, k := len(y), len(p.means)
	mean := stat.Mean(y, weights)
	out := make([]float64, n)
	for i, v := range y {
		out[i] = v - mean
	}
	if k == 0 || k >= n {
		return out
	}
	x, z := mat.NewDense(n, k, nil), mat.NewVecDense(n, nil)
	for i := range n {
		root := math.Sqrt(weights[i])
		z.SetVec(i, root*out[i])
		for j := range k {
			x.Set(i, j, root*(p.rows.X[i*k+j]-p.means[j]))
		}
	}
	var b mat.VecDense
	if b.SolveVec(x, z) != nil {
		return out
	}
	for i := range out {
		for j := range k {
			out[i] -= b.AtVec(j) * (p.rows.X[i*k+j] - p.means[j])
		}
	}
	return out
}
