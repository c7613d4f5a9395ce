package serve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kelvin-ppl/kelvin/infer/native/portable"
	"github.com/kelvin-ppl/kelvin/internal/sample"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// walk moves the particles of an update.
type walk struct {
	u           *Online
	c           *cloud
	temperature float64
	old         *cloud
	newData     map[string][]float64
	fresh       *portable.Predictor // for the new rows
	past        []block             // those before
	added       []float64           // log likelihood of the new rows
	rng         *rand.Rand
}

// block is some rows.
type block struct {
	of   *portable.Predictor
	data map[string][]float64
}

// blockRows bounds the memory of a block.
const blockRows = 4096

// blocks are the rows of a cloud.
func (u *Online) blocks(c *cloud) (out []block, err error) {
	var whole *portable.Predictor // for blockRows
	for from := 0; from < c.rows; from += blockRows {
		n := min(blockRows, c.rows-from)
		q := whole
		if q == nil || n < blockRows {
			if q, err = u.model.file.Likelihood.At(n, evenly); err != nil {
				return nil, err
			}
		}
		if n == blockRows {
			whole = q
		}
		some := map[string][]float64{}
		for name, v := range c.data {
			size := len(v) / c.rows
			some[name] = v[from*size : (from+n)*size]
		}
		out = append(out, block{q, some})
	}
	return out, nil
}

const (
	// remembered is the correlation of particles with where they were, below which they have moved enough.
	remembered = 0.1
	// goodAccept is the acceptance that the length of steps is adapted to.
	goodAccept = 0.4
	// mostBeta is the longest step: with longer ones particles in a tail that is heavier than a normal one would stay
	// there.
	mostBeta = 0.7
)

// normal is a normal law.
type normal struct {
	mean   []float64
	factor *mat.TriDense // of the covariance
}

// move draws particles by their weights, and moves them by the preconditioned Crank-Nicolson proposal (Cotter, Roberts,
// Stuart and White 2013): with m and L Lᵀ the mean and the covariance of the particles and z normal,
//
//	x' = m + √(1-β²) (x-m) + β L z
//
// which leaves N(m, L Lᵀ) as it is, so that in any dimension it is rejected for what the posterior differs from that.
// The mean and the covariance are those of the other half of the particles: of its own would depend on where a particle
// is, and heavy tails would be emptied. A proposal has the correlation √(1-β²) with x, and a rejected one 1: steps end
// where the product of the means is small. To end where the particles themselves are far from where they were would
// choose among their paths.
func (w *walk) move(ctx context.Context) (err error) {
	weights := sample.Softmax(w.c.weights)
	var laws [2]normal // of the other half, by the half of a particle
	for side := range laws {
		of := slices.Clone(weights)
		for k := side; k < len(of); k += 2 {
			of[k] = 0
		}
		if floats.Sum(of) == 0 {
			return fmt.Errorf("few draws make the rows possible: %w", errFar)
		}
		laws[side] = spread(w.c.points, of)
	}
	of := chosen(laws[:], w.resample())
	if w.past == nil {
		if w.past, err = w.u.blocks(w.old); err != nil {
			return err
		}
	}
	whitened := make([][]float64, len(w.c.points)) // L⁻¹ (x-m)
	for k, x := range w.c.points {
		v := mat.NewVecDense(len(x), floats.SubTo(make([]float64, len(x)), x, of[k].mean))
		if err := v.SolveVec(of[k].factor, v); err != nil {
			return err
		}
		whitened[k] = v.RawVector().Data
	}
	correlation, beta := 1.0, 0.5
	for range 50 + 8*w.u.model.Dim() {
		if err := ctx.Err(); err != nil {
			return err
		}
		accepted, err := w.sweep(of, whitened, beta)
		if err != nil {
			return err
		}
		correlation *= 1 - accepted*(1-math.Sqrt(1-beta*beta))
		if beta = math.Min(beta*math.Exp(accepted-goodAccept), mostBeta); correlation < remembered {
			return nil
		}
	}
	return fmt.Errorf("particles keep a correlation of %.2g with where they were: %w", correlation, errFar)
}

