package curvature

import (
	"fmt"
	"math"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/sugarme/gotch/ts"
)

// GGNFactor returns a factor A of the Gauss-Newton matrix, AᵀA = Σ_i J_iᵀ H_i J_i, of shape [m, d] with m at most 2d.
// Its rows are √λ_ik J_iᵀ u_ik, with the eigenvalues and eigenvectors of H_i, or where there are more than 2d of them
// those of their QR decompositions. The matrix itself has the square of the condition number of A, which rounding may
// not leave positive. A density that is not log-concave in z has no such factor: an error that wraps [ErrIndefinite].
func GGNFactor(f Forward, outer Outer, p infer.Params, b infer.Batch, o Options) (*ts.Tensor, error) {
	return solveOne("GGNFactor", p, b, o, func(q *problem) (*ts.Tensor, error) {
		if err := q.overData("forward function or the outer density", f != nil && outer != nil); err != nil {
			return nil, err
		}
		c, err := q.outputs(f)
		if err != nil {
			return nil, err
		}
		most := int64(min(float64(q.n)*float64(c), 2*float64(q.d)))
		if err := q.need(fmt.Sprintf("a factor of shape [%d, %d]", most, q.d), float64(most)*float64(q.d),
			dense("GGNDiag")); err != nil {
			return nil, err
		}
		a, count := q.zeros(most, q.d), int64(0)
		err = q.factors(f, outer, float64(most)*float64(q.d), func(rows int64, signs, g *ts.Tensor) {
			if signs != nil {
				fail("log p(y|z) is not concave in the outputs z: the second derivative is %w", ErrIndefinite)
			}
			if count+rows > most {
				_, g = ts.MustLinalgQr(ts.MustCat([]*ts.Tensor{a.MustNarrow(0, 0, count, false), g}, 0), "r")
				count, rows = 0, g.MustSize()[0]
			}
			a.MustNarrow(0, count, rows, false).Copy_(g)
			count += rows
		})
		if err != nil {
			return nil, err
		}
		if q.normalize {
			a.MustDivScalar_(ts.FloatScalar(math.Sqrt(float64(q.n))))
		}
		return own(a.MustNarrow(0, 0, count, false)), finite("the factor of the Gauss-Newton matrix", a)
	})
}
