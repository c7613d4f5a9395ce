package draws

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/internal/sample"
)

// Covariance is the covariance matrix of the flat vector over the draws of all chains, Dim x Dim, about the pooled mean
// and with divisor n-1:
//
//	C = sum((x - mean) (x - mean)^T) / (n - 1)
//
// An element that is not finite in some draw has NaN in its row and column, and with a single draw all is NaN. The
// matrix needs Dim^2 numbers. An [ErrNoDraws] and, if Dim is 0, an [ErrLayout] are the errors.
func (d *Draws) Covariance() (*mat.SymDense, error) {
	n := d.Total()
	switch {
	case d.dim == 0:
		return nil, failf(ErrLayout, "covariance: a draw has no elements")
	case n == 0:
		return nil, failf(ErrNoDraws, "covariance: there are no draws")
	}
	cov := mat.NewSymDense(d.dim, nil)
	mean, bad := make([]float64, d.dim), make([]bool, d.dim)
	d.eachElement(0, d.dim, func(i int, trace []float64) {
		var sd float64
		mean[i], sd = sample.Moments(trace)
		bad[i] = math.IsNaN(sd)
	})

	const most = 256 // rows of one matrix product
	block := make([]float64, 0, min(n, most)*d.dim)
	add := func() {
		if rows := len(block) / d.dim; rows > 0 {
			cov.SymRankK(cov, 1/float64(n-1), mat.NewDense(rows, d.dim, block).T())
		}
		block = block[:0]
	}
	for c := range d.chains {
		for i := range d.chains[c].n {
			for j, v := range d.Row(c, i) {
				block = append(block, v-mean[j])
			}
			if len(block) == most*d.dim {
				add()
			}
		}
	}
	add()

	for i, isBad := range bad {
		if isBad { // a product may have skipped zeros, so NaN would not reach everywhere
			for j := range d.dim {
				cov.SetSym(i, j, math.NaN())
			}
		}
	}
	return cov, nil
}
