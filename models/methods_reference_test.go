package models_test

import (
	"context"
	"math"
	"testing"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/hmc"
	"github.com/kelvin-ppl/kelvin/models"
	"github.com/kelvin-ppl/kelvin/ppl"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// reference is what NUTS finds on unconstrained space.
type reference struct {
	model        models.Model
	program      *ppl.Program
	draws        *mat.Dense // of all chains
	mean, se, sd []float64
	last         infer.Params // the last draw of each chain
	n            float64      // data
	// stiff is the largest curvature λ of the mean log posterior at the last draw of any chain. For a normal posterior it
	// is 1/(N v), with v the least variance of any direction; where there are several modes it is more: 500 in place of
	// 6 to 14 for the hidden Markov chain.
	stiff float64
	// steep is the largest curvature that a climb begins at: of the mean log density without Jacobian, at the starts of
	// optimisers; at least stiff.
	steep float64
	// mode is where the density on unconstrained space has a maximum, by an optimiser of another library from the mean.
	mode []float64
}

// newReference runs NUTS. The centred schools are a funnel that NUTS does not explore: their reference is that of the
// other form, of the same posterior, whose draws give theta = mu + tau·z.
func newReference(t *testing.T, m models.Model, l lengths) *reference {
	t.Helper()
	r := &reference{model: m, program: compile(t, m)}
	source := r.program
	if m.Modeless {
		source = compile(t, must(models.EightSchools()))
	}
	result, err := infer.Run(context.Background(), source, hmc.NUTS{Pooled: true},
		infer.Options{Chains: l.chains, Warmup: l.warmup, Draws: l.draws, Seed: 1, Observer: infer.Silent})
	require.NoError(t, err)
	if m.Modeless {
		centre(t, source.Layout(), r.program.Layout(), result)
	}
	r.last, r.n = result.Last, r.program.Target().N()
	r.mean, r.se = moments(t, result)
	d := result.Unconstrained
	r.draws = mat.NewDense(d.Total(), d.Dim(), nil)
	row := 0
	for c := range d.Chains() {
		for i := range d.Len(c) {
			r.draws.SetRow(row, d.Row(c, i))
			row++
		}
	}
	var covariance mat.SymDense
	stat.CovarianceMatrix(&covariance, r.draws, nil)
	for j := range d.Dim() {
		r.sd = append(r.sd, math.Sqrt(covariance.At(j, j)))
	}
	r.stiff = r.curvature(t, 1, r.last)
	r.steep = max(r.stiff, r.curvature(t, 0, must(r.program.Start(r.program.Batch(), 2, 2))))
	if !m.Modeless {
		r.mode = modeOf(t, r.program, r.mean)
	}
	return r
}

// centre changes draws of the schools into those of the centred form, in place.
func centre(t *testing.T, from, to *infer.Layout, result *infer.Result) {
	t.Helper()
	require.Equal(t, from.Dim(), to.Dim())
	site := func(l *infer.Layout, name string) int {
		s, ok := l.Site(name)
		require.True(t, ok)
		return s.Offset
	}
	change := func(x []float64) {
		y := make([]float64, len(x))
		mu, tau, z := x[site(from, "mu")], x[site(from, "tau")], x[site(from, "theta_decentred"):]
		y[site(to, "mu")], y[site(to, "tau")] = mu, tau
		for j := range len(x) - 2 {
			y[site(to, "theta")+j] = mu + math.Exp(tau)*z[j]
		}
		copy(x, y)
	}
	d := result.Unconstrained
	var last []float64
	for c := range d.Chains() {
		for i := range d.Len(c) {
			change(d.Row(c, i))
		}
		last = append(last, d.Row(c, d.Len(c)-1)...)
	}
	result.Last = must(infer.NewParams(to, last))
}

// modeOf is the maximum of the log density on unconstrained space, by the BFGS method of Gonum.
func modeOf(t *testing.T, program *ppl.Program, from []float64) []float64 {
	t.Helper()
	density := infer.AtTemperature(program.Target(), 1).LogPosterior
	evaluated := func(x []float64) (float64, []float64) {
		values, grads := evaluate(t, density, must(infer.NewParams(program.Layout(), x)), program.Batch())
		return values[0], grads
	}
	found, err := optimize.Minimize(optimize.Problem{
		Func: func(x []float64) float64 { v, _ := evaluated(x); return -v },
		Grad: func(grad, x []float64) {
			_, g := evaluated(x)
			for i := range g {
				grad[i] = -g[i]
			}
		},
	}, from, &optimize.Settings{GradientThreshold: 1e-7, MajorIterations: 2000}, &optimize.BFGS{})
	if err != nil { // a line search that ends at rounding has arrived
		_, g := evaluated(found.X)
		require.LessOrEqual(t, norm(g), 1e-5, "%v", err)
	}
	return found.X
}

// moments are the means over all chains and the standard errors of them. The chains are independent, so that the spread
// of their means tells the error whatever the autocorrelation.
func moments(t *testing.T, r *infer.Result) (mean, se []float64) {
	t.Helper()
	d := r.Unconstrained
	for j := range d.Dim() {
		var means []float64
		for c := range d.Chains() {
			sum := 0.0
			for i := range d.Len(c) {
				v := d.Row(c, i)[j]
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "element %d of draw %d of chain %d", j, i, c)
				sum += v
			}
			means = append(means, sum/float64(d.Len(c)))
		}
		m, sd := stat.MeanStdDev(means, nil)
		mean, se = append(mean, m), append(se, sd/math.Sqrt(float64(len(means))))
	}
	return mean, se
}

// gradients are those of the mean log density on unconstrained space at points after one another.
func (r *reference) gradients(t *testing.T, jacobian float64, points []float64) []float64 {
	t.Helper()
	density := infer.AtTemperature(r.program.Target(), jacobian).LogPosterior
	_, grads := evaluate(t, density, must(infer.NewParams(r.program.Layout(), points)), r.program.Batch())
	return grads
}

// curvature is the largest eigenvalue of minus the Hessian of the mean log density at any of several points, by central
// differences of gradients.
func (r *reference) curvature(t *testing.T, jacobian float64, at infer.Params) float64 {
	t.Helper()
	const h = 1e-5
	d, points, largest := at.Layout.Dim(), must(at.Values()), 0.0
	for k := range at.Chains() {
		var moved []float64
		for j := range d {
			for _, by := range []float64{h, -h} {
				x := append([]float64(nil), points[k*d:(k+1)*d]...)
				x[j] += by
				moved = append(moved, x...)
			}
		}
		grads := r.gradients(t, jacobian, moved)
		hessian := mat.NewSymDense(d, nil)
		for i := range d {
			for j := range i + 1 {
				slope := func(a, b int) float64 { return (grads[(2*a+1)*d+b] - grads[2*a*d+b]) / (2 * h) }
				hessian.SetSym(i, j, (slope(i, j)+slope(j, i))/2)
			}
		}
		var eigen mat.EigenSym
		require.True(t, eigen.Factorize(hessian, false))
		largest = max(largest, eigen.Values(nil)[d-1])
	}
	return largest
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s)
}
