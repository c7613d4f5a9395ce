package models_test

import (
	"math"
	"slices"
	"testing"

	"github.com/kelvin-ppl/kelvin/diag"
	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// atRest is the norm of the gradient of the mean log density at a mode; at the starts it is 0.2 to 300.
const atRest = 1e-4

// Limits beyond which a fit has a note, by its importance weights: standard deviations that a mean is off, and the
// factor on a standard deviation (docs/vi.md).
const (
	meanLimit = 0.3
	sdLimit   = 1.2
)

// weightsSE is the relative standard error of a standard deviation by importance weights: 1/√n for the n = 400
// effective of 2000 draws that are left where four of them are that limit.
const weightsSE = 0.05

// severalModes are models whose posterior has modes that a Gaussian at another cannot see.
var severalModes = map[string]bool{"mixture": true, "hidden_markov": true}

// samples compares the means of a sampler with those of NUTS: within four standard errors, and the bias of the step.
func (w row) samples(t *testing.T, r *reference, result *infer.Result, o infer.Options, mean, se []float64) {
	t.Helper()
	if r.model.Modeless { // no step is small enough in the funnel's neck
		report, err := diag.Diagnose(result.Draws, diag.DiagnoseOptions{})
		require.NoError(t, err)
		assert.False(t, report.OK())
		return
	}
	if w.name == preconditioned {
		r.recurs(t, o, mean, se)
		return
	}
	bias := w.bias(r)
	for j := range mean {
		off := math.Abs(mean[j]-r.mean[j]) / r.sd[j]
		errors := 4 * math.Hypot(se[j], r.se[j]) / r.sd[j]
		assert.LessOrEqual(t, off, errors+bias, "%s: %.3f, NUTS %.3f, sd %.3f", r.program.Layout().At(j), mean[j],
			r.mean[j], r.sd[j])
	}
}

// approaches says that the means of draws are those of NUTS within errors and the limit beyond which fits have a note.
func (w row) approaches(t *testing.T, r *reference, result *infer.Result, mean, se []float64) {
	t.Helper()
	off, at := 0.0, 0
	for j := range mean {
		if v := (math.Abs(mean[j]-r.mean[j]) - 4*math.Hypot(se[j], r.se[j])) / r.sd[j]; v > off {
			off, at = v, j
		}
	}
	notes := result.Draws.Notes()
	t.Logf("beyond errors: mean off by %.2f sd (%s); notes: %v", off, r.program.Layout().At(at), notes)
	if len(notes) == 0 && !r.model.Modeless {
		assert.LessOrEqual(t, off, meanLimit)
	}
}

// bias is how far the law of a sampler may be off, in standard deviations of the posterior.
//
// A step inflates variances, like a temperature, by up to 0.054 in the stiffest direction: 1/(1 − ελ/2) for SGLD, about
// 1 + ελ/α for SGHMC and SGNHT, less for the others (docs/sgmcmc.md). To first order the distance from the mode to the
// mean is proportional to the temperature. Twice that is allowed for what is not of first order, of the largest
// distance of any element, because directions are not elements.
func (w row) bias(r *reference) float64 {
	if w.kind == exact {
		return 0
	}
	most := 0.0
	for j := range r.mean {
		most = max(most, math.Abs(r.mean[j]-r.mode[j])/r.sd[j])
	}
	return 2 * 0.054 * most
}

// climbs says that an optimiser ends higher than it began: at the mode of the density without Jacobian where it must be
// there, else within the tenth of a posterior standard deviation beyond which it has a note. The distance is g/√(λ/N),
// with λ the curvature along the gradient g.
func (w row) climbs(t *testing.T, r *reference, result *infer.Result) {
	t.Helper()
	jacobian, start := 0.0, must(r.program.Start(r.program.Batch(), 2, 2))
	if w.updates > 0 {
		jacobian, start = 1, must(r.program.Init(r.program.Batch(), ppl.FromUniform.Within(1), 1, 3))
	}
	density := infer.AtTemperature(r.program.Target(), jacobian).LogPosterior
	before, _ := evaluate(t, density, start, r.program.Batch())
	after, grads := evaluate(t, density, result.Last, r.program.Batch())
	d, points := r.program.Layout().Dim(), must(result.Last.Values())
	for k := range before {
		// The curvature of the funnel's neck has no bound: a climb with a constant step is thrown out of it, and says so.
		if !r.model.Modeless || len(result.Draws.Notes()) == 0 {
			assert.Greater(t, after[k], before[k])
		}
		x, g := points[k*d:(k+1)*d], grads[k*d:(k+1)*d]
		slope := norm(g)
		switch {
		case r.model.Modeless:
		case w.arrives:
			assert.LessOrEqual(t, slope, atRest, "chain %d", k)
		case len(result.Draws.Notes()) == 0 && slope > 0:
			const h = 1e-5
			ahead, behind := make([]float64, d), make([]float64, d)
			for j := range x {
				ahead[j], behind[j] = x[j]+h*g[j]/slope, x[j]-h*g[j]/slope
			}
			up, down := r.gradients(t, 0, ahead), r.gradients(t, 0, behind)
			lambda := 0.0
			for j := range g {
				lambda += (down[j] - up[j]) / (2 * h) * g[j] / slope
			}
			assert.LessOrEqual(t, slope*math.Sqrt(r.n/lambda), 0.1, "chain %d: gradient %.2g, curvature %.2g", k, slope, lambda)
		}
	}
}

// stationary says that the Gaussians of the chains are at modes, where there is one at the one that another library's
// optimiser finds.
func (w row) stationary(t *testing.T, r *reference, result *infer.Result) {
	t.Helper()
	points := must(result.Last.Values())
	grads := r.gradients(t, 1, points)
	d := len(r.mode)
	for k := range result.Last.Chains() {
		assert.LessOrEqual(t, norm(grads[k*d:(k+1)*d]), atRest, "chain %d", k)
		for j := range d {
			if !severalModes[r.model.Name] {
				assert.InDelta(t, r.mode[j], points[k*d+j], 1e-3*r.sd[j], "chain %d, %s", k, r.program.Layout().At(j))
			}
		}
	}
}

// solves says that a variational fit q solves its equation, E_q[∇ log p] = 0 (Opper and Archambeau 2009): Newton's step
// to the solution, Σ E_q[g], is within errors of 0. With u = Σ⁻¹(θ − μ), whose mean is 0, the mean of g + u has little
// noise. To that comes the noise of the optimiser: steps of Adam, ℓ = 0.001 at the end, are relative to the standard
// deviation s of the gradient's noise, here that of g + u over the square root of 8 samples, and make the mean wander
// with a standard deviation of √(ℓs/2) in that of q.
func (w row) solves(t *testing.T, r *reference, result *infer.Result) {
	t.Helper()
	for _, note := range result.Draws.Notes() {
		if note.Kind == "elbo_not_settled" {
			return
		}
	}
	if r.model.Modeless { // under a normal distribution the gradient of a funnel has no variance to take errors from
		return
	}
	const lr, samples = 0.001, 8
	d := result.Unconstrained.Dim()
	centres := must(result.Last.Values())
	for c := range result.Unconstrained.Chains() {
		n := result.Unconstrained.Len(c)
		x := mat.NewDense(n, d, nil)
		for i := range n {
			x.SetRow(i, result.Unconstrained.Row(c, i))
		}
		var covariance mat.SymDense
		stat.CovarianceMatrix(&covariance, x, nil)
		if w.name == "vi.Diag" {
			for i := range d {
				for j := range i {
					covariance.SetSym(i, j, 0)
				}
			}
		}
		var factor mat.Cholesky
		require.True(t, factor.Factorize(&covariance))
		grads := r.gradients(t, 1, append([]float64(nil), x.RawMatrix().Data...))
		steps, noise := mat.NewDense(n, d, nil), mat.NewDense(n, d, nil)
		for i := range n {
			residual, u := mat.NewVecDense(d, grads[i*d:(i+1)*d]), mat.NewVecDense(d, nil)
			residual.ScaleVec(r.n, residual)
			offset := mat.NewVecDense(d, nil)
			offset.SubVec(x.RowView(i), mat.NewVecDense(d, centres[c*d:(c+1)*d]))
			require.NoError(t, factor.SolveVecTo(u, offset))
			residual.AddVec(residual, u)
			noise.SetRow(i, residual.RawVector().Data)
			step := mat.NewVecDense(d, nil)
			step.MulVec(&covariance, residual)
			steps.SetRow(i, step.RawVector().Data)
		}
		wander := 0.0 // the largest s
		for j := range d {
			wander = max(wander, stat.StdDev(mat.Col(nil, j, noise), nil)/math.Sqrt(samples))
		}
		for j := range d {
			sd := math.Sqrt(covariance.At(j, j))
			step, spread := stat.MeanStdDev(mat.Col(nil, j, steps), nil)
			se := math.Hypot(spread/math.Sqrt(float64(n))/sd, math.Sqrt(lr*wander/2))
			assert.LessOrEqual(t, math.Abs(step)/sd, 4*se, "chain %d, %s: %.3g standard deviations from the solution", c,
				r.program.Layout().At(j), math.Abs(step)/sd)
		}
	}
}

// fits compares a fit with NUTS: its mean, which is known, and the standard deviations of its draws. Beyond the limits
// it must say so. Weights say nothing of tails where the fit has no draws, so that standard deviations are compared
// with those of the draws of NUTS between the least and the largest of the fit.
func (w row) fits(t *testing.T, r *reference, result *infer.Result) {
	t.Helper()
	d := result.Unconstrained
	centres := must(result.Last.Values())
	off, at, ratio, in := 0.0, 0, 0.0, 0
	for j := range d.Dim() {
		var x, within []float64
		mean := 0.0
		for c := range d.Chains() {
			for i := range d.Len(c) {
				x = append(x, d.Row(c, i)[j])
			}
			mean += centres[c*d.Dim()+j] / float64(d.Chains())
		}
		if v := (math.Abs(mean-r.mean[j]) - 4*r.se[j]) / r.sd[j]; v > off {
			off, at = v, j
		}
		low, high := slices.Min(x), slices.Max(x)
		for _, v := range mat.Col(nil, j, r.draws) {
			if v >= low && v <= high {
				within = append(within, v)
			}
		}
		sd := stat.StdDev(within, nil)
		// The variance of a variance of n draws is (κ − 1)σ⁴/n, with κ the kurtosis; n is the effective number.
		n := math.Pow(r.sd[j]/r.se[j], 2)
		se := math.Sqrt((stat.ExKurtosis(within, nil) + 2) / (4 * n))
		v := math.Abs(math.Log(stat.StdDev(x, nil)/sd)) - 4*math.Hypot(se, weightsSE)
		if v > ratio {
			ratio, in = v, j
		}
	}
	notes := result.Draws.Notes()
	t.Logf("beyond errors: mean off by %.2f sd (%s), sd by a factor of %.2f (%s); notes: %v", off,
		r.program.Layout().At(at), math.Exp(ratio), r.program.Layout().At(in), notes)
	if len(notes) > 0 {
		return
	}
	assert.LessOrEqual(t, off, meanLimit)
	if !severalModes[r.model.Name] {
		assert.LessOrEqual(t, ratio, math.Log(sdLimit))
	}
}
