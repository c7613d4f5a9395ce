package laplace_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/sugarme/gotch/ts"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/laplace"
	"github.com/kelvin-ppl/kelvin/internal/infertest"
	"github.com/kelvin-ppl/kelvin/torch"
)

// On a linear-Gaussian model every method with the right curvature is exact: XᵀX/s² from the data, the conjugate
// posterior with the prior, the closed-form marginal likelihood, in batches of any size. The two scales of a log
// posterior give the same.
func TestLinearGaussianIsExact(t *testing.T) {
	const lambda = 0.8
	r := newRegression(1, 23, 4, 0.7, lambda)
	at := params(r.layout, r.mean, 0)
	each := curvature.Likelihood(linear, gaussianOuter(r.s))
	n := float64(r.n)
	joint := values(first(sumPosterior(each, normalPrior(lambda), n)(at, r.batch)).T())[0]
	for name, c := range map[string]struct {
		m    infer.Method
		f    infer.Target
		diag bool
	}{
		"GGN": {laplace.DenseGGN{Forward: linear, Outer: gaussianOuter(r.s),
			PriorPrecision: laplace.Isotropic(lambda)}, infer.Target{}, false},
		"Hessian of mean": {laplace.DenseHessian{}, infer.Mean(meanPosterior(each, normalPrior(lambda), n), r.n),
			false},
		"Hessian of sum": {laplace.DenseHessian{}, infer.Sum(sumPosterior(each, normalPrior(lambda), n), r.n),
			false},
		"Hessian of likelihood": {laplace.DenseHessian{PriorPrecision: laplace.Isotropic(lambda)},
			infer.Mean(meanPosterior(each, func(p infer.Params) torch.Tensor {
				return p.Flat.Sum().Mul(0)
			}, n), r.n), false},
		"diagonal GGN": {laplace.DiagGGN{Forward: linear, Outer: gaussianOuter(r.s),
			PriorPrecision: laplace.Isotropic(lambda)}, infer.Target{}, true},
	} {
		for _, size := range []int{1, 7, 23} {
			what := fmt.Sprintf("%s, batches of %d", name, size)
			s := pass(t, buildOn(t, c.m, c.f), at, r.batch, size)
			if c.diag {
				within(t, diagonal(r.precision), precision(s), 1e-10, what)
				continue
			}
			within(t, entries(r.precision), precision(s), 1e-10, what)
			evidence, err := s.(laplace.Posterior).LogEvidence(joint)
			require.NoError(t, err)
			assert.InDelta(t, r.evidence, evidence, 1e-10, what)
		}
	}
}

// The likelihood's part and the prior's are apart in the state, and the prior is there once, before any batch.
func TestPriorIsAddedOnce(t *testing.T) {
	r := newRegression(1, 10, 2, 1, 1)
	l := layout(infer.Shapes{"a": {}, "w": {2}})
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { return linear(p, b).Add(p.Get("a")) }
	at := params(l, []float64{0.1, 0.2, 0.3}, 0)
	full := []float64{3, 1, 0, 1, 4, 0, 0, 0, 5}
	for name, c := range map[string]struct {
		prior laplace.Precision
		want  []float64 // diagonal
	}{
		"flat":        {laplace.Precision{}, []float64{0, 0, 0}},
		"isotropic":   {laplace.Isotropic(2), []float64{2, 2, 2}},
		"per site":    {laplace.PerSite(map[string]float64{"a": 1, "w": 3}), []float64{1, 3, 3}},
		"per element": {laplace.PerElement(torch.Of(vector([]float64{1, 0, 4}))), []float64{1, 0, 4}},
		"matrix":      {laplace.Matrix(torch.Of(vector(full, 3, 3))), []float64{3, 4, 5}},
	} {
		if name != "matrix" {
			transform := build(t, laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1), PriorPrecision: c.prior,
				Damping: 0.5}, nil)
			s := begin(t, transform, at)
			want := append([]float64(nil), c.want...)
			for i := range want {
				want[i] += 0.5
			}
			within(t, want, precision(s), 0, name)
			s = pass(t, transform, at, r.batch, 3)
			bare := pass(t, build(t, laplace.DiagGGN{Forward: forward, Outer: gaussianOuter(1)}, nil), at, r.batch, 10)
			for i := range want {
				want[i] += precision(bare)[i]
			}
			within(t, want, precision(s), 1e-12, name)
		}
		s := begin(t, build(t, laplace.DenseGGN{Forward: forward, Outer: gaussianOuter(1), PriorPrecision: c.prior,
			Damping: 0.5}, nil), at)
		want := make([]float64, 9)
		if name == "matrix" {
			copy(want, full)
		}
		for i, v := range c.want {
			want[4*i] = v + 0.5
		}
		within(t, want, precision(s), 0, name)
	}
}

