package kernel

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// fisherDiagonal sets v to the diagonal of M⁻¹ with the least Fisher divergence between the target and N(mean, M⁻¹),
// from draws and their gradients (nutpie; Seyboldt, Carlson and Carpenter 2026):
//
//	M⁻¹ᵢᵢ = √(var(xᵢ)/var(gᵢ))
//
// For independent Gaussians g = -(x - μ)/σ², so that it is σ² exactly, from any two draws. Where a ratio is not a
// number within 1e-20 to 1e20 (a coordinate that does not move, a gradient that is constant) Stan's regularised
// variance stands in.
func fisherDiagonal(v []float64, x, grad moments) {
	w := float64(x.N) / float64(x.N+5) // see regularise
	for i := range v {
		r := math.Sqrt(x.M2[i] / grad.M2[i])
		if !(r > 1e-20 && r < 1e20) {
			r = w*x.M2[i]/float64(x.N-1) + 1e-3*5/float64(x.N+5)
		}
		v[i] = r
	}
}

// lowRankFisher estimates a low-rank-plus-diagonal metric from draws and gradients (Seyboldt, Carlson and Carpenter
// 2026, "covadapt"). In coordinates scaled by a diagonal D, y = D^-½(x - mean) and h = D^½(g - mean), it works in the
// span of the y and h (the whole space when there are at least d/2 draws), with
//
//	C_y = (Σ yyᵀ + γI)/(n + γ),  C_h = (Σ hhᵀ + γI)/(n + γ)
//
// and takes the geometric mean of C_y and C_h⁻¹, the positive solution A of A C_h A = C_y, which has the least Fisher
// divergence. (For a Gaussian of covariance Σ, h = -Σ⁻¹y, and A = Σ.) Of its eigenvectors those are kept whose
// eigenvalue λ is above the cutoff c or below 1/c:
//
//	M⁻¹ = D^½ (I + Uᵀ(Λ - I)U) D^½
//
// A window keeps all its draws and gradients, 2nd numbers for each chain, and at its end costs O(n²d + m³) operations,
// m the smaller of 2n and d.
type lowRankFisher struct {
	// Gamma γ counts as that many more draws of unit variance. Zero is the default: 1e-5 when there are more draws than
	// dimensions, and 1 otherwise, since directions that only the draws or only the gradients have seen would else get
	// eigenvalues of the order 1/√γ.
	Gamma   float64
	Cutoff  float64 // c; default 2, at least 1
	MaxRank int     // vectors kept at most, those of the largest |log λ|; default d
}

func (c lowRankFisher) check() error {
	const typ = "kernel.lowRankFisher"
	if !(c.Gamma >= 0) || !finite(c.Gamma) {
		return &FieldError{typ, "Gamma", c.Gamma, "it must be a positive number, or 0 for the default"}
	}
	if c.Cutoff != 0 && (!(c.Cutoff >= 1) || !finite(c.Cutoff)) {
		return &FieldError{typ, "Cutoff", c.Cutoff, "it must be at least 1"}
	}
	if c.MaxRank < 0 {
		return &FieldError{typ, "MaxRank", c.MaxRank, "it must not be negative"}
	}
	return nil
}

