package ekf_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/kelvin-ppl/kelvin/infer"
	"github.com/kelvin-ppl/kelvin/infer/curvature"
	"github.com/kelvin-ppl/kelvin/infer/ekf"
	"github.com/kelvin-ppl/kelvin/torch"
)

// linear is z = Xw, of shape [n].
func linear(p infer.Params, b infer.Batch) torch.Tensor {
	return b.Get("x").MatMul(p.Get("w"))
}

// gaussianOuter is log N(y; z, s²).
func gaussianOuter(s float64) curvature.Outer {
	return func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return b.Get("y").Sub(z).Square().Mul(-0.5 / (s * s)).Sub(0.5 * math.Log(2*math.Pi*s*s))
	}
}

// rows are the data of a batch in an order.
func rows(x, y []float64, order []int) infer.Batch {
	d := len(x) / len(y)
	var xs, ys []float64
	for _, i := range order {
		xs, ys = append(xs, x[i*d:(i+1)*d]...), append(ys, y[i])
	}
	return infer.Batch{"x": torch.Of(vector(xs, len(order), d)), "y": torch.Of(vector(ys))}
}

// The posterior of linear regression with a Gaussian prior is known, and the filter reaches it exactly, in any order of
// the data and any batches: Λ = P₀⁻¹ + XᵀX/s², mean Λ⁻¹(P₀⁻¹μ₀ + Xᵀy/s²). The log marginal likelihood is that of y ~
// N(Xμ₀, XP₀Xᵀ + s²I).
func TestGaussNewtonIsBayesianRegression(t *testing.T) {
	const d, n, s = 4, 23, 0.7
	x, y := normals(1, n*d), normals(2, n)
	mu0, p0 := normals(3, d), spd(4, d)

	design := mat.NewDense(n, d, x)
	var gram mat.SymDense
	gram.SymOuterK(1/(s*s), design.T())
	prior := inverse(p0)
	posterior := inverse(plus(prior, 1, &gram))
	rhs := times(prior, mu0)
	for j, v := range times(design.T(), y) {
		rhs[j] += v / (s * s)
	}
	mean := times(posterior, rhs)

	var half, v mat.Dense
	half.Mul(design, p0)
	v.Mul(&half, design.T())
	marginal := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			marginal.SetSym(i, j, v.At(i, j))
		}
		marginal.SetSym(i, i, v.At(i, i)+s*s)
	}
	r := make([]float64, n)
	for i, m := range times(design, mu0) {
		r[i] = y[i] - m
	}
	evidence := -0.5 * (n*math.Log(2*math.Pi) + logDet(marginal) +
		mat.Dot(mat.NewVecDense(n, r), mat.NewVecDense(n, times(inverse(marginal), r))))

	l := layout(infer.Shapes{"w": {d}})
	forward := make([]int, n)
	shuffled := make([]int, n)
	for i := range n {
		forward[i], shuffled[i] = i, (i*9+4)%n
	}
	for _, size := range []int{1, 7, n} {
		for name, order := range map[string][]int{"in order": forward, "shuffled": shuffled} {
			transform := build(t, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(s),
				InitCov: torch.Of(vector(entries(p0), d, d))},
				nil)
			state := begin(t, transform, params(l, mu0, 0))
			sum := 0.0
			for from := 0; from < n; from += size {
				var info infer.Info
				state, info = update(t, transform, state, rows(x, y, order[from:min(from+size, n)]))
				sum += info.Stats["log_predictive"][0]
			}
			what := fmt.Sprintf("batches of %d, %s", size, name)
			within(t, mean, values(state.Position().Flat.T()), 1e-10, what+": mean")
			within(t, entries(posterior), values(state.(ekf.DenseState).Covariance.T()), 1e-10, what+": covariance")
			within(t, []float64{evidence}, []float64{sum}, 1e-10, what+": log marginal likelihood")
		}
	}
}

