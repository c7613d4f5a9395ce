package loo

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/draws"
)

// errNoConvergence is wrapped by the error of weights that did not reach their tolerance.
var errNoConvergence = errors.New("no convergence")

// stackingWeights are the weights of K models that maximise the score of their mixture over n observations,
//
//	f(w) = (1/n) Σ log Σ w(k) exp(lpd(k,i)),  w >= 0, Σ w = 1
//
// lpd is [model][observation], leave-one-out log predictive densities. Yao, Vehtari, Simpson and Gelman (2018),
// Bayesian Analysis 13, 917-1007.
//
// f is concave. It is maximised by Newton's method with a logarithmic barrier, whose weight μ falls to 1e-13. With g(k)
// = df/dw(k), no weights do better than f(w) + max g - 1, since f is concave and Σ w g = 1; the weights are returned
// once that gap is below 1e-9. Models that predict alike share their weight equally.
//
// The errors are [draws.ErrSize], [diag.ErrNotFinite], and errNoConvergence with the gap that was reached.
func stackingWeights(lpd [][]float64) ([]float64, error) {
	if err := checkModels("stacking", lpd); err != nil {
		return nil, err
	}
	s := newStacking(lpd)
	k := len(lpd)
	w := make([]float64, k)
	for j := range w {
		w[j] = 1 / float64(k)
	}
	for mu := 1e-2; ; mu *= 0.1 {
		s.centre(w, mu)
		if mu < 2e-13 {
			break
		}
	}
	sum := 0.0
	for _, v := range w {
		sum += v
	}
	for j := range w {
		w[j] /= sum
	}
	if gap := s.gap(w); !(gap < 1e-9) {
		return nil, failf(errNoConvergence, "stacking: the score is within %.2g of the best, want 1e-9", gap)
	}
	return w, nil
}

// checkModels checks log predictive densities, [model][observation].
func checkModels(doing string, lpd [][]float64) error {
	if len(lpd) == 0 || len(lpd[0]) == 0 {
		return failf(draws.ErrSize, "%s: at least one model with at least one observation is needed", doing)
	}
	for k, row := range lpd {
		if len(row) != len(lpd[0]) {
			return failf(draws.ErrSize, "%s: model %d has %d observations, want %d as model 0", doing, k, len(row),
				len(lpd[0]))
		}
		for i, v := range row {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return failf(diag.ErrNotFinite, "%s: model %d, observation %d: log predictive density is %v", doing, k,
					i, v)
			}
		}
	}
	return nil
}

// stacking holds the densities, for each observation relative to the best model, [model][observation].
type stacking struct {
	density [][]float64
	ratio   [][]float64 // density over that of the mixture
	slope   []float64   // g
}

func newStacking(lpd [][]float64) *stacking {
	s := &stacking{slope: make([]float64, len(lpd))}
	n := len(lpd[0])
	for range lpd {
		s.density, s.ratio = append(s.density, make([]float64, n)), append(s.ratio, make([]float64, n))
	}
	for i := range n {
		best := math.Inf(-1)
		for _, row := range lpd {
			best = max(best, row[i])
		}
		for k, row := range lpd {
			s.density[k][i] = math.Exp(row[i] - best)
		}
	}
	return s
}

// evaluate is f at w, up to a constant; it leaves the ratios and the slopes in s.
func (s *stacking) evaluate(w []float64) float64 {
	n := len(s.density[0])
	clear(s.slope)
	f := 0.0
	for i := range n {
		mixture := 0.0
		for k, v := range w {
			mixture += v * s.density[k][i]
		}
		f += math.Log(mixture) / float64(n)
		for k := range w {
			s.ratio[k][i] = s.density[k][i] / mixture
			s.slope[k] += s.ratio[k][i] / float64(n)
		}
	}
	return f
}

// gap bounds how much better than w other weights can score.
func (s *stacking) gap(w []float64) float64 {
	s.evaluate(w)
	steepest := math.Inf(-1)
	for _, g := range s.slope {
		steepest = max(steepest, g)
	}
	return steepest - 1
}

// centre moves w > 0 to the minimum of Σ w - f(w) - μ Σ log w by Newton's method. The sum takes the place of the
// constraint: without the barrier its minimum has Σ w = 1, since f(c w) = f(w) + log c. Steps are taken in units of w,
// in which the Hessian W H W + μ is well conditioned however small a weight is.
func (s *stacking) centre(w []float64, mu float64) {
	k, n := len(w), len(s.density[0])
	objective := func(w []float64) float64 {
		v := -s.evaluate(w)
		for _, x := range w {
			v += x - mu*math.Log(x)
		}
		return v
	}
	hessian, slope := mat.NewSymDense(k, nil), mat.NewVecDense(k, nil)
	var chol mat.Cholesky
	var step mat.VecDense
	trial := make([]float64, k)
	move := func(t float64) {
		for a := range k {
			trial[a] = w[a] * (1 - t*step.AtVec(a))
		}
	}
	for range 50 {
		before := objective(w)
		for a := range k {
			slope.SetVec(a, w[a]*(1-s.slope[a])-mu)
			for b := range a + 1 {
				h := 0.0
				for i := range n {
					h += s.ratio[a][i] * s.ratio[b][i]
				}
				h *= w[a] * w[b] / float64(n)
				if a == b {
					h += mu
				}
				hessian.SetSym(a, b, h)
			}
		}
		if !chol.Factorize(hessian) || chol.SolveVecTo(&step, slope) != nil {
			return // the gap will tell
		}
		decrement, longest := mat.Dot(&step, slope), 0.0
		for a := range k {
			longest = max(longest, step.AtVec(a))
		}
		if decrement < 1e-6*mu {
			return
		}
		// The objective times 1/min(μ, 1/n) is self-concordant, so that this step lowers it, also where the difference
		// is too small to be seen.
		t := 1 / (1 + math.Sqrt(decrement/min(mu, 1/float64(n))))
		if decrement > 1e-13 {
			t = min(1, 0.95/max(longest, 1e-300)) // stay positive
			for ; t > 1e-12; t /= 2 {
				move(t)
				if objective(trial) <= before-1e-4*t*decrement {
					break
				}
			}
		}
		move(t)
		copy(w, trial)
	}
}