// Estimate makes the metric of n >= 2 draws and their gradients, [n, d] each, around the diagonal D.
func (c lowRankFisher) Estimate(diag, draws, grads []float64) (Metric, error) {
	if err := c.check(); err != nil {
		return Metric{}, err
	}
	d := len(diag)
	n := len(draws) / max(d, 1)
	if d == 0 || n < 2 || len(draws) != n*d || len(grads) != n*d {
		return Metric{}, &FieldError{"kernel.lowRankFisher", "draws", fmt.Sprintf("of length %d", len(draws)),
			"there must be n >= 2 rows of d numbers, and as many of gradients"}
	}
	if !allFinite(draws) || !allFinite(grads) || !allFinite(diag) {
		return Metric{}, fmt.Errorf("kernel.lowRankFisher: draws, gradients or diagonal: %w", ErrNonFinite)
	}
	gamma, cutoff := c.Gamma, c.Cutoff
	if gamma == 0 {
		gamma = 1
		if n > d {
			gamma = 1e-5
		}
	}
	if cutoff == 0 {
		cutoff = 2
	}

	y, h := mat.NewDense(n, d, centred(draws, d)), mat.NewDense(n, d, centred(grads, d))
	for j, v := range diag {
		sd := math.Sqrt(v)
		for i := range n {
			y.Set(i, j, y.At(i, j)/sd)
			h.Set(i, j, h.At(i, j)*sd)
		}
	}
	var basis *mat.Dense // [d, r], nil for the whole space
	r := d
	if 2*n < d {
		basis = span(y, h)
		_, r = basis.Dims()
		y, h = project(y, basis), project(h, basis)
	}
	a, err := geometricMean(gram(y, gamma), gram(h, gamma))
	if err != nil {
		return Metric{}, err
	}
	var eig mat.EigenSym
	if !eig.Factorize(a, true) {
		return Metric{}, fmt.Errorf("kernel.lowRankFisher: the eigenvalues of the geometric mean did not converge")
	}
	values := eig.Values(nil)
	var vectors mat.Dense
	eig.VectorsTo(&vectors)
	if basis != nil {
		var full mat.Dense
		full.Mul(basis, &vectors)
		vectors = full
	}
	keep := make([]int, 0, r)
	for i, l := range values {
		if l > cutoff || l < 1/cutoff {
			keep = append(keep, i)
		}
	}
	slices.SortStableFunc(keep, func(i, j int) int {
		a, b := math.Abs(math.Log(values[i])), math.Abs(math.Log(values[j]))
		switch {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return 0
	})
	if c.MaxRank > 0 && len(keep) > c.MaxRank {
		keep = keep[:c.MaxRank]
	}
	s := lowRankMetric(slices.Clone(diag), nil, nil)
	for _, k := range keep {
		s.Values = append(s.Values, values[k])
		for i := range d {
			s.Vectors = append(s.Vectors, vectors.At(i, k))
		}
	}
	return s, nil
}

// centred copies rows and takes their mean away.
func centred(rows []float64, d int) []float64 {
	out := slices.Clone(rows)
	n := len(rows) / d
	for j := range d {
		mean := 0.0
		for i := range n {
			mean += rows[i*d+j]
		}
		mean /= float64(n)
		for i := range n {
			out[i*d+j] -= mean
		}
	}
	return out
}

// span is an orthonormal basis, in its columns, of the rows of both: Gram-Schmidt, each row gone over twice. Rows that
// depend on those before are left out (there are some: centred rows add up to zero).
func span(both ...*mat.Dense) *mat.Dense {
	var basis [][]float64
	d := 0
	for _, m := range both {
		n, cols := m.Dims()
		d = cols
		for i := range n {
			v := slices.Clone(m.RawRowView(i))
			size := math.Sqrt(dot(v, v))
			for range 2 {
				for _, u := range basis {
					c := dot(u, v)
					for k := range v {
						v[k] -= c * u[k]
					}
				}
			}
			left := math.Sqrt(dot(v, v))
			if !(left > 1e-8*size) {
				continue
			}
			for k := range v {
				v[k] /= left
			}
			basis = append(basis, v)
		}
	}
	out := mat.NewDense(d, max(1, len(basis)), nil)
	for j, u := range basis {
		out.SetCol(j, u)
	}
	return out
}

func project(rows, basis *mat.Dense) *mat.Dense {
	var p mat.Dense
	p.Mul(rows, basis)
	return &p
}

// gram is (YᵀY + γI)/(n + γ).
func gram(y *mat.Dense, gamma float64) *mat.SymDense {
	n, r := y.Dims()
	s := mat.NewSymDense(r, nil)
	s.SymOuterK(1/(float64(n)+gamma), y.T())
	for i := range r {
		s.SetSym(i, i, s.At(i, i)+gamma/(float64(n)+gamma))
	}
	return s
}

// geometricMean is the positive A with A G A = Y: with G = LLᵀ, A = L⁻ᵀ (Lᵀ Y L)^½ L⁻¹.
func geometricMean(y, g *mat.SymDense) (*mat.SymDense, error) {
	r := y.SymmetricDim()
	var chol mat.Cholesky
	if !chol.Factorize(g) {
		return nil, fmt.Errorf("kernel.lowRankFisher: the covariance of the gradients is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var t, inner mat.Dense
	t.Mul(y, &l)
	inner.Mul(l.T(), &t)
	var eig mat.EigenSym
	if !eig.Factorize(symmetric(&inner), true) {
		return nil, fmt.Errorf("kernel.lowRankFisher: the eigenvalues did not converge")
	}
	var w, z mat.Dense
	eig.VectorsTo(&w)
	// A = BBᵀ with B = L⁻ᵀ W μ^¼, μ the eigenvalues of LᵀYL.
	for j, mu := range eig.Values(nil) {
		f := math.Sqrt(math.Sqrt(math.Max(mu, 0)))
		for i := range r {
			w.Set(i, j, w.At(i, j)*f)
		}
	}
	if err := z.Solve(l.T(), &w); err != nil {
		if _, warning := err.(mat.Condition); !warning {
			return nil, fmt.Errorf("kernel.lowRankFisher: %w", err)
		}
	}
	a := mat.NewSymDense(r, nil)
	a.SymOuterK(1, &z)
	return a, nil
}

func symmetric(m *mat.Dense) *mat.SymDense {
	r, _ := m.Dims()
	s := mat.NewSymDense(r, nil)
	for i := range r {
		for j := range i + 1 {
			s.SetSym(j, i, 0.5*(m.At(i, j)+m.At(j, i)))
		}
	}
	return s
}
