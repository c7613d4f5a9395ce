package ppl

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// denseLaw is one by its covariance K: with B = I + √W K √W all is as in Rasmussen and Williams (2006), algorithms 3.1
// and 5.1. No precision is needed, so that K may be nearly singular.
type denseLaw struct{ n int }

type denseGaussian struct {
	n      int
	k, r   blas64.General // r = √W B⁻¹ √W = (K + W⁻¹)⁻¹
	loc    []float64
	w      []float64
	root   []float64 // √w
	l      []float64 // L Lᵀ = B, its lower triangle
	y, z   []float64 // scratch
	rows   []float64 // scratch of n x n
	signed bool      // w has elements below 0
}

func (l denseLaw) room() gaussian {
	n := l.n
	g := &denseGaussian{n: n, l: make([]float64, n*n), rows: make([]float64, n*n), r: general(make([]float64, n*n), n)}
	for _, v := range []*[]float64{&g.w, &g.root, &g.y, &g.z} {
		*v = make([]float64, n)
	}
	return g
}

func general(a []float64, n int) blas64.General {
	return blas64.General{Rows: n, Cols: n, Stride: n, Data: a}
}

func vector(x []float64) blas64.Vector { return blas64.Vector{N: len(x), Data: x, Inc: 1} }

func (g *denseGaussian) set(p []float64) {
	g.k, g.loc, g.signed = general(p[:g.n*g.n], g.n), p[g.n*g.n:g.n*g.n+g.n], false
}

func (g *denseGaussian) mean() []float64 { return g.loc }

// times puts A x + by·y into y.
func times(y []float64, a blas64.General, x []float64, by float64) {
	blas64.Gemv(blas.NoTrans, 1, a, vector(x), by, vector(y))
}

func (g *denseGaussian) from(f, a, start []float64) {
	copy(a, start)
	copy(f, g.loc)
	times(f, g.k, start, 1)
}

func (g *denseGaussian) origin(_, a []float64) []float64 { return a }

func (g *denseGaussian) factor(w []float64) (ok bool) {
	for i, v := range w {
		g.root[i] = math.Sqrt(v)
	}
	for i, v := range g.root {
		row := g.l[i*g.n : i*g.n+i+1]
		for j, k := range g.k.Data[i*g.n : i*g.n+i+1] {
			row[j] = v * k * g.root[j]
		}
		row[i]++
	}
	_, ok = lapack64.Potrf(blas64.Symmetric{N: g.n, Stride: g.n, Data: g.l, Uplo: blas.Lower})
	return ok
}

// inner puts √W B⁻¹ √W x into y, with add to √W x.
func (g *denseGaussian) inner(y, x, add []float64) {
	for i, v := range g.root {
		y[i] = v * x[i]
		if add != nil {
			y[i] += add[i]
		}
	}
	b := blas64.Triangular{N: g.n, Stride: g.n, Data: g.l, Uplo: blas.Lower, Diag: blas.NonUnit}
	blas64.Trsv(blas.NoTrans, b, vector(y))
	blas64.Trsv(blas.Trans, b, vector(y))
	for i, v := range g.root {
		y[i] *= v
	}
}

// solve: H⁻¹ r = K (r − √W B⁻¹ √W K r).
func (g *denseGaussian) solve(df, da, r []float64) {
	times(df, g.k, r, 0)
	g.inner(da, df, nil)
	for i, v := range r {
		da[i] = v - da[i]
	}
	times(df, g.k, da, 0)
}

// inverse makes r, by L⁻¹ row by row and the sum of the products of its rows.
func (g *denseGaussian) inverse() {
	n, r := g.n, g.r.Data
	clear(g.rows)
	clear(r)
	for k := range n {
		row := g.rows[k*n : k*n+k+1]
		row[k] = 1
		for j, v := range g.l[k*n : k*n+k] {
			blas64.Axpy(-v, vector(g.rows[j*n:j*n+j+1]), vector(row[:j+1]))
		}
		blas64.Scal(1/g.l[k*n+k], vector(row))
		for i, v := range row {
			blas64.Axpy(v, vector(row[:i+1]), vector(r[i*n:i*n+i+1]))
		}
	}
	for i := range n {
		for j := range i + 1 {
			v := r[i*n+j] * g.root[i] * g.root[j]
			r[i*n+j], r[j*n+i] = v, v
		}
	}
}

