package models_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"
)

// recurs compares the means of PSGLD with those of its recursion, from the same starts and as long, written here for
// plain slices and with noise of its own: within four standard errors of the difference.
//
// They are not compared with those of NUTS. PSGLD omits the drift of a preconditioner that changes, so that its law is
// another one, however small the step. For one element, or independent ones, that would be p·|g| if the preconditioner
// followed the gradient g at once. Elements that depend on one another have no such form: the sigma of salmonella is
// 1.1 standard deviations too low, where p·|g| has it 0.1 too high.
func (r *reference) recurs(t *testing.T, o infer.Options, mean, se []float64) {
	t.Helper()
	const decay, eps = 0.99, 1e-5 // the defaults
	step := r.preconditionedStep()
	random := rand.New(rand.NewPCG(3, 1))
	points := must(r.last.Values())
	d := len(mean)
	square, sums := make([]float64, len(points)), make([]float64, len(points))
	for u := range o.Warmup + o.Draws*o.Thin {
		for i, g := range r.gradients(t, 1, append([]float64(nil), points...)) {
			square[i] = decay*square[i] + (1-decay)*g*g
			scale := step / (eps + math.Sqrt(square[i]))
			points[i] += scale*g + math.Sqrt(2*scale/r.n)*random.NormFloat64()
			if u >= o.Warmup {
				sums[i] += points[i] / float64(o.Draws*o.Thin)
			}
		}
	}
	for j := range d {
		var means []float64
		for i := j; i < len(sums); i += d {
			means = append(means, sums[i])
		}
		m, sd := stat.MeanStdDev(means, nil)
		assert.InDelta(t, m, mean[j], 4*math.Hypot(se[j], sd/math.Sqrt(float64(len(means)))), "%s: NUTS %.3f, sd %.3f",
			r.program.Layout().At(j), r.mean[j], r.sd[j])
	}
}