// Logistic regression away from the optimum, where residuals are not zero: GGN and Hessian are XᵀWX with W = p(1 − p),
// the empirical Fisher matrix is Σ (y − p)² x xᵀ.
func TestLogisticRegression(t *testing.T) {
	const n, d = 17, 3
	x, w := normals(1, n*d), []float64{0.5, -1, 0.3}
	y := make([]float64, n)
	information, empirical := mat.NewSymDense(d, nil), mat.NewSymDense(d, nil)
	for i := range n {
		if normals(i, 1)[0] > 0 {
			y[i] = 1
		}
		row := mat.NewVecDense(d, x[i*d:(i+1)*d])
		p := 1 / (1 + math.Exp(-mat.Dot(row, mat.NewVecDense(d, w))))
		information.SymRankOne(information, p*(1-p), row)
		empirical.SymRankOne(empirical, (y[i]-p)*(y[i]-p), row)
	}
	batch := infer.Batch{"x": torch.Of(vector(x, n, d)), "y": torch.Of(vector(y))}
	at := params(layout(infer.Shapes{"w": {d}}), w, 0)
	each := curvature.Likelihood(linear, logisticOuter)
	prior := normalPrior(2)
	information2 := plus(information, 2, identity(d, 1))
	empirical2 := plus(empirical, 2, identity(d, 1))
	two := laplace.Isotropic(2)
	for name, c := range map[string]struct {
		m    infer.Method
		f    infer.LogPosterior
		want []float64
	}{
		"DenseGGN": {laplace.DenseGGN{Forward: linear, Outer: logisticOuter, PriorPrecision: two}, nil,
			entries(information2)},
		"DiagGGN": {laplace.DiagGGN{Forward: linear, Outer: logisticOuter, PriorPrecision: two}, nil,
			diagonal(information2)},
		"DenseFisher":  {laplace.DenseFisher{LogLikelihood: each, PriorPrecision: two}, nil, entries(empirical2)},
		"DiagFisher":   {laplace.DiagFisher{LogLikelihood: each, PriorPrecision: two}, nil, diagonal(empirical2)},
		"DenseHessian": {laplace.DenseHessian{}, meanPosterior(each, prior, n), entries(information2)},
	} {
		for _, size := range []int{1, 7, n} {
			within(t, c.want, precision(pass(t, buildOn(t, c.m, infer.Mean(c.f, n)), at, batch, size)), 1e-12,
				fmt.Sprintf("%s, batches of %d", name, size))
		}
	}
	// Scale makes up for data that a pass leaves out.
	s := pass(t, build(t, laplace.DenseGGN{Forward: linear, Outer: logisticOuter, PriorPrecision: two, Scale: 3}, nil),
		at, batch, n)
	within(t, entries(plus(information2, 2, information)), precision(s), 1e-12, "Scale")
}