// finish has the diagonal of H⁻¹ = W⁻¹ − W⁻¹ R W⁻¹, and where w is so small that the difference would lose digits, that
// of K − K R K.
func (g *denseGaussian) finish(bend, variances []float64) (logDet float64, ok bool) {
	for i, h := range bend {
		g.w[i] = -h
		g.signed = g.signed || h > 0
	}
	if g.signed {
		return g.finishSigned(variances)
	}
	if !g.factor(g.w) {
		return 0, false
	}
	for i := range g.n {
		logDet -= math.Log(g.l[i*g.n+i])
	}
	g.inverse()
	for i, v := range g.w {
		at := i*g.n + i
		left := 1 - g.r.Data[at]/v
		if variances[i] = left / v; !(left > 1e-4) {
			row := vector(g.k.Data[i*g.n : (i+1)*g.n])
			times(g.y, g.r, row.Data, 0)
			variances[i] = g.k.Data[at] - blas64.Dot(row, vector(g.y))
		}
	}
	return logDet, true
}

// finishSigned is finish by I + K W, of which H⁻¹ = (I + K W)⁻¹ K and R = W − W H⁻¹ W.
func (g *denseGaussian) finishSigned(variances []float64) (logDet float64, ok bool) {
	n, w := g.n, g.w
	m := mat.NewDense(n, n, nil)
	for i := range n {
		for j, v := range w {
			m.Set(i, j, g.k.Data[i*n+j]*v)
		}
		m.Set(i, i, m.At(i, i)+1)
	}
	var lu mat.LU
	lu.Factorize(m)
	logDet, sign := lu.LogDet()
	if lu.SolveTo(m, false, mat.NewDense(n, n, g.k.Data)) != nil || sign <= 0 {
		return 0, false
	}
	for i := range n {
		v := m.At(i, i)
		if !(v > 0) {
			return 0, false
		}
		variances[i] = v
		for j := range n {
			g.r.Data[i*n+j] = -w[i] * w[j] * (m.At(i, j) + m.At(j, i)) / 2
		}
		g.r.Data[i*n+i] += w[i]
	}
	return -logDet / 2, true
}

// adjoint: with q = s − R K s, of K they are (a aᵀ − R)/2 + q aᵀ, and of the mean a + q.
func (g *denseGaussian) adjoint(parameters, along, _, a, s []float64) {
	q := g.z
	times(g.y, g.k, s, 0)
	times(q, g.r, g.y, 0)
	for i, v := range s {
		q[i] = v - q[i]
	}
	for i, v := range a {
		row := parameters[i*g.n : (i+1)*g.n]
		for j, r := range g.r.Data[i*g.n : (i+1)*g.n] {
			row[j] = (v*a[j]-r)/2 + q[i]*a[j]
		}
		parameters[g.n*g.n+i] = v + q[i]
	}
	times(along, g.k, q, 0)
}

// draw is u − K √W B⁻¹ (√W u + z) for u ~ N(0, K) and z ~ N(0, I), or by the eigenvalues of K − K R K, of which
// rounding leaves small ones of either sign.
func (g *denseGaussian) draw(normal func() float64) []float64 {
	n := g.n
	z := make([]float64, n)
	for i := range z {
		z[i] = normal()
	}
	own := mat.NewSymDense(n, slices.Clone(g.k.Data))
	if !g.signed {
		if l, ok := lapack64.Potrf(own.RawSymmetric()); ok {
			blas64.Trmv(blas.Trans, l, vector(z)) // of an upper triangle
			for i := range g.z {
				g.z[i] = normal()
			}
			g.inner(g.y, z, g.z)
			blas64.Gemv(blas.NoTrans, -1, g.k, vector(g.y), 1, vector(z))
			return z
		}
	}
	var c mat.Dense
	k := mat.NewDense(n, n, g.k.Data)
	c.Product(k, mat.NewDense(n, n, g.r.Data), k)
	for i := range n {
		for j := i; j < n; j++ {
			own.SetSym(i, j, k.At(i, j)-(c.At(i, j)+c.At(j, i))/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(own, true) {
		return slices.Repeat([]float64{math.NaN()}, n)
	}
	for i, v := range e.Values(nil) {
		z[i] *= math.Sqrt(max(v, 0))
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	out := mat.NewVecDense(n, nil)
	out.MulVec(&vectors, mat.NewVecDense(n, z))
	return out.RawVector().Data
}