// spread is the normal law with the mean and the covariance of weighted points.
func spread(points [][]float64, weights []float64) normal {
	d, total := len(points[0]), floats.Sum(weights)
	x, mean := mat.NewDense(len(points), d, nil), make([]float64, d)
	for k, p := range points {
		x.SetRow(k, p)
		floats.AddScaled(mean, weights[k]/total, p)
	}
	cov := mat.NewSymDense(d, nil)
	stat.CovarianceMatrix(cov, x, times(weights, float64(len(weights))/total))
	for j := range d {
		cov.SetSym(j, j, math.Max(cov.At(j, j), 1e-300)*(1+1e-9))
	}
	var chol mat.Cholesky
	factor := mat.NewTriDense(d, mat.Lower, nil)
	if chol.Factorize(cov) {
		chol.LTo(factor)
		return normal{mean, factor}
	}
	for j := range d { // draws that lie in a plane
		factor.SetTri(j, j, math.Sqrt(cov.At(j, j)))
	}
	return normal{mean, factor}
}

func times(x []float64, by float64) []float64 { return floats.ScaleTo(make([]float64, len(x)), by, x) }

// resample draws particles by their weights, all of which are equal then. It gives the half of each.
func (w *walk) resample() (half []int) {
	c := w.c
	index := sample.Systematic(sample.Softmax(c.weights), len(c.points), w.rng.Float64())
	c.points, c.named = chosen(c.points, index), chosen(c.named, index)
	c.density, c.likelihood, w.added = chosen(c.density, index), chosen(c.likelihood, index), chosen(w.added, index)
	c.weights = make([]float64, len(c.points))
	for k := range index {
		index[k] %= 2
	}
	return index
}

func chosen[T any](all []T, index []int) []T {
	out := make([]T, len(index))
	for i, k := range index {
		out[i] = all[k]
	}
	return out
}

// sweep proposes a step of each particle, and takes it by the rule of Metropolis. It gives the share of steps that were
// taken.
func (w *walk) sweep(of []normal, whitened [][]float64, beta float64) (accepted float64, err error) {
	c := w.c
	d, keep := w.u.model.Dim(), math.Sqrt(1-beta*beta)
	next, white := make([][]float64, len(c.points)), make([][]float64, len(c.points))
	for k, u := range whitened {
		white[k] = make([]float64, d)
		for j := range d {
			white[k][j] = keep*u[j] + beta*w.rng.NormFloat64()
		}
		to := mat.NewVecDense(d, nil)
		to.MulVec(of[k].factor, mat.NewVecDense(d, white[k]))
		next[k] = to.RawVector().Data
		floats.Add(next[k], of[k].mean)
	}
	named, density, err := w.u.at(next)
	if err != nil {
		return 0, err
	}
	past := make([]float64, len(next))
	for _, b := range w.past {
		some, err := w.u.likelihood(b.of, b.data, named)
		if err != nil {
			return 0, err
		}
		floats.Add(past, some)
	}
	added, err := w.u.likelihood(w.fresh, w.newData, named)
	if err != nil {
		return 0, err
	}
	for k := range next {
		gain := density[k] - c.density[k] + past[k] - c.likelihood[k] + w.temperature*(added[k]-w.added[k]) +
			(floats.Dot(white[k], white[k])-floats.Dot(whitened[k], whitened[k]))/2
		if -w.rng.ExpFloat64() < gain { // never for NaN
			accepted++
			c.points[k], c.named[k], whitened[k] = next[k], named[k], white[k]
			c.density[k], c.likelihood[k], w.added[k] = density[k], past[k], added[k]
		}
	}
	return accepted / float64(len(next)), nil
}