// A softmax of three classes with weights W of shape [3, d]: H = diag(p) − ppᵀ, so the GGN is Σ H_i ⊗ x_i x_iᵀ, and the
// score of row c is (1{y = c} − p_c) x.
func TestSoftmax(t *testing.T) {
	const n, d, c = 11, 2, 3
	x, w := normals(1, n*d), normals(2, c*d)
	y := make([]float64, n*c) // one-hot
	information, empirical := mat.NewSymDense(c*d, nil), mat.NewSymDense(c*d, nil)
	for i := range n {
		y[i*c+i%c] = 1
		p, sum := make([]float64, c), 0.0
		for k := range c {
			for j := range d {
				p[k] += w[k*d+j] * x[i*d+j]
			}
			p[k] = math.Exp(p[k])
			sum += p[k]
		}
		score := make([]float64, c*d)
		for k := range c {
			p[k] /= sum
		}
		for a := range c * d {
			ka, ja := a/d, a%d
			score[a] = (y[i*c+ka] - p[ka]) * x[i*d+ja]
			for b := a; b < c*d; b++ {
				kb, jb := b/d, b%d
				h := -p[ka] * p[kb]
				if ka == kb {
					h += p[ka]
				}
				information.SetSym(a, b, information.At(a, b)+h*x[i*d+ja]*x[i*d+jb])
			}
		}
		empirical.SymRankOne(empirical, 1, mat.NewVecDense(c*d, score))
	}
	batch := infer.Batch{"x": torch.Of(vector(x, n, d)), "y": torch.Of(vector(y, n, c))}
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		return b.Get("x").MatMul(p.Get("w").Transpose())
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return z.LogSoftmax(-1).Mul(b.Get("y")).Sum(-1)
	}
	at := params(layout(infer.Shapes{"w": {c, d}}), w, 0)
	each := curvature.Likelihood(forward, outer)
	for name, m := range map[string]struct {
		m    infer.Method
		f    infer.LogPosterior
		want []float64
	}{
		"DenseGGN":     {laplace.DenseGGN{Forward: forward, Outer: outer}, nil, entries(information)},
		"DiagGGN":      {laplace.DiagGGN{Forward: forward, Outer: outer}, nil, diagonal(information)},
		"DenseFisher":  {laplace.DenseFisher{LogLikelihood: each}, nil, entries(empirical)},
		"DiagFisher":   {laplace.DiagFisher{LogLikelihood: each}, nil, diagonal(empirical)},
		"DenseHessian": {laplace.DenseHessian{}, meanPosterior(each, normalPrior(1e-300), n), entries(information)},
	} {
		for _, size := range []int{1, 4, n} {
			within(t, m.want, precision(pass(t, buildOn(t, m.m, infer.Mean(m.f, n)), at, batch, size)), 1e-12,
				fmt.Sprintf("%s, batches of %d", name, size))
		}
	}
}

// first is the first of two results.
func first[A, B any](a A, _ B) A { return a }

// Tables change nothing but the work: the precision of a model with an embedding is the same with its rows picked.
func TestTablesOfDiagonalMethods(t *testing.T) {
	l, err := infer.NewLayout(infer.Shapes{"e": {7, 2}, "w": {2}})
	require.NoError(t, err)
	flat := make([]float64, l.Dim())
	for i := range flat {
		flat[i] = math.Sin(float64(3 * i))
	}
	p, err := infer.NewParams(l, flat)
	require.NoError(t, err)
	words, err := torch.FromSlice([]int{1, 1, 4, 6, 0, 4, 2, 2, 2}, 3, 3)
	require.NoError(t, err)
	y, err := torch.FromSlice([]float64{1, 0, 1})
	require.NoError(t, err)
	b := infer.Batch{"words": words, "y": y}
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		x := ts.MustEmbedding(p.Get("e").T(), b.Get("words").T(), -1, false, false).MustTanh(false)
		return torch.Of(x).MatMul(p.Get("w")).Sum(1)
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return z.Mul(b.Get("y").Mul(2).Sub(1)).LogSigmoid()
	}
	precision := func(m infer.Method) []float64 {
		transform, err := m.Build(infer.Target{})
		require.NoError(t, err)
		r, err := infertest.Run(context.Background(), transform, p, infer.Full(b),
			infer.Options{Warmup: 1, Draws: infer.None})
		require.NoError(t, err)
		precision, err := r.State.(laplace.DiagState).Precision()
		require.NoError(t, err)
		v, err := torch.ToSlice[float64](precision)
		require.NoError(t, err)
		return v
	}
	tables := map[string]string{"e": "words"}
	prior := laplace.Isotropic(1)
	require.InDeltaSlice(t, precision(laplace.DiagGGN{Forward: forward, Outer: outer, PriorPrecision: prior}),
		precision(laplace.DiagGGN{Forward: forward, Outer: outer, PriorPrecision: prior, Tables: tables}), 1e-14)
	f := curvature.Likelihood(forward, outer)
	require.InDeltaSlice(t, precision(laplace.DiagFisher{LogLikelihood: f, PriorPrecision: prior}),
		precision(laplace.DiagFisher{LogLikelihood: f, PriorPrecision: prior, Tables: tables}), 1e-14)
}