// The Kalman filter of a random walk that is seen through a changing matrix, in the textbook's form with a gain: with
// S = XPXᵀ + R and G = PXᵀS⁻¹, μ' = μ + G(y − Xμ) and P' = (I − GX)P. The two outputs of a datum have correlated noise.
func TestGaussNewtonIsTheKalmanFilter(t *testing.T) {
	const d, c, q = 3, 2, 0.4
	factors := []float64{1, 0.5, 2}
	noise := mat.NewSymDense(c, []float64{0.5, 0.2, 0.2, 0.3})
	precision := vector(entries(inverse(noise)), c, c)
	constant := c*math.Log(2*math.Pi) + logDet(noise)
	forward := func(p infer.Params, b infer.Batch) torch.Tensor { // [n, c], from x of shape [n, c, d]
		return b.Get("x").MatMul(p.Get("w"))
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		r := b.Get("y").Sub(z).T()
		squares := r.MustMatmul(precision, false).MustMul(r, false).MustSumDimIntlist([]int64{-1}, false, r.DType(), false)
		return torch.Of(squares).Add(constant).Mul(-0.5)
	}
	mu, p := normals(1, d), mat.DenseCopyOf(spd(2, d))
	l := layout(infer.Shapes{"w": {d}})
	transform := build(t, ekf.GaussNewton{Forward: forward, Outer: outer, InitCov: torch.Of(vector(entries(p), d, d)),
		TransitionSD: infer.Constant(q), TransitionSDs: torch.Of(vector(factors))}, nil)
	state := begin(t, transform, params(l, mu, 0))
	for step := range 12 {
		x, y := mat.NewDense(c, d, normals(10+step, c*d)), normals(100+step, c)
		for j := range d {
			p.Set(j, j, p.At(j, j)+q*q*factors[j]*factors[j])
		}
		var px, cov, gain, gx, less mat.Dense
		px.Mul(p, x.T())
		cov.Mul(x, &px)
		cov.Add(&cov, noise)
		var inv mat.Dense
		require.NoError(t, inv.Inverse(&cov))
		gain.Mul(&px, &inv)
		r := make([]float64, c)
		for i, m := range times(x, mu) {
			r[i] = y[i] - m
		}
		symmetric := mat.NewSymDense(c, entries(&cov))
		predictive := -0.5 * (c*math.Log(2*math.Pi) + logDet(symmetric) +
			mat.Dot(mat.NewVecDense(c, r), mat.NewVecDense(c, times(&inv, r))))
		for j, jump := range times(&gain, r) {
			mu[j] += jump
		}
		gx.Mul(&gain, x)
		less.Mul(&gx, p)
		p.Sub(p, &less)

		var info infer.Info
		state, info = update(t, transform, state, infer.Batch{"x": torch.Of(vector(entries(x), 1, c, d)),
			"y": torch.Of(vector(y, 1, c))})
		within(t, mu, values(state.Position().Flat.T()), 1e-10, "mean")
		within(t, entries(p), values(state.(ekf.DenseState).Covariance.T()), 1e-10, "covariance")
		within(t, []float64{predictive}, info.Stats["log_predictive"], 1e-10, "log predictive density")
	}
}

// Counts with log rate θ and prior N(m, v): the iterated filter ends at the mode of θ y − n e^θ − (θ − m)²/(2v), with
// the curvature n e^θ + 1/v there. The mode is found by Newton's method in plain Go. A single linearisation is the
// first Newton step from m.
func TestGaussNewtonIterates(t *testing.T) {
	const m, v = 0.5, 2.0
	counts := []float64{3, 5, 2, 4}
	n, y := float64(len(counts)), 14.0
	newton := func(x float64) (gradient, curvature float64) {
		return y - n*math.Exp(x) - (x-m)/v, n*math.Exp(x) + 1/v
	}
	g, h := newton(m)
	first, firstVariance := m+g/h, 1/h
	mode := m
	for range 50 {
		g, h := newton(mode)
		mode += g / h
	}
	forward := func(p infer.Params, b infer.Batch) torch.Tensor {
		return p.Get("a").Expand(b.Get("y").Shape()...)
	}
	outer := func(z torch.Tensor, b infer.Batch) torch.Tensor {
		return z.Mul(b.Get("y")).Sub(z.Exp())
	}
	for iterations, want := range map[int][]float64{0: {first, firstVariance}, 1: {first, firstVariance},
		30: {mode, 1 / (n*math.Exp(mode) + 1/v)}} {
		transform := build(t, ekf.GaussNewton{Forward: forward, Outer: outer, InitSD: math.Sqrt(v), Iterations: iterations},
			nil)
		s, _ := update(t, transform, begin(t, transform, params(layout(infer.Shapes{"a": {}}), []float64{m}, 0)),
			infer.Batch{"y": torch.Of(vector(counts))})
		within(t, want, []float64{values(s.Position().Flat.T())[0], values(s.(ekf.DenseState).Covariance.T())[0]}, 1e-12,
			fmt.Sprint(iterations))
	}
}

// ε multiplies the log likelihood: at ε = 2 each datum counts twice.
func TestGaussNewtonLRCountsData(t *testing.T) {
	const d = 2
	x, y := normals(1, 5*d), normals(2, 5)
	once, twice := rows(x, y, []int{0, 1, 2, 3, 4}), rows(x, y, []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4})
	l := layout(infer.Shapes{"w": {d}})
	run := func(lr infer.Schedule, b infer.Batch) (infer.State, infer.Info) {
		transform := build(t, ekf.GaussNewton{Forward: linear, Outer: gaussianOuter(0.5), LR: lr}, nil)
		return update(t, transform, begin(t, transform, params(l, []float64{1, -1}, 0)), b)
	}
	a, infoA := run(infer.Constant(2), once)
	b, infoB := run(nil, twice)
	within(t, values(b.Position().Flat.T()), values(a.Position().Flat.T()), 1e-13, "mean")
	within(t, values(b.(ekf.DenseState).Covariance.T()), values(a.(ekf.DenseState).Covariance.T()), 1e-13, "covariance")
	within(t, infoB.Stats["log_predictive"], infoA.Stats["log_predictive"], 1e-12, "log predictive density")
}
